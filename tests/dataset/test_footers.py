from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lerobot_stream.dataset.footers import FooterCache
from lerobot_stream.errors import FormatError, MissingFileError
from lerobot_stream.source.local import LocalSource
from lerobot_stream.span import Span


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in "abc":
        pq.write_table(pa.table({"episode_index": [0, 1]}), tmp_path / f"{name}.parquet")
    return tmp_path


class Gated(LocalSource):
    """Answers reads once all callers are there."""

    def __init__(self, root: Path, gate: Callable[[], object]) -> None:
        super().__init__(root, repo_id="a/b")
        self.gate = gate

    def read(self, path: str, span: Span) -> bytes:
        self.gate()
        return super().read(path, span)


def test_a_footer_is_read_once(root: Path) -> None:
    source = LocalSource(root, repo_id="a/b")
    cache = FooterCache(source)
    assert cache.get("a.parquet") is cache.get("a.parquet")
    assert source.count.requests == 1


def test_threads_that_ask_while_one_reads_share_its_request(root: Path) -> None:
    everyone = threading.Barrier(5)
    source = Gated(root, lambda: everyone.wait(10))
    cache = FooterCache(source)

    def ask(_: int) -> object:
        everyone.wait(10)
        return cache.get("a.parquet")

    with ThreadPoolExecutor(5) as pool:
        first = pool.submit(cache.get, "a.parquet")
        others = list(pool.map(ask, range(4)))
    assert all(other is first.result() for other in others)
    assert source.count.requests == 1


def test_different_files_are_read_at_the_same_time(root: Path) -> None:
    together = threading.Barrier(3)
    cache = FooterCache(Gated(root, lambda: together.wait(10)))
    with ThreadPoolExecutor(3) as pool:
        files = list(pool.map(cache.get, ["a.parquet", "b.parquet", "c.parquet"]))
    assert [file.footer.path for file in files] == ["a.parquet", "b.parquet", "c.parquet"]


def test_the_footer_not_used_longest_is_dropped(root: Path) -> None:
    source = LocalSource(root, repo_id="a/b")
    size = FooterCache(source).get("a.parquet").footer.metadata.serialized_size
    cache = FooterCache(source, max_bytes=2 * size)
    for name in ("a", "b", "a", "c"):
        cache.get(f"{name}.parquet")
    requests = source.count.requests
    cache.get("a.parquet")
    cache.get("c.parquet")
    assert source.count.requests == requests
    cache.get("b.parquet")
    assert source.count.requests == requests + 1


def test_a_footer_larger_than_the_room_is_still_kept_while_it_is_the_last(root: Path) -> None:
    source = LocalSource(root, repo_id="a/b")
    cache = FooterCache(source, max_bytes=0)
    cache.get("a.parquet")
    cache.get("a.parquet")
    assert source.count.requests == 1


def test_a_fault_is_not_remembered(root: Path) -> None:
    cache = FooterCache(LocalSource(root, repo_id="a/b"))
    with pytest.raises(MissingFileError):
        cache.get("d.parquet")
    (root / "e.parquet").write_bytes(b"")
    cache = FooterCache(LocalSource(root, repo_id="a/b"))
    for _ in range(2):
        with pytest.raises(FormatError, match=r"e\.parquet: is empty"):
            cache.get("e.parquet")
