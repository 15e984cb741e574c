"""What is published is used where it is right, and never taken for what it is not."""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import fsspec
import portalocker
import pytest

from lerobot_stream.errors import AccessError, SourceError
from lerobot_stream.sidecar import store
from lerobot_stream.sidecar.build import build_sidecar
from lerobot_stream.sidecar.store import open_sidecar, sidecar_places
from lerobot_stream.source.bucket import open_bucket
from lerobot_stream.source.fsspec_url import FsspecSource
from lerobot_stream.source.local import LocalSource
from lerobot_stream.source.published import FOLDER
from tests.hub import Drop, Fault, IgnoreRange, ShortBody, Status
from tests.sidecar.hub_dataset import PATHS, READS, REPO, OnHub, dataset_on_hub
from tests.sidecar.memory import MemorySource, make_mp4
from tests.sidecar.rewriting import rewrite

RESOLVED = "*/lerobot-sidecars/meta/*"


@pytest.fixture
def on_hub(tmp_path: Path) -> Iterator[OnHub]:
    with dataset_on_hub(tmp_path) as on_hub:
        yield on_hub


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def published_path(on_hub: OnHub) -> str:
    source = on_hub.source()
    name = sidecar_places(source, PATHS, dataset_paths=PATHS).complete.name
    on_hub.hub.log.clear()
    return f"{FOLDER}/{name}"


@pytest.fixture
def published(on_hub: OnHub) -> bytes:
    """The right sidecar, published."""
    content = on_hub.build().read_bytes()
    on_hub.put(published_path(on_hub), content)
    on_hub.hub.log.clear()
    return content


def names(cache: Path) -> list[str]:
    return sorted(p.name for p in cache.rglob("*") if p.is_file() and p.suffix != ".lock")


def test_it_is_downloaded_and_no_video_is_asked_for(
    on_hub: OnHub, published: bytes, cache: Path
) -> None:
    found = on_hub.open(on_hub.source(), cache=cache)
    assert found.path.read_bytes() == published
    assert on_hub.video_requests() == 0
    assert on_hub.methods() <= READS


def test_what_was_downloaded_is_not_asked_for_again(
    on_hub: OnHub, published: bytes, cache: Path
) -> None:
    on_hub.open(on_hub.source(), cache=cache)
    on_hub.hub.log.clear()
    source = on_hub.source()
    on_hub.open(source, cache=cache)
    assert [entry.path for entry in on_hub.hub.requests()] == [
        f"/api/datasets/{REPO}/tree/{on_hub.commit}"
    ]


def test_a_tag_and_its_commit_share_it(on_hub: OnHub, published: bytes, cache: Path) -> None:
    on_hub.open(on_hub.source("v3.0"), cache=cache)
    on_hub.open(on_hub.source("main"), cache=cache)
    on_hub.open(on_hub.source(), cache=cache)
    assert len(names(cache)) == 1
    assert on_hub.video_requests() == 0


def test_another_commit_has_another_one(on_hub: OnHub, published: bytes, cache: Path) -> None:
    commit = on_hub.put(PATHS[0], make_mp4(on_hub.folder, 50), branch="main")
    found = on_hub.open(on_hub.source(commit), cache=cache)
    assert len(found.index(PATHS[0])) == 50
    assert on_hub.video_requests() == 3


@pytest.mark.parametrize("branch_exists", [False, True])
def test_where_none_is_published_one_request_tells(
    on_hub: OnHub, cache: Path, branch_exists: bool
) -> None:
    if branch_exists:
        on_hub.put(f"{FOLDER}/other.npz", b"x")
    on_hub.open(on_hub.source(), cache=cache)
    assert [(e.method, e.status) for e in on_hub.hub.requests(RESOLVED)] == [("HEAD", 404)]
    assert on_hub.video_requests() == 3


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        (Status(429, retry_after="1"), SourceError, "limits the rate of requests"),
        (Status(503), SourceError, "answered 503 after 3 tries"),
        (Status(401), AccessError, "needs a token"),
        (Status(403), AccessError, "does not let this token read"),
        (Status(403, "GatedRepo"), AccessError, "is gated"),
        (Drop(), SourceError, "after 3 tries"),
    ],
    ids=["429", "503", "401", "403", "gated", "drop"],
)
def test_what_the_hub_does_not_say_is_not_taken_for_none(
    on_hub: OnHub, cache: Path, fault: Fault, kind: type[SourceError], message: str
) -> None:
    on_hub.hub.fail(fault, RESOLVED, times=None)
    with pytest.raises(kind, match=message):
        on_hub.open(on_hub.source(), cache=cache)
    assert on_hub.video_requests() == 0
    assert names(cache) == []


@pytest.mark.parametrize(
    "fault", [Drop(after=100), ShortBody(), IgnoreRange(), Status(503)], ids=lambda f: type(f)
)
def test_a_fault_on_the_way_is_made_good(
    on_hub: OnHub, published: bytes, cache: Path, fault: Fault
) -> None:
    rule = on_hub.hub.fail(fault, "/blobs/*.npz")
    assert on_hub.open(on_hub.source(), cache=cache).path.read_bytes() == published
    assert rule.hits == 1


def test_a_download_that_fails_leaves_nothing(on_hub: OnHub, published: bytes, cache: Path) -> None:
    on_hub.hub.fail(Drop(after=100), "/blobs/*.npz", times=None)
    with pytest.raises(SourceError, match="after 3 tries"):
        on_hub.open(on_hub.source(), cache=cache)
    assert names(cache) == []
    on_hub.hub.heal()
    assert on_hub.open(on_hub.source(), cache=cache).path.read_bytes() == published


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-30])


