"""What other processes of the tests run."""

from __future__ import annotations

from pathlib import Path
from threading import BrokenBarrierError
from typing import Protocol

from lerobot_stream.sidecar.schema import Sidecar
from lerobot_stream.sidecar.store import open_sidecar
from lerobot_stream.source.local import LocalSource


class Barrier(Protocol):
    def wait(self, timeout: float | None = None) -> int: ...


class Queue(Protocol):
    def put(self, item: object) -> None: ...


def size_of_first_sample(task: tuple[Sidecar, str]) -> int:
    """Bytes of a file's first sample."""
    sidecar, path = task
    return int(sidecar.index(path).size[0])


def open_at_once(root: Path, cache: Path, barrier: Barrier, results: Queue) -> None:
    """Open the sidecar of a folder when everyone is ready; report files indexed and found."""
    source = LocalSource(root, repo_id="robots/arm")
    paths = [path for path in source.list_files() if path.endswith(".mp4")]
    try:
        barrier.wait(60)
    except BrokenBarrierError:
        results.put(None)
        return
    sidecar = open_sidecar(source, paths, dataset_paths=paths, cache_dir=cache, lock_timeout_s=60)
    results.put((source.count.requests, [len(sidecar.index(path)) for path in paths]))
    sidecar.close()
