"""Memory is counted over a process and its workers, and named for what it is."""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from lerobot_stream.profile.memory import read_memory

SIZE = 64 << 20

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="PSS is Linux's")


def hold(connection: Connection) -> None:
    held = np.ones(SIZE, np.uint8)
    connection.send(len(held))
    connection.recv()


@needs_proc
def test_memory_of_worker_processes_counts() -> None:
    before = read_memory()
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=hold, args=(there,))
    process.start()
    here.recv()
    during = read_memory()
    here.send(None)
    process.join()
    assert before.kind == during.kind == "pss"
    assert during.size - before.size > SIZE


def test_without_pss_the_peak_of_rss_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(path: Path) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", unreadable)
    use = read_memory()
    assert use.kind == "rss"
    assert use.size > 10 << 20
