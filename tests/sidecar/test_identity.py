"""Names of sidecars, and which dataset they may serve."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.sidecar.identity import (
    can_change_unseen,
    is_pinned,
    sidecar_folder,
    sidecar_name,
    source_fingerprints,
    usable,
)
from lerobot_stream.sidecar.manifest import SidecarHeader
from lerobot_stream.source.base import FileInfo, Identity
from tests.sidecar.memory import COMMIT, PINNED, UNPINNED
from tests.sidecar.synthetic import make_movie

SHARED = Path(__file__).parents[2].parent / "shared"
A, B = "videos/top/chunk-000/file-000.mp4", "videos/top/chunk-000/file-001.mp4"


def header(
    identity: Identity = PINNED, fingerprints: dict[str, str] | None = None, *, subset: bool = False
) -> SidecarHeader:
    movies = {A: make_movie(1000), B: make_movie(2000)}
    return SidecarHeader(identity, fingerprints or {}, movies, subset)


def listing(a: str = "", b: str = "") -> dict[str, FileInfo]:
    return {A: FileInfo(1000, a), B: FileInfo(2000, b)}


@pytest.mark.skipif(not SHARED.is_dir(), reason="no shared folder")
def test_the_name_is_the_one_that_lerobot_computes() -> None:
    (theirs,) = (SHARED / "interop").glob("mp4-v3-*.npz")
    root = f"hf://datasets/robots/g1_inspire@{COMMIT}"
    assert sidecar_name(Identity("robots/g1_inspire", COMMIT, root), {}) == theirs.name


def test_the_digest_is_of_compact_sorted_json() -> None:
    text = (
        f'{{"data_root":"{PINNED.data_root}","repo_id":"robots/arm","revision":"{COMMIT}",'
        '"schema_version":3}'
    )
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    assert sidecar_name(PINNED, {}) == f"mp4-v3-{COMMIT[:32]}-{digest}.npz"


def test_the_digest_covers_fingerprints_where_there_are_any() -> None:
    text = (
        '{"data_root":"memory://robots/arm","repo_id":"robots/arm","revision":"v3.0",'
        f'"schema_version":3,"source_fingerprints":{{"{A}":"x"}}}}'
    )
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    assert sidecar_name(UNPINNED, {A: "x"}) == f"mp4-v3-v3.0-{digest}.npz"


@pytest.mark.parametrize(
    ("revision", "part"),
    [
        ("v3.0", "v3.0"),
        ("refs/pr/7", "refs-pr-7"),
        ("//main//", "main"),
        ("a" * 40, "a" * 32),
        ("feature//x y", "feature-x-y"),
    ],
)
def test_a_revision_is_written_with_letters_that_any_disk_takes(revision: str, part: str) -> None:
    name = sidecar_name(replace(UNPINNED, revision=revision), {})
    assert name.startswith(f"mp4-v3-{part}-")
    assert len(name) == len("mp4-v3-") + len(part) + 1 + 16 + len(".npz")


@pytest.mark.parametrize(
    ("repo_id", "folder"),
    [("robots/arm", "robots--arm"), ("-/a b/-", "a--b"), ("..", "_"), ("///", "_"), (".", "_")],
)
def test_a_folder_name_never_leads_elsewhere(repo_id: str, folder: str) -> None:
    assert sidecar_folder(repo_id) == folder


@given(
    st.sets(st.sampled_from([A, B, "c.mp4", "d.mp4"])), st.sets(st.sampled_from([A, B, "c.mp4"]))
)
def test_subsets_share_a_name_only_if_they_are_equal(one: set[str], other: set[str]) -> None:
    names = sidecar_name(PINNED, {}, one), sidecar_name(PINNED, {}, other)
    assert (names[0] == names[1]) == (one == other)
    assert sidecar_name(PINNED, {}) not in names


@pytest.mark.parametrize(
    ("root", "pinned"),
    [
        (PINNED.data_root, True),
        ("hf://buckets/robots/arm", False),
        (f"hf://datasets/robots/arm@{COMMIT[:39]}", False),
        (f"hf://datasets/robots/arm@{COMMIT.upper()}", False),
        (f"/data/{COMMIT}", False),
    ],
)
def test_a_root_is_pinned_by_a_whole_commit(root: str, pinned: bool) -> None:
    assert is_pinned(root) is pinned


def test_only_files_that_have_a_fingerprint_are_listed_by_it() -> None:
    assert source_fingerprints(listing("x", ""), [B, A, "none.mp4"]) == {A: "x"}


def test_content_can_change_unseen_without_commit_and_fingerprint() -> None:
    assert can_change_unseen(UNPINNED, listing("x", ""), [A, B])
    assert not can_change_unseen(UNPINNED, listing("x", ""), [A])
    assert not can_change_unseen(PINNED, listing(), [A, B])


def test_a_sidecar_serves_its_files_and_any_part_of_them() -> None:
    for paths in ([A, B], [A], [B], []):
        assert usable(header(), PINNED, listing(), paths) is None
        marked = header(UNPINNED, {A: "x", B: "y"})
        assert usable(marked, UNPINNED, listing("x", "y"), paths) is None


def test_another_revision_of_a_pinned_root_is_the_same_content() -> None:
    assert usable(header(replace(PINNED, revision="v1")), PINNED, listing(), [A]) is None


@pytest.mark.parametrize(
    ("theirs", "ours", "files", "paths", "reason"),
    [
        (header(replace(PINNED, repo_id="x/y")), PINNED, listing(), [A], "repo_id is 'x/y'"),
        (header(replace(PINNED, data_root="s3://x")), PINNED, listing(), [A], "data_root is"),
        (
            header(replace(UNPINNED, revision="v2"), {A: "x"}),
            UNPINNED,
            listing("x"),
            [A],
            "revision is 'v2', wanted 'v3.0'",
        ),
        (header(), PINNED, listing() | {"c.mp4": FileInfo(1)}, ["c.mp4"], "c.mp4: not in the side"),
        (header(), PINNED, {A: FileInfo(1000)}, [A, B], f"{B}: not in the dataset"),
        (header(), PINNED, listing() | {A: FileInfo(999)}, [A], "has 999 bytes, the sidecar says"),
        (header(UNPINNED, {A: "x"}), UNPINNED, listing("z"), [A], "fingerprint is 'z'"),
        (header(UNPINNED), UNPINNED, listing("z"), [A], "fingerprint is 'z', the sidecar says ''"),
        (header(PINNED, {A: "x"}), PINNED, listing(), [A], "fingerprint is ''"),
        (header(UNPINNED), UNPINNED, listing(), [A], "neither a commit nor fingerprints"),
    ],
)
def test_what_differs_is_named(
    theirs: SidecarHeader,
    ours: Identity,
    files: dict[str, FileInfo],
    paths: list[str],
    reason: str,
) -> None:
    found = usable(theirs, ours, files, paths)
    assert found is not None
    assert reason in found
