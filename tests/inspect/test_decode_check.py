"""Pictures through mini-MP4s equal the file's own, and where they do not it is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.dataset.metadata import read_metadata
from lerobot_stream.errors import SourceError
from lerobot_stream.inspect.decode_check import check_decoding, plan_samples
from lerobot_stream.inspect.sidecar_check import check_sidecar
from lerobot_stream.inspect.whole_video import WholeVideo
from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.mp4.select import present
from lerobot_stream.sidecar.build import build_sidecar
from lerobot_stream.sidecar.schema import Sidecar
from lerobot_stream.sidecar.spans import plan_spans
from lerobot_stream.sidecar.validate import Problem, Undecided
from lerobot_stream.source.local import LocalSource
from lerobot_stream.span import Span
from tests.lerobot import Camera, Written, write_dataset
from tests.media import encode, read_number
from tests.recordings import TOP, WRIST, WRITERS, record
from tests.sidecar.rewriting import rewrite
from tests.sidecar.synthetic import make_index, make_table

LENGTHS = (7, 5, 12, 1, 9)


def build(written: Written, output: Path) -> Path:
    source = LocalSource(written.root, repo_id="a/b")
    paths = [path for path in source.list_files() if path.endswith(".mp4")]
    return build_sidecar(source, paths, output=output)


def check(written: Written, file: Path, source: LocalSource | None = None) -> list[Problem]:
    opened = source or LocalSource(written.root, repo_id="a/b")
    sidecar = Sidecar(file)
    try:
        return check_decoding(opened, read_metadata(opened), sidecar)
    finally:
        sidecar.close()


@pytest.mark.parametrize("writer", WRITERS)
def test_a_right_sidecar_leads_to_the_files_own_pictures(writer: str, tmp_path: Path) -> None:
    written = record(tmp_path / "set", WRITERS[writer], lengths=LENGTHS)
    assert check(written, build(written, tmp_path / "s.npz")) == []


@pytest.mark.parametrize(
    "writer", ["h264-g30-b-open", "edit-list-trim", "no-edit-list-b", "av1-g30"]
)
def test_a_whole_file_gives_each_frame_by_its_number(writer: str, tmp_path: Path) -> None:
    written = record(tmp_path / "set", WRITERS[writer], lengths=LENGTHS)
    sidecar = Sidecar(build(written, tmp_path / "s.npz"))
    path = written.video_paths[WRIST][0]
    first = sum(LENGTHS[: written.episodes_of(path)[0]])
    index = sidecar.index(path)
    whole = WholeVideo(LocalSource(written.root, repo_id="a/b"), path, index)
    for number in reversed(range(len(present(index).order))):
        grey = whole.frame(number).mean(axis=-1).astype(np.uint8)
        assert read_number(grey) == first + number


@pytest.fixture(scope="module")
def intra(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """One camera whose pictures all stand alone."""
    camera = Camera(lambda path, numbers: encode(path, numbers, gop=1), width=96)
    folder = tmp_path_factory.mktemp("intra")
    return write_dataset(folder / "set", lengths=LENGTHS, cameras={TOP: camera})


@pytest.fixture
def file(intra: Written, tmp_path: Path) -> Path:
    return build(intra, tmp_path / "s.npz")


def one_further(index: Mp4Index) -> Mp4Index:
    """Each frame becomes the sample behind its own; the last one keeps it."""
    take = np.minimum(np.arange(len(index)) + 1, len(index) - 1)
    return replace(index, size=index.size[take], offset=index.offset[take])


def into_the_middle(index: Mp4Index) -> Mp4Index:
    """No sample starts where the sidecar says."""
    return replace(index, size=index.size - 3, offset=index.offset + 3)


def test_another_picture_is_told_by_episode_and_frame(intra: Written, file: Path) -> None:
    rewrite(file, one_further)
    problems = check(intra, file)
    path = intra.video_paths[TOP][0]
    assert {problem.file for problem in problems} == {path}
    # the first file holds two episodes; its very last frame is still the right one
    assert [problem.place for problem in problems] == [
        f"episode {episode}, {TOP}, frame {frame}"
        for episode, frames in ((0, (0, 3, 6)), (1, (0, 2)))
        for frame in frames
    ]
    assert all("pixels" in problem.found for problem in problems)
    assert not any(isinstance(problem, Undecided) for problem in problems)


def test_what_cannot_be_decoded_is_told(intra: Written, file: Path) -> None:
    rewrite(file, into_the_middle)
    assert {problem.expected for problem in check(intra, file)} == {"pictures through a mini-MP4"}


def test_all_arrays_and_pictures_are_checked_together(intra: Written, file: Path) -> None:
    source = LocalSource(intra.root, repo_id="a/b")
    assert check_sidecar(file, source, deep=True) == []
    rewrite(file, one_further)
    assert check_sidecar(file, source, deep=False) == []
    places = [problem.place for problem in check_sidecar(file, source, deep=True)]
    assert any(place.startswith("sample_offsets[") for place in places)
    assert any("frame" in place for place in places)


class Failing(LocalSource):
    """Fails at the media data, not before."""

    reads = 0

    def read(self, path: str, span: Span) -> bytes:
        if path.endswith(".mp4"):
            self.reads += 1
            raise SourceError("no route to host", path=path)
        return super().read(path, span)


def test_a_source_that_fails_decides_nothing_and_is_left_alone(intra: Written, file: Path) -> None:
    source = Failing(intra.root, repo_id="a/b")
    problems = check(intra, file, source)
    assert problems
    assert all(isinstance(problem, Undecided) for problem in problems)
    assert {problem.found for problem in problems} == {"no route to host"}
    assert source.reads <= 4  # one for each thread


@given(st.lists(st.integers(1, 40), min_size=1, max_size=12))
def test_samples_spread_from_the_first_frame_to_the_last(lengths: list[int]) -> None:
    count = len(lengths)
    table = make_table(lengths, {"top": (["a"], [0] * count, np.cumsum([0, *lengths[:-1]]) / 30)})
    index = make_index(sum(lengths))
    spans = plan_spans(lambda path: index, table, ["top"], paths=None, fps=30, tolerance_s=1e-4)
    samples = plan_samples(spans, table.length, "a")
    numbers = [sample.number for sample in samples]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == min(3, count)
    assert {0, count - 1} >= {numbers[0], numbers[-1]}
    for sample in samples:
        frames, length = sample.frames.tolist(), lengths[sample.number]
        assert len(frames) == min(3, length)
        assert (frames[0], frames[-1]) == (0, length - 1)
