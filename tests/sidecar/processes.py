"""What other processes of the tests run."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from threading import BrokenBarrierError
from typing import Any, Protocol

from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.sidecar.mapped_store import map_sidecar
from lerobot_stream.sidecar.sample_tables import SampleTables
from lerobot_stream.sidecar.schema import Sidecar
from lerobot_stream.sidecar.store import open_sidecar
from lerobot_stream.source.local import LocalSource


class Barrier(Protocol):
    def wait(self, timeout: float | None = None) -> int: ...


class Queue(Protocol):
    def put(self, item: object) -> None: ...


def run_at_once(count: int, target: Callable[..., None], *arguments: object) -> list[Any]:
    """Run a function in several new processes at once; give what each has reported."""
    context = get_context("spawn")
    barrier, results = context.Barrier(count), context.Queue()
    children = [
        context.Process(target=target, args=(*arguments, barrier, results)) for _ in range(count)
    ]
    for child in children:
        child.start()
    found = [results.get(timeout=120) for _ in children]
    for child in children:
        child.join(60)
    return found


def size_of_first_sample(task: tuple[SampleTables, str]) -> int:
    """Bytes of a file's first sample."""
    tables, path = task
    return int(tables.index(path).size[0])


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


class CountedSidecar(Sidecar):
    """A sidecar that counts the tables it is asked for."""

    count = 0

    def index(self, path: str) -> Mp4Index:
        self.count += 1
        return super().index(path)


def map_at_once(sidecar: Path, cache: Path, barrier: Barrier, results: Queue) -> None:
    """Map a sidecar when everyone is ready; report tables read of it, and those found."""
    whole = CountedSidecar(sidecar)
    try:
        barrier.wait(60)
    except BrokenBarrierError:
        results.put(None)
        return
    found = map_sidecar(whole, cache_dir=cache, lock_timeout_s=60)
    results.put((whole.count, [len(found.index(path)) for path in found.paths]))
    found.close()
