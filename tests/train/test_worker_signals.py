"""A signal to a whole job is heard by its ranks; their loader workers go on, or end with them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch.utils.data import Dataset

from lerobot_stream.train.loader import LoaderSettings, make_loader

CONTEXTS = ("spawn", "fork", "forkserver")
ALL = ("INT", "TERM", "USR1")
CPU = torch.device("cpu")


class Pids(Dataset[int]):
    """Who made each item; the last one is never made."""

    def __getitem__(self, number: tuple[int, int]) -> int:
        if number[1] == 99:
            threading.Event().wait()
        return os.getpid()


class SignalsWhenSent(Pids):
    """Items that signal this process while they are sent to a worker, before it hears that."""

    def __init__(self, heard: list[int]) -> None:
        self._heard = heard

    def __reduce__(self) -> tuple[type[Pids], tuple[()]]:
        os.kill(os.getpid(), signal.SIGTERM)
        assert self._heard == []
        return Pids, ()


@contextmanager
def workers(
    context: str, *numbers: int, items: Pids | None = None
) -> Iterator[tuple[Iterator[torch.Tensor], set[int]]]:
    """Items of two workers that have only been started, and the workers' process ids."""
    settings = LoaderSettings(
        num_workers=2, context=context, prefetch_factor=1, persistent_workers=False
    )
    before = {process.pid for process in multiprocessing.active_children()}
    wanted = iter([[(0, number)] for number in numbers])
    made = iter(make_loader(items or Pids(), settings, device=CPU, numbers=wanted))
    yield made, {p.pid for p in multiprocessing.active_children() if p.pid} - before


def signal_from_elsewhere(pids: set[int], name: str) -> None:
    subprocess.run(["kill", f"-{name}", *map(str, pids)], check=True)


@pytest.mark.parametrize("context", ["spawn", "fork"])  # other tests start the server earlier
def test_workers_survive_signals_from_their_start_on(
    context: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with workers(context, 0, 1, 2, 3) as (items, pids):
        for name in ALL:
            signal_from_elsewhere(pids, name)
        made = {int(next(items)) for _ in range(2)}
        for name in ALL:
            signal_from_elsewhere(pids, name)
        made |= {int(item) for item in items}
    assert made == pids
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_worker_that_hangs_is_ended_by_its_rank(context: str) -> None:
    with workers(context, 0, 1, 99, 99) as (items, pids):
        assert {int(next(items)) for _ in range(2)} == pids
        children = [p for p in multiprocessing.active_children() if p.pid in pids]
        for child in children:
            child.terminate()
        for child in children:
            child.join(60)
        assert {child.exitcode for child in children} == {0}


def test_a_signal_while_workers_start_is_heard_afterwards() -> None:
    heard: list[int] = []
    former = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with workers("spawn", 0, 1, items=SignalsWhenSent(heard)) as (items, pids):
            assert heard == [signal.SIGTERM]
            assert {int(item) for item in items} == pids
    finally:
        signal.signal(signal.SIGTERM, former)
