"""What every source promises; a source joins by a line in ``OPENERS``."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lerobot_stream.errors import MissingFileError, SourceError
from lerobot_stream.source.base import Source
from lerobot_stream.source.bucket import open_bucket
from lerobot_stream.source.fsspec_url import FsspecSource
from lerobot_stream.source.hub import open_hub
from lerobot_stream.source.local import LocalSource
from lerobot_stream.span import Span

FILES: Mapping[str, bytes] = {
    "meta/info.json": b"{}",
    "meta/empty.json": b"",
    "data/chunk-000/file-000.parquet": bytes(range(256)) * 5,
    "videos/a b/chunk-000/file-000.mp4": b"moov" * 2500,
}
LARGEST = "videos/a b/chunk-000/file-000.mp4"

REPO = "robots/arm"


def on_hub(folder: Path, request: pytest.FixtureRequest) -> Source:
    request.getfixturevalue("hub").add_dataset(REPO, folder)
    return open_hub(REPO)


def in_bucket(folder: Path, request: pytest.FixtureRequest) -> Source:
    request.getfixturevalue("hub").add_bucket(REPO, folder)
    return open_bucket(REPO)


def in_memory(folder: Path, request: pytest.FixtureRequest) -> Source:
    url: str = request.getfixturevalue("memory_url")
    fsspec.filesystem("memory").put(str(folder), url, recursive=True)
    return FsspecSource(url, repo_id=REPO)


def on_s3(folder: Path, request: pytest.FixtureRequest) -> Source:
    url: str = request.getfixturevalue("s3_url")
    fsspec.filesystem("s3").put(str(folder), url, recursive=True)
    return FsspecSource(url, repo_id=REPO)


OPENERS: Mapping[str, Callable[[Path, pytest.FixtureRequest], Source]] = {
    "local": lambda folder, _: LocalSource(folder, repo_id=REPO),
    "hub": on_hub,
    "bucket": in_bucket,
    "memory": in_memory,
    "s3": on_s3,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path, data in FILES.items():
        file = tmp_path / "dataset" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return tmp_path / "dataset"


@pytest.fixture(params=OPENERS)
def source(request: pytest.FixtureRequest, folder: Path) -> Iterator[Source]:
    source = OPENERS[request.param](folder, request)
    yield source
    source.close()


def test_the_listing_has_every_file_with_its_size(source: Source) -> None:
    found = {path: info.size for path, info in source.list_files().items()}
    assert found == {path: len(data) for path, data in FILES.items()}


def test_the_listing_is_made_once(source: Source) -> None:
    first = source.list_files()
    assert source.list_files() is first


def test_the_identity_names_the_dataset_without_credentials(source: Source) -> None:
    assert source.identity.repo_id == "robots/arm"
    assert source.identity.revision
    assert "@" not in source.identity.data_root.split("://")[-1].split("/")[0]


@pytest.mark.parametrize("path", FILES)
def test_a_whole_file_is_read(source: Source, path: str) -> None:
    assert source.read(path, Span(0, len(FILES[path]))) == FILES[path]


@given(st.integers(0, len(FILES[LARGEST])), st.integers(0, len(FILES[LARGEST])))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_any_span_is_read_exactly(source: Source, a: int, b: int) -> None:
    start, stop = sorted((a, b))
    assert source.read(LARGEST, Span(start, stop)) == FILES[LARGEST][start:stop]


def test_reading_past_the_end_raises(source: Source) -> None:
    size = len(FILES[LARGEST])
    with pytest.raises(SourceError, match=rf"file-000\.mp4: wanted 5 bytes at {size - 2}, got 2"):
        source.read(LARGEST, Span(size - 2, size + 3))


@pytest.mark.parametrize("path", ["meta/nothing.json", "meta", "meta/info.json/x", "info.json"])
def test_a_file_that_is_not_there_is_named(source: Source, path: str) -> None:
    with pytest.raises(SourceError, match=path) as caught:
        source.read(path, Span(0, 1))
    assert caught.value.path == path
    assert path == "meta" or isinstance(caught.value, MissingFileError)


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "meta/../../secret",
        "/etc/passwd",
        "file:///etc/passwd",
        "C:\\x",
        "a\\..\\b",
        "",
    ],
)
def test_a_path_outside_the_root_is_refused(source: Source, folder: Path, path: str) -> None:
    (folder.parent / "secret").write_bytes(b"secret")
    with pytest.raises(SourceError, match="outside"):
        source.read(path, Span(0, 1))


def test_each_read_counts_one_request_and_its_bytes(source: Source) -> None:
    requests, received = source.count.requests, source.count.bytes
    source.read(LARGEST, Span(10, 110))
    source.read("meta/info.json", Span(0, 2))
    assert (source.count.requests, source.count.bytes) == (requests + 2, received + 102)


def test_many_threads_read_and_count_without_loss(source: Source) -> None:
    before = source.count.requests
    spans = [Span(i, i + 7) for i in range(400)]
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(lambda span: source.read(LARGEST, span), spans))
    assert parts == [FILES[LARGEST][span.start : span.stop] for span in spans]
    assert source.count.requests == before + 400


def test_a_copy_in_another_process_keeps_the_listing_and_reads(source: Source) -> None:
    listing = dict(source.list_files())
    source.read(LARGEST, Span(0, 4))
    copy = pickle.loads(pickle.dumps(source))
    assert copy.identity == source.identity
    assert copy.count.requests == 0
    assert dict(copy.list_files()) == listing
    assert copy.count.requests == 0
    assert copy.read(LARGEST, Span(0, 4)) == b"moov"


def test_a_source_can_be_copied_before_it_was_used(source: Source) -> None:
    copy = pickle.loads(pickle.dumps(source))
    assert copy.read("meta/info.json", Span(0, 2)) == b"{}"
    assert copy.list_files().keys() == FILES.keys()


def test_a_closed_source_can_be_read_again(source: Source) -> None:
    source.read(LARGEST, Span(0, 4))
    source.close()
    source.close()
    assert source.read(LARGEST, Span(4, 8)) == b"moov"
