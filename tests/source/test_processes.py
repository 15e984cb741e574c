"""Sources in other processes: spawned with a pickled copy, or forked."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import Pool

import pytest

from lerobot_stream.source.base import Source
from lerobot_stream.source.bucket import open_bucket
from lerobot_stream.source.hub import open_hub
from lerobot_stream.source.process import PerProcess
from lerobot_stream.source.remote import RemoteSource
from lerobot_stream.span import Span
from tests.hub import Hub

REPO = "robots/arm"
FILES = {f"videos/top/file-{i:03d}.mp4": b"moov" * (100 + i) for i in range(6)}
WORKERS = 2


def read_all(source: Source) -> list[bytes]:
    listing = source.list_files()
    return [source.read(path, Span(4, info.size)) for path, info in listing.items()]


def read_counted(source: Source) -> tuple[int, int]:
    read_all(source)
    return source.count.requests, source.count.lookups


@pytest.fixture(params=["dataset", "bucket"])
def source(request: pytest.FixtureRequest, hub: Hub) -> RemoteSource:
    if request.param == "dataset":
        hub.add_dataset(REPO, FILES)
        return open_hub(REPO)
    hub.add_bucket(REPO, FILES)
    return open_bucket(REPO)


def test_spawned_workers_neither_list_nor_ask_where_files_are(
    source: RemoteSource, hub: Hub
) -> None:
    source.resolve(source.list_files())
    hub.log.clear()
    pool: Pool
    with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:
        counts = pool.map(read_counted, [source] * WORKERS, chunksize=1)
    assert counts == [(len(FILES), 0)] * WORKERS
    assert hub.requests(origin="hub") == []
    assert len(hub.requests(origin="blobs")) == WORKERS * len(FILES)
    source.close()


@pytest.mark.parametrize("subranges", [1, 2])
def test_forked_workers_open_connections_of_their_own(hub: Hub, subranges: int) -> None:
    files = {path: data * 6000 for path, data in FILES.items()}
    hub.add_dataset(REPO, files)
    source = open_hub(REPO, subranges=subranges)
    expected = read_all(source)
    before = hub.connections
    pool: Pool
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        found = pool.map(read_all, [source] * 4, chunksize=1)
    assert found == [expected] * 4
    assert hub.connections > before
    assert read_all(source) == expected
    source.close()


def test_s3_is_read_by_forked_workers(s3_url: str) -> None:
    import fsspec

    from lerobot_stream.source.fsspec_url import FsspecSource

    for path, data in FILES.items():
        fsspec.filesystem("s3").pipe_file(f"{s3_url}/{path}", data)
    source = FsspecSource(s3_url, repo_id=REPO)
    expected = read_all(source)
    pool: Pool
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map(read_all, [source]) == [expected]


def test_what_belongs_to_a_process_is_made_once() -> None:
    held = PerProcess(object)
    assert held.get() is held.get()
    first = held.get()
    assert held.drop() is first
    assert held.drop() is None
    assert held.get() is not first


def test_threads_that_ask_at_once_get_the_same() -> None:
    together = threading.Barrier(2)

    def make() -> object:
        together.wait()
        return object()

    held = PerProcess(make)
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda _: held.get(), range(2))
    assert first is second