def _damage(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[data.index(b"1/sample_sizes.npy") + 60] ^= 255
    file.write_bytes(data)


def _older(file: Path) -> None:
    with zipfile.ZipFile(file) as old:
        members = {name: old.read(name) for name in old.namelist()}
    manifest = members["manifest_json.npy"]
    members["manifest_json.npy"] = manifest.replace(b'"version": 3', b'"version": 2')
    with zipfile.ZipFile(file, "w") as new:
        for name, data in members.items():
            new.writestr(name, data)


def _foreign(file: Path) -> None:
    files = {path: make_mp4(file.parent, 10 + i) for i, path in enumerate(PATHS)}
    build_sidecar(MemorySource(files), PATHS, output=file)


def _outside(file: Path) -> None:
    source = MemorySource({path: make_mp4(file.parent, 10) for path in ["videos/a.mp4"]})
    build_sidecar(source, ["videos/a.mp4"], output=file)
    rewrite(file, lambda index: replace(index, offset=index.offset + (1 << 40)))


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_cut, "no archive"),
        (_damage, "1/sample_sizes.npy"),
        (_older, "version is 2, wanted 3"),
        (_foreign, "data_root is"),
        (_outside, "lies outside the file's"),
    ],
)
def test_what_is_not_right_is_left_alone_and_the_videos_are_indexed(
    on_hub: OnHub,
    cache: Path,
    caplog: pytest.LogCaptureFixture,
    spoil: object,
    reason: str,
) -> None:
    file = on_hub.build()
    content = file.read_bytes()
    spoil(file)  # type: ignore[operator]
    on_hub.put(published_path(on_hub), file.read_bytes())
    found = on_hub.open(on_hub.source(), cache=cache)
    assert found.path.read_bytes() == content
    assert len(names(cache)) == 1
    (warning,) = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert reason in warning.getMessage()
    assert on_hub.methods() <= READS


def test_a_part_under_the_name_of_the_whole_is_not_taken_for_it(
    on_hub: OnHub, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    on_hub.put(published_path(on_hub), on_hub.build(subset=True).read_bytes())
    assert on_hub.open(on_hub.source(), cache=cache).paths == tuple(PATHS)
    assert "it is marked as a subset" in caplog.text


def test_the_whole_serves_where_a_part_is_wanted(
    on_hub: OnHub, published: bytes, cache: Path
) -> None:
    found = on_hub.open(on_hub.source(), cache=cache, paths=PATHS[1:2])
    assert found.path.read_bytes() == published
    assert not found.subset
    assert on_hub.video_requests() == 0


def test_a_part_is_indexed_where_the_whole_is_much_to_fetch(
    on_hub: OnHub, published: bytes, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "SUBSET_DOWNLOAD_BYTES", len(published) - 1)
    found = on_hub.open(on_hub.source(), cache=cache, paths=PATHS[1:2])
    assert found.subset
    assert on_hub.video_requests() == 1


def test_a_part_is_indexed_while_another_process_makes_the_whole(
    on_hub: OnHub, published: bytes, cache: Path
) -> None:
    source = on_hub.source()
    places = sidecar_places(source, PATHS[1:2], dataset_paths=PATHS, cache_dir=cache)
    places.complete.parent.mkdir(parents=True)
    with portalocker.Lock(f"{places.complete}.lock", "a"):
        assert on_hub.open(source, cache=cache, paths=PATHS[1:2]).subset


def test_the_listing_of_a_bucket_tells_whether_one_is_published(on_hub: OnHub, cache: Path) -> None:
    files = {path: make_mp4(on_hub.folder, 10 + i) for i, path in enumerate(PATHS)}
    on_hub.hub.add_bucket(REPO, files)
    first = on_hub.open(open_bucket(REPO), cache=cache)
    assert on_hub.video_requests() == 3
    assert on_hub.hub.requests(f"*{FOLDER}*") == []
    on_hub.hub.put(REPO, {f"{FOLDER}/{first.path.name}": first.path.read_bytes()})
    on_hub.hub.log.clear()
    second = on_hub.open(open_bucket(REPO), cache=cache / "fresh")
    assert second.path.read_bytes() == first.path.read_bytes()
    assert on_hub.video_requests() == 0


def test_a_video_of_equal_size_that_replaced_another_in_a_bucket_is_indexed(
    on_hub: OnHub, cache: Path
) -> None:
    files = {path: make_mp4(on_hub.folder, 10 + i) for i, path in enumerate(PATHS)}
    on_hub.hub.add_bucket(REPO, files)
    first = on_hub.open(open_bucket(REPO), cache=cache)
    on_hub.hub.put(REPO, {f"{FOLDER}/{first.path.name}": first.path.read_bytes()})
    on_hub.hub.put(REPO, {PATHS[0]: files[PATHS[0]][:-1] + b"\1"})
    on_hub.hub.log.clear()
    second = on_hub.open(open_bucket(REPO), cache=cache)
    assert second.path != first.path
    assert on_hub.video_requests() == 3


def test_a_folder_and_a_url_ask_nothing_of_the_hub(
    on_hub: OnHub, published: bytes, cache: Path
) -> None:
    root = on_hub.folder / "data"
    memory = fsspec.filesystem("memory")
    for i, path in enumerate(PATHS):
        content = make_mp4(on_hub.folder, 10 + i)
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
        memory.pipe_file(f"/sidecars/{path}", content)
    for source in (
        LocalSource(root, repo_id=REPO),
        FsspecSource("memory://sidecars", repo_id=REPO),
    ):
        open_sidecar(source, PATHS, dataset_paths=PATHS, cache_dir=cache)
    memory.rm("/sidecars", recursive=True)
    assert on_hub.hub.requests() == []
    assert len(names(cache)) == 2
