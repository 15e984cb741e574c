"""A sidecar is published whole, once, and only where it is right."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lerobot_stream.errors import AccessError, FormatError, SidecarError, SourceError, StreamError
from lerobot_stream.sidecar.build import build_sidecar
from lerobot_stream.sidecar.publish import Publication, check_publishable, publish_sidecar
from lerobot_stream.source.base import Source
from lerobot_stream.source.fsspec_url import FsspecSource
from lerobot_stream.source.local import LocalSource
from lerobot_stream.source.published import BRANCH
from lerobot_stream.source.publishing import BranchMovedError
from tests.hub import Drop, Fault, Status
from tests.sidecar.hub_dataset import PATHS, READS, REPO, Meanwhile, OnHub, dataset_on_hub
from tests.sidecar.memory import PINNED, UNPINNED, MemorySource, make_mp4
from tests.sidecar.rewriting import rewrite

# of the client's own, about its own
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


@pytest.fixture
def on_hub(tmp_path: Path) -> Iterator[OnHub]:
    with dataset_on_hub(tmp_path) as on_hub:
        yield on_hub


def publish(on_hub: OnHub, file: Path, source: Source | None = None) -> Publication:
    return publish_sidecar(file, source or on_hub.source(), dataset_paths=PATHS)


def path_of(publication: Publication) -> str:
    return publication.address.partition(f"/blob/{BRANCH}/")[2]


def test_it_goes_to_a_branch_of_its_own_with_one_commit(on_hub: OnHub) -> None:
    file = on_hub.build()
    before = on_hub.hub.world.repositories[REPO]
    branches, tags = dict(before.branches), dict(before.tags)
    publication = publish(on_hub, file)
    after = on_hub.hub.world.repositories[REPO]
    assert on_hub.read(path_of(publication)) == file.read_bytes()
    assert on_hub.num_commits() == 1
    assert after.branches == {**branches, BRANCH: after.branches[BRANCH]}
    assert after.tags == tags
    assert publication.address.startswith(f"{on_hub.hub.url}/datasets/{REPO}/blob/{BRANCH}/")
    assert [step.split()[0] for step in publication.steps] == ["branch", "one"]


def test_readers_find_it_under_its_name(on_hub: OnHub, tmp_path: Path) -> None:
    file = on_hub.build()
    publish(on_hub, file)
    on_hub.hub.log.clear()
    found = on_hub.open(on_hub.source(), cache=tmp_path / "cache")
    assert found.path.read_bytes() == file.read_bytes()
    assert on_hub.video_requests() == 0


def test_the_same_again_changes_nothing(on_hub: OnHub) -> None:
    file = on_hub.build()
    first = publish(on_hub, file)
    on_hub.hub.log.clear()
    second = publish(on_hub, file)
    assert second == Publication(first.address, ())
    assert on_hub.methods() <= READS


def test_equal_numbers_compressed_otherwise_change_nothing(on_hub: OnHub, tmp_path: Path) -> None:
    file = on_hub.build()
    publish(on_hub, file)
    other = tmp_path / "stored.npz"
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(other, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    assert publish(on_hub, other).steps == ()


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\5\6" + bytes(18)])
def test_what_is_damaged_there_is_replaced(on_hub: OnHub, content: bytes) -> None:
    file = on_hub.build()
    path = path_of(publish_sidecar(file, on_hub.source(), dataset_paths=PATHS, dry_run=True))
    on_hub.put(path, content)
    publish(on_hub, file)
    assert on_hub.read(path) == file.read_bytes()
    assert on_hub.num_commits() == 2


def test_other_numbers_there_are_replaced(on_hub: OnHub, tmp_path: Path) -> None:
    file = on_hub.build()
    publication = publish(on_hub, file)
    with zipfile.ZipFile(file) as old:
        members = {name: old.read(name) for name in old.namelist()}
    members["0/sample_durations.npy"] = members["0/sample_durations.npy"][:-8] + bytes(8)
    other = tmp_path / "other.npz"
    with zipfile.ZipFile(other, "w") as new:
        for name, data in members.items():
            new.writestr(name, data)
    on_hub.put(path_of(publication), other.read_bytes())
    assert publish(on_hub, file).steps != ()
    assert on_hub.read(path_of(publication)) == file.read_bytes()


def test_earlier_sidecars_stay(on_hub: OnHub, tmp_path: Path) -> None:
    first = on_hub.build()
    content = first.read_bytes()
    older = publish(on_hub, first)
    commit = on_hub.put(PATHS[0], make_mp4(tmp_path, 50), branch="main")
    source = on_hub.source(commit)
    newer = publish(on_hub, on_hub.build(source), source)
    assert older.address != newer.address
    assert on_hub.read(path_of(older)) == content
    assert on_hub.read(path_of(newer)) is not None
    assert [step.split()[0] for step in newer.steps] == ["one"]


def test_trying_writes_nothing_and_says_what_would_be_done(on_hub: OnHub) -> None:
    file = on_hub.build()
    tried = publish_sidecar(file, on_hub.source(), dataset_paths=PATHS, dry_run=True)
    assert on_hub.methods() <= READS
    assert tried == publish(on_hub, file)


def test_another_publisher_between_is_no_harm(on_hub: OnHub) -> None:
    file = on_hub.build()
    act = Meanwhile(lambda: on_hub.put("meta/mp4-sidecars/theirs.npz", b"theirs"))
    rule = on_hub.hub.fail(act, "*/preupload/*")
    publication = publish(on_hub, file)
    assert rule.hits == 1
    assert on_hub.num_commits() == 2
    assert on_hub.read("meta/mp4-sidecars/theirs.npz") == b"theirs"
    assert on_hub.read(path_of(publication)) == file.read_bytes()


def test_another_publisher_of_the_same_leaves_nothing_to_do(on_hub: OnHub) -> None:
    file = on_hub.build()
    tried = publish_sidecar(file, on_hub.source(), dataset_paths=PATHS, dry_run=True)
    act = Meanwhile(lambda: on_hub.put(path_of(tried), file.read_bytes()))
    on_hub.hub.fail(act, "*/preupload/*")
    assert publish(on_hub, file).steps == ()
    assert on_hub.num_commits() == 1


def test_it_is_tried_once_more_and_no_further(on_hub: OnHub) -> None:
    file = on_hub.build()
    numbers = iter(range(9))
    act = Meanwhile(lambda: on_hub.put(f"meta/mp4-sidecars/{next(numbers)}.npz", b"theirs"))
    rule = on_hub.hub.fail(act, "*/preupload/*", times=None)
    with pytest.raises(BranchMovedError, match="has changed meanwhile"):
        publish(on_hub, file)
    assert rule.hits == 2
    assert on_hub.num_commits() == 2


def test_a_branch_that_another_publisher_has_just_made_is_taken(on_hub: OnHub) -> None:
    file = on_hub.build()
    branches = on_hub.hub.world.repositories[REPO].branches
    act = Meanwhile(lambda: branches.setdefault(BRANCH, on_hub.commit))
    on_hub.hub.fail(act, f"*/revision/{BRANCH}", skip=1)
    publication = publish(on_hub, file)
    assert on_hub.read(path_of(publication)) == file.read_bytes()


def test_a_branch_that_is_deleted_meanwhile_is_made_again(on_hub: OnHub) -> None:
    file = on_hub.build()
    branches = on_hub.hub.world.repositories[REPO].branches
    on_hub.hub.fail(Meanwhile(lambda: branches.pop(BRANCH)), "*/preupload/*")
    publication = publish(on_hub, file)
    assert on_hub.read(path_of(publication)) == file.read_bytes()


@pytest.mark.parametrize("place", ["*/revision/*", "*/preupload/*", "*/commit/*"])
@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        (Status(401), AccessError, "does not let this token write"),
        (Status(403), AccessError, "does not let this token write"),
        (Status(403, "GatedRepo"), AccessError, "is gated"),
        (Status(404, "RepoNotFound"), SourceError, "no dataset robots/arm"),
        (Status(429), SourceError, "limits the rate"),
        (Status(500), SourceError, "answered 500"),
        (Drop(), SourceError, "publishing failed"),
    ],
    ids=["401", "403", "gated", "404", "429", "500", "drop"],
)
def test_a_refusal_is_one_error(
    on_hub: OnHub,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    fault: Fault,
    kind: type[StreamError],
    message: str,
) -> None:
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    file = on_hub.build()
    on_hub.hub.fail(fault, place, times=None)
    with pytest.raises(kind, match=message) as caught:
        publish(on_hub, file)
    assert caught.value.hint


def test_the_token_is_sent_to_the_hub_alone(on_hub: OnHub) -> None:
    publish(on_hub, on_hub.build())
    assert not any(entry.authorized for entry in on_hub.hub.requests(origin="blobs"))
    assert all(e.authorized for e in on_hub.hub.requests(origin="hub") if e.method == "POST")


def refused(file: Path, source: Source) -> str:
    with pytest.raises(StreamError) as caught:
        check_publishable(file, source, PATHS)
    return "\n".join([caught.value.message, *getattr(caught.value, "__notes__", [])])


@pytest.fixture
def videos(tmp_path: Path) -> dict[str, bytes]:
    return {path: make_mp4(tmp_path, 10 + i) for i, path in enumerate(PATHS)}


@pytest.fixture
def built(videos: dict[str, bytes], tmp_path: Path) -> Path:
    return build_sidecar(MemorySource(videos), PATHS, output=tmp_path / "s.npz")


def test_a_part_of_the_videos_is_refused(videos: dict[str, bytes], tmp_path: Path) -> None:
    source = MemorySource(videos)
    file = build_sidecar(source, PATHS[:2], output=tmp_path / "part.npz", subset=True)
    assert "only a whole can be published" in refused(file, source)


@pytest.mark.parametrize(
    ("identity", "message"),
    [
        (replace(PINNED, repo_id="robots/arm2"), "robots/arm2"),
        (replace(PINNED, data_root="hf://datasets/robots/arm@" + "f" * 40), "f" * 40),
        (replace(PINNED, data_root="hf://datasets/robots/arm"), "is not pinned to a commit"),
        (replace(PINNED, data_root="/data/robots/arm"), "is not pinned to a commit"),
    ],
    ids=["name", "commit", "unpinned", "folder"],
)
def test_the_sidecar_of_another_dataset_is_refused(
    videos: dict[str, bytes], tmp_path: Path, identity: object, message: str
) -> None:
    theirs = MemorySource(videos, identity)  # type: ignore[arg-type]
    file = build_sidecar(theirs, PATHS, output=tmp_path / "theirs.npz")
    assert message in refused(file, MemorySource(videos))


def test_an_older_schema_is_refused_with_what_to_do(videos: dict[str, bytes], built: Path) -> None:
    with zipfile.ZipFile(built) as old:
        members = {name: old.read(name) for name in old.namelist()}
    members["manifest_json.npy"] = members["manifest_json.npy"].replace(
        b'"version": 3', b'"version": 2'
    )
    with zipfile.ZipFile(built, "w") as new:
        for name, data in members.items():
            new.writestr(name, data)
    with pytest.raises(FormatError, match="version is 2, wanted 3") as caught:
        check_publishable(built, MemorySource(videos), PATHS)
    assert "build-sidecar" in str(caught.value.hint)


def test_what_is_no_sidecar_is_refused(videos: dict[str, bytes], tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    assert "not in the archive" in refused(tmp_path / "other.npz", MemorySource(videos))


def test_wrong_numbers_are_refused_and_listed(tmp_path: Path) -> None:
    paths = ["videos/a.mp4", "videos/b.mp4"]
    files = {path: make_mp4(tmp_path, 10) for path in paths}
    file = build_sidecar(MemorySource(files), paths, output=tmp_path / "s.npz")
    rewrite(file, lambda index: replace(index, sync=index.sync[:0]))
    with pytest.raises(SidecarError, match="1 problem") as caught:
        check_publishable(file, MemorySource(files), paths)
    assert "sync_samples" in caught.value.__notes__[0]


def test_a_video_that_changed_is_refused(videos: dict[str, bytes], built: Path) -> None:
    videos[PATHS[1]] += b"\0"
    assert PATHS[1] in refused(built, MemorySource(videos))


def test_a_video_that_is_not_in_it_is_refused(videos: dict[str, bytes], built: Path) -> None:
    more = MemorySource(videos | {"videos/d.mp4": b"x"})
    with pytest.raises(SidecarError) as caught:
        check_publishable(built, more, [*PATHS, "videos/d.mp4"])
    assert "videos/d.mp4" in caught.value.__notes__[0]


def test_files_without_commit_or_hash_are_refused(videos: dict[str, bytes], tmp_path: Path) -> None:
    source = MemorySource(videos, UNPINNED)
    file = build_sidecar(source, PATHS, output=tmp_path / "s.npz")
    assert "neither a commit nor content hashes" in refused(file, source)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: LocalSource(folder, repo_id=REPO), "this dataset is a folder"),
        (lambda folder: FsspecSource("memory://x", repo_id=REPO), "is not on the Hub"),
    ],
    ids=["folder", "url"],
)
def test_there_is_nothing_to_publish_to_but_the_hub(
    built: Path, tmp_path: Path, make: Callable[[Path], Source], message: str
) -> None:
    with pytest.raises(SidecarError, match=f"nothing to publish to: .*{message}"):
        publish_sidecar(built, make(tmp_path), dataset_paths=PATHS)
