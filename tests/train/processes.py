"""Functions run as the ranks of one job, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

LIMIT_S = 120

# The server imports what all ranks need once, before it has threads, and forks for each.
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["torch", "lerobot_stream.train.loop", "tests.train.jobs"])


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a rank."""

    code: int | None
    """Its exit code; None if it had to be killed."""
    said: str
    """Its stdout and stderr."""


def run_ranks(job: Callable[..., None], *arguments: Any, count: int, folder: Path) -> list[Ended]:
    """Run a function in several processes that find each other as ``torchrun``'s would.

    Args:
        job: A function of ``tests.train.jobs``.
        arguments: Its arguments.
        count: Ranks.
        folder: For what they say.

    Returns:
        What became of each, by rank.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = []
    for rank in range(count):
        variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "MASTER_PORT": port}
        told = {name: str(value) for name, value in variables.items()}
        processes.append(_start(job, arguments, told, folder / f"rank{rank}.txt"))
    for process in processes:
        process.join(LIMIT_S)
        process.kill()
        process.join()
    said = [(folder / f"rank{rank}.txt").read_text() for rank in range(count)]
    return [Ended(one.exitcode, text) for one, text in zip(processes, said, strict=True)]


def run_until(
    moment: Callable[[], bool], job: Callable[..., None], *arguments: Any, folder: Path
) -> Ended:
    """Run a function in a process of its own, and kill it with SIGKILL.

    Args:
        moment: When to kill it, unless it has ended before.
        job: A function of ``tests.train.jobs``.
        arguments: Its arguments.
        folder: For what it says.

    Returns:
        What became of it.
    """
    process = _start(job, arguments, {}, folder / "killed.txt")
    while not moment() and process.exitcode is None:
        process.join(0.001)
    process.kill()
    process.join()
    return Ended(process.exitcode, (folder / "killed.txt").read_text())


def _start(
    job: Callable[..., None], arguments: tuple[Any, ...], told: dict[str, str], file: Path
) -> BaseProcess:
    told |= {"MASTER_ADDR": "127.0.0.1", "HF_LEROBOT_HOME": os.environ["HF_LEROBOT_HOME"]}
    process = _context.Process(target=_run, args=(job, arguments, told, file))
    process.start()
    return process


def _run(
    job: Callable[..., None], arguments: tuple[Any, ...], told: dict[str, str], file: Path
) -> None:
    import torch

    os.environ.update(told)
    torch.set_num_threads(1)
    descriptor = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    for standard in (1, 2):
        os.dup2(descriptor, standard)
    job(*arguments)
    sys.stdout.flush()
