"""Validation finds everything and raises nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lerobot_stream.errors import SourceError
from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.sidecar.build import build_sidecar
from lerobot_stream.sidecar.validate import Problem, Undecided, validate_sidecar
from lerobot_stream.source.base import FileInfo
from tests.media import encode
from tests.sidecar.memory import PINNED, UNPINNED, MemorySource
from tests.sidecar.rewriting import rewrite

A, B = "videos/a.mp4", "videos/b.mp4"


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("videos")
    encode(folder / "a.mp4", range(12), gop=4, bframes=2)
    encode(folder / "b.mp4", range(9))
    return {A: (folder / "a.mp4").read_bytes(), B: (folder / "b.mp4").read_bytes()}


@pytest.fixture
def good(videos: dict[str, bytes], tmp_path: Path) -> Path:
    return build_sidecar(MemorySource(videos), videos, output=tmp_path / "s.npz")


def places(problems: list[Problem]) -> list[tuple[str, str]]:
    return [(problem.file, problem.place) for problem in problems]


def test_a_right_sidecar_has_no_problem(good: Path, videos: dict[str, bytes]) -> None:
    source = MemorySource(videos)
    assert validate_sidecar(good, None) == []
    assert validate_sidecar(good, source, paths=[A, B]) == []
    assert source.count.requests == 0
    assert validate_sidecar(good, source, paths=[A, B], recheck=True) == []
    assert source.count.requests == 2


@pytest.mark.parametrize("data", [None, b"", b"no archive"])
def test_what_is_no_sidecar_is_one_problem(tmp_path: Path, data: bytes | None) -> None:
    path = tmp_path / "s.npz"
    if data is not None:
        path.write_bytes(data)
    (problem,) = validate_sidecar(path, None)
    assert problem.file == str(path)
    assert problem.expected == "a schema-3 sidecar"


def test_each_part_of_the_identity_that_differs_is_named(
    good: Path, videos: dict[str, bytes]
) -> None:
    source = MemorySource(videos, UNPINNED)
    found = validate_sidecar(good, source)
    assert [p.place for p in found] == ["sidecar.revision", "sidecar.data_root"]
    assert found[1].expected == repr(UNPINNED.data_root)
    assert found[1].found == repr(PINNED.data_root)


def test_another_name_of_the_same_commit_is_no_problem(
    good: Path, videos: dict[str, bytes]
) -> None:
    assert validate_sidecar(good, MemorySource(videos, replace(PINNED, revision="v3.0"))) == []


def test_sizes_fingerprints_and_files_that_differ_are_all_named(
    good: Path, videos: dict[str, bytes]
) -> None:
    source = MemorySource({A: videos[A] + b"x"}, PINNED, {A: "new"})
    found = validate_sidecar(good, source)
    assert places(found) == [(A, "size"), (A, "fingerprint"), (B, "file")]
    assert str(found[0]) == (
        f"{A}: size: wanted {len(videos[A]) + 1} bytes, found {len(videos[A])} bytes in the sidecar"
    )


def test_coverage_is_compared_with_the_files_of_the_dataset(good: Path) -> None:
    found = validate_sidecar(good, None, paths=[A, "videos/c.mp4"])
    assert places(found) == [(str(good), "videos/c.mp4"), (str(good), B)]
    rewrite(good, lambda index: index, subset=True)
    assert validate_sidecar(good, None, paths=[A, B, "videos/c.mp4"]) == []


def test_damaged_arrays_are_named_file_by_file(good: Path) -> None:
    rewrite(good, lambda index: replace(index, size=index.size * 1000))
    (problem,) = validate_sidecar(good, None)
    assert problem.place == f"{A}: sample_sizes"


def shift_one(index: Mp4Index) -> Mp4Index:
    times = index.pts_s.copy()
    times[5] += 0.1
    return replace(index, pts_s=times)


def test_times_that_contradict_the_durations_are_found_without_the_file(good: Path) -> None:
    rewrite(good, shift_one)
    (problem,) = validate_sidecar(good, None)
    assert (problem.file, problem.place) == (A, "sample_pts[5]")


def test_a_track_without_sync_samples_is_a_problem(good: Path) -> None:
    rewrite(good, lambda index: replace(index, sync=np.array([], np.int64)))
    assert places(validate_sidecar(good, None)) == [(A, "sync_samples")]


def test_every_array_is_compared_with_the_movie_box(good: Path, videos: dict[str, bytes]) -> None:
    def change(index: Mp4Index) -> Mp4Index:
        movie = replace(index.movie, width=32, stsd_body=index.movie.stsd_body + b"x")
        size = index.size.copy()
        size[[2, 4]] -= 1
        return replace(index, movie=movie, size=size, sync=index.sync[:-1])

    rewrite(good, change)
    assert validate_sidecar(good, MemorySource(videos)) == []
    found = validate_sidecar(good, MemorySource(videos), recheck=True)
    assert places(found) == [
        (A, "mp4.width"),
        (A, "mp4.stsd_body"),
        (A, "sample_sizes[2]"),
        (A, "sync_samples"),
    ]
    assert found[0].expected == "96"
    assert found[0].found == "32"
    assert found[2].found.endswith(", and 1 more differ")


def test_a_source_that_fails_is_a_problem_of_each_file(
    good: Path, videos: dict[str, bytes]
) -> None:
    source = MemorySource(videos, faults={A: SourceError("timed out after 30 s", path=A)})
    (problem,) = validate_sidecar(good, source, recheck=True)
    assert (problem.file, problem.found) == (A, "timed out after 30 s")


def test_a_source_that_cannot_be_listed_decides_nothing(
    good: Path, videos: dict[str, bytes]
) -> None:
    class Away(MemorySource):
        def list_files(self) -> Mapping[str, FileInfo]:
            raise SourceError("no route to host")

    source = Away(videos)
    (problem,) = validate_sidecar(good, source)
    assert isinstance(problem, Undecided)
    assert "nothing was decided" in problem.expected
    assert problem.found == "no route to host"
