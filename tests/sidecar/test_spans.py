"""Spans name, for each episode and camera, exactly the frames that the episode is made of."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.dataset.episodes import EpisodeTable, read_episodes
from lerobot_stream.dataset.info import Info, parse_info
from lerobot_stream.errors import FormatError, MissingFileError, SidecarError
from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.mp4.mux import build_mini_mp4
from lerobot_stream.mp4.probe import read_mp4_index
from lerobot_stream.mp4.select import present
from lerobot_stream.sidecar.spans import Spans, plan_spans
from lerobot_stream.source.local import LocalSource
from lerobot_stream.source.ranges import read_file
from lerobot_stream.span import Span
from tests.lerobot import Camera, edit_episodes, write_dataset
from tests.media import concat, encode, needs_ffmpeg, read_numbers, trim
from tests.sidecar.synthetic import FPS, make_index, make_table

IndexOf = Callable[[str], Mp4Index]


def plan(table: EpisodeTable, indexes: Mapping[str, Mp4Index] | IndexOf, **options: Any) -> Spans:
    index_of = indexes if callable(indexes) else indexes.__getitem__
    settings = {"paths": None, "fps": FPS, "tolerance_s": 1e-4} | options
    return plan_spans(index_of, table, tuple(table.video_paths), **settings)


def messages(spans: Spans) -> list[str]:
    return [f"{problem.severity} {problem}" for problem in spans.problems]


def test_cameras_that_roll_over_at_different_episodes_are_read_each_by_its_own_files() -> None:
    lengths = [17, 14, 19, 20]
    table = make_table(
        lengths,
        {
            "top": (["t0", "t1"], [0, 0, 1, 1], np.array([0, 17, 0, 19]) / FPS),
            "wrist": (["w0", "w1"], [0, 0, 0, 1], np.array([0, 17, 31, 0]) / FPS),
        },
    )
    sizes = {"t0": 31, "t1": 39, "w0": 50, "w1": 20}
    spans = plan(table, {path: make_index(n) for path, n in sizes.items()})
    assert spans.problems == ()
    assert spans.paths == ("t0", "t1", "w0", "w1")
    assert spans.file.tolist() == [[0, 2], [0, 2], [1, 2], [1, 3]]
    assert spans.first_frame.tolist() == [[0, 0], [17, 17], [0, 31], [19, 0]]
    assert spans.placed.all()
    # with a sync sample at every other place an odd start needs the one before
    assert spans.start_sample[1].tolist() == [16, 16]
    assert spans.stop_sample[1].tolist() == [31, 31]
    assert spans.start_byte[1].tolist() == [40 + 1600] * 2
    assert spans.stop_byte[1].tolist() == [40 + 3100] * 2
    assert (spans.bytes_of_episode() == spans.mini_bytes.sum(1)).all()
    assert (spans.mini_bytes > 100 * np.array(lengths)[:, None]).all()
    assert spans.drift_s.max() < 1e-9


def test_entries_are_counted_from_the_episode_and_begin_with_its_first_frame() -> None:
    table = make_table([5, 4, 6], {"top": (["a"], [0, 0, 0], np.array([0, 5, 9]) / FPS)})
    spans = plan(table, {"a": make_index(15, gop=3)})
    assert [spans.entries(e, 0).tolist() for e in range(3)] == [[0, 3], [0, 1], [0, 3]]


@given(st.data())
def test_entries_of_any_file_are_those_of_its_presentation(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=8))
    total, starts = sum(lengths), np.cumsum(lengths) - lengths
    sync = data.draw(st.sets(st.integers(0, total - 1))) | {0}
    index = make_index(total, sync=sorted(sync))
    files = {"a": index, "b": make_index(total, gop=1)}
    cameras = {key: ([key], [0] * len(lengths), starts / FPS) for key in files}
    spans = plan(make_table(lengths, cameras), files)
    for e, (start, length) in enumerate(zip(starts.tolist(), lengths, strict=True)):
        inside = {frame - start for frame in sync if start <= frame < start + length}
        assert spans.entries(e, 0).tolist() == sorted({0} | inside)
        assert spans.entries(e, 1).tolist() == list(range(length))
        assert spans.start_sample[e, 0] == max(s for s in sync if s <= start)
        assert spans.stop_sample[e, 0] == start + length


def test_unselected_neighbours_take_part() -> None:
    # the first episode lost two frames; only the second one's start shows it
    cameras = {"top": (["a", "b"], [0, 0, 1], np.array([0, 8, 0]) / FPS)}
    spans = plan(make_table([10, 5, 4], cameras), {"a": make_index(13)}, paths=["a"])
    assert spans.paths == ("a",)
    assert spans.file.tolist() == [[0], [0], [-1]]
    assert spans.placed.tolist() == [[False], [True], [False]]
    assert messages(spans) == [
        "error a: episode 0, top: 2 frames missing (8 of 10): the next episode starts there"
    ]


def test_each_file_is_asked_for_once_and_let_go() -> None:
    asked: list[str] = []

    def index_of(path: str) -> Mp4Index:
        asked.append(path)
        return make_index(12)

    cameras = {
        key: (["a", "b"], [0, 1, 0, 1], np.array([0, 0, 6, 6]) / FPS) for key in ("top", "wrist")
    }
    assert plan(make_table([6] * 4, cameras), index_of).placed.all()
    assert asked == ["a", "b"]


def test_an_episode_without_a_file_is_an_error() -> None:
    spans = plan(make_table([4, 4], {"top": (["a"], [0, -1], [0.0, np.nan])}), {"a": make_index(4)})
    assert messages(spans) == ["error episode 1, top: the metadata name no video file"]
    assert spans.file.tolist() == [[0], [-1]]
    assert spans.bytes_of_episode()[1] == 0


def test_an_episode_without_frames_has_none_and_is_no_problem() -> None:
    cameras = {"top": (["a"], [0, 0, 0], np.array([0, 4, 4]) / FPS)}
    spans = plan(make_table([4, 0, 4], cameras), {"a": make_index(8)})
    assert spans.problems == ()
    assert spans.placed.tolist() == [[True], [False], [True]]


@pytest.mark.parametrize("kind", [FormatError, MissingFileError])
def test_a_damaged_file_is_an_error_of_its_own_episodes(
    kind: type[FormatError | MissingFileError],
) -> None:
    def index_of(path: str) -> Mp4Index:
        if path == "a":
            raise kind("has no moov box", path="a", hint="record it again")
        return make_index(10)

    cameras = {"top": (["a", "b"], [0, 0, 1], np.array([0, 4, 0]) / FPS)}
    spans = plan(make_table([4, 6, 10], cameras), index_of)
    assert messages(spans) == [
        "error a: episode 0, top: has no moov box",
        "error a: episode 1, top: has no moov box",
    ]
    assert spans.placed.tolist() == [[False], [False], [True]]
    assert spans.problems[1].hint == "record it again"


def test_a_file_that_the_sidecar_does_not_hold_is_the_callers_fault() -> None:
    def index_of(path: str) -> Mp4Index:
        raise SidecarError("not among the files", path=path)

    table = make_table([4], {"top": (["a"], [0], [0.0])})
    with pytest.raises(SidecarError, match="a: not among the files"):
        plan(table, index_of)


def test_frames_before_the_first_sync_sample_are_an_error() -> None:
    cameras = {"top": (["a"], [0, 0], np.array([0, 4]) / FPS)}
    spans = plan(make_table([4, 6], cameras), {"a": make_index(10, sync=[4])})
    assert messages(spans) == [
        "error a: episode 0, top: its first frames cannot be decoded: no sync sample comes before"
        " them"
    ]
    assert spans.placed.tolist() == [[False], [True]]
    assert spans.first_frame.tolist() == [[-1], [4]]
    assert spans.bytes_of_episode()[0] == 0


def test_ambiguity_names_both_numbers_and_is_settled_by_the_option() -> None:
    cameras = {"top": (["a"], [0, 0], np.array([0, 5]) / FPS)}
    table, files = make_table([6, 4], cameras), {"a": make_index(10, gop=1)}
    assert [p.severity for p in plan(table, files).problems] == ["error", "error"]
    assert plan(table, files, frames_by="count").first_frame.tolist() == [[0], [6]]
    by_time = plan(table, files, frames_by="time")
    assert by_time.first_frame.tolist() == [[-1], [5]]


def test_drift_is_the_worst_distance_from_an_even_rate() -> None:
    times = np.arange(10) / FPS
    times[7] += 0.01
    cameras = {"top": (["a"], [0, 0], np.array([0, 5]) / FPS)}
    spans = plan(make_table([5, 5], cameras), {"a": make_index(10, times_s=times)})
    assert spans.drift_s[:, 0].tolist() == pytest.approx([0, 0.01])


def test_problems_come_by_episode_and_camera() -> None:
    cameras = {key: ([key], [0, 0], np.array([0, 4]) / FPS) for key in ("z", "a")}
    spans = plan(make_table([4, 4], cameras), {"z": make_index(7), "a": make_index(6)})
    assert [(p.episode, p.video_key) for p in spans.problems] == [(1, "z"), (1, "a")]
    assert [p.found for p in spans.problems] == ["3 frames", "2 frames"]


def test_spans_go_to_another_process() -> None:
    spans = plan(make_table([4], {"top": (["a"], [0], [0.0])}), {"a": make_index(4)})
    again = pickle.loads(pickle.dumps(spans))
    np.testing.assert_array_equal(again.stop_byte, spans.stop_byte)


def test_a_dataset_without_video_has_no_spans() -> None:
    spans = plan(make_table([4, 5], {}), {})
    assert spans.bytes_of_episode().tolist() == [0, 0]
    assert spans.entry_start.tolist() == [0]


def test_a_hundred_thousand_episodes_are_placed_together() -> None:
    # a loop over episodes would take minutes here, and the test's own time limit
    num_episodes, per_file = 100_000, 500
    lengths = np.full(num_episodes, 8)
    file = np.arange(num_episodes) // per_file
    starts = np.arange(num_episodes) % per_file * 8 / FPS
    names = {key: [f"{key}{i}" for i in range(num_episodes // per_file)] for key in "abc"}
    index = make_index(per_file * 8)
    table = make_table(lengths, {key: (paths, file, starts) for key, paths in names.items()})
    spans = plan(table, lambda path: index)
    assert spans.placed.all()
    assert spans.problems == ()
    assert len(spans.entry_frame) == num_episodes * 3 * 4


class Read:
    """A dataset in a folder and its videos."""

    def __init__(self, root: Path) -> None:
        self.source = LocalSource(root, repo_id="robots/arm")
        self.info: Info = parse_info(read_file(self.source, "meta/info.json"))
        self.table = read_episodes(self.source, self.info)

    def index(self, path: str) -> Mp4Index:
        size = self.source.list_files()[path].size
        return read_mp4_index(lambda span: self.source.read(path, span), file_size=size, path=path)

    def plan(self, **options: Any) -> Spans:
        return plan(self.table, self.index, fps=self.info.fps, **options)

    def frames(self, spans: Spans, number: int, camera: int, folder: Path) -> list[int]:
        """The numbers in an episode's pictures, decoded from its mini-MP4."""
        path = spans.paths[spans.file[number, camera]]
        index = self.index(path)
        start, stop = int(spans.start_byte[number, camera]), int(spans.stop_byte[number, camera])
        payload = self.source.read(path, Span(start, stop))
        samples = spans.start_sample[number, camera], spans.stop_sample[number, camera]
        mini = build_mini_mp4(index, int(samples[0]), int(samples[1]), payload, start)
        assert len(mini.data) == spans.mini_bytes[number, camera]
        (folder / "mini.mp4").write_bytes(mini.data)
        seen = dict(zip(mini.samples.tolist(), read_numbers(folder / "mini.mp4"), strict=True))
        first = spans.first_frame[number, camera]
        order = present(index).order
        return [seen[i] for i in order[first : first + self.table.length[number]].tolist()]


ENCODINGS: dict[str, dict[str, Any]] = {
    "h264 g=2": {"gop": 2},
    "h264 g=12 B-frames": {"gop": 12, "bframes": 2},
    "hevc g=8 B-frames": {"codec": "hevc", "gop": 8, "bframes": 2},
    "av1 g=2": {"codec": "av1", "gop": 2},
    "vp9 g=10": {"codec": "vp9", "gop": 10},
    "with audio": {"gop": 6, "audio": True},
}


@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS.keys())
def test_every_frame_of_every_episode_comes_back(tmp_path: Path, encoding: dict[str, Any]) -> None:
    lengths = (7, 12, 5, 9)
    cameras = {
        "observation.images.top": Camera(lambda p, n: encode(p, n, **encoding), 2),
        "observation.images.wrist": Camera(lambda p, n: encode(p, n, **encoding), (3, 1)),
    }
    written = write_dataset(tmp_path / "data", lengths=lengths, cameras=cameras)
    read = Read(written.root)
    spans = read.plan()
    assert [p for p in spans.problems if p.severity == "error"] == []
    for number, (start, length) in enumerate(zip(written.starts, lengths, strict=True)):
        for camera in range(2):
            found = read.frames(spans, number, camera, tmp_path)
            assert found == list(range(start, start + length))


def test_frames_of_clips_that_start_late_are_counted(tmp_path: Path) -> None:
    lengths = (7, 12, 5, 9)

    def write(path: Path, numbers: Sequence[int]) -> None:
        keyframes = [numbers.index(start) for start in (0, 7, 19, 24) if start in numbers]
        encode(path, numbers, gop=50, bframes=2, editlist=False, keyframes=keyframes)

    written = write_dataset(tmp_path / "data", lengths=lengths, cameras={"top": Camera(write)})
    read = Read(written.root)
    spans = read.plan()
    assert [p.severity for p in spans.problems] == ["warning", "warning"]
    for number, (start, length) in enumerate(zip(written.starts, lengths, strict=True)):
        assert read.frames(spans, number, 0, tmp_path) == list(range(start, start + length))


@needs_ffmpeg
def test_frames_behind_a_trim_inside_a_gop_come_back(tmp_path: Path) -> None:
    def write(path: Path, numbers: Any) -> None:
        whole = path.with_name("whole.mp4")
        encode(whole, [9999] * 3 + list(numbers), gop=12)
        trim(whole, path, start_s=0.3)
        whole.unlink()

    written = write_dataset(tmp_path / "data", lengths=(8, 7), cameras={"top": Camera(write)})
    read = Read(written.root)
    spans = read.plan()
    assert spans.problems == ()
    assert spans.start_sample[0, 0] == 0
    assert read.frames(spans, 0, 0, tmp_path) == list(range(8))
    assert read.frames(spans, 1, 0, tmp_path) == list(range(8, 15))


@needs_ffmpeg
def test_episodes_joined_by_ffmpeg_come_back_though_their_times_drift(tmp_path: Path) -> None:
    lengths = tuple(np.random.default_rng(1).integers(3, 7, 60).tolist())

    def write(path: Path, numbers: Any) -> None:
        clips, at = [], 0
        for i, length in enumerate(lengths):
            clips.append(tmp_path / f"{i}.mp4")
            encode(clips[-1], list(numbers)[at : at + length], codec="mpeg4", gop=6, fps=30)
            at += length
        concat(clips, path)

    written = write_dataset(
        tmp_path / "data", lengths=lengths, fps=30, cameras={"top": Camera(write, 60)}
    )
    read = Read(written.root)
    spans = read.plan()
    assert [p for p in spans.problems if p.severity == "error"] == []
    assert spans.first_frame[:, 0].tolist() == list(written.starts)
    for number in (0, 1, 30, 59):
        start = written.starts[number]
        found = read.frames(spans, number, 0, tmp_path)
        assert found == list(range(start, start + lengths[number]))


def test_a_short_video_names_what_is_missing_and_spares_the_others(tmp_path: Path) -> None:
    def write(path: Path, numbers: Any) -> None:
        encode(path, list(numbers)[:-3] if "file-001" in str(path) else numbers)

    top = "observation.images.top"
    written = write_dataset(
        tmp_path / "data", lengths=(17, 14, 19, 20), cameras={top: Camera(write)}
    )
    read = Read(written.root)
    spans = read.plan()
    path = written.video_paths[top][3]
    assert messages(spans) == [f"error {path}: episode 3, {top}: 3 frames missing (17 of 20)"]
    assert spans.placed[:, 0].tolist() == [True, True, True, False]
    assert read.frames(spans, 2, 0, tmp_path) == list(range(31, 50))


def test_an_end_that_is_written_a_frame_short_loses_nothing(tmp_path: Path) -> None:
    written = write_dataset(tmp_path / "data", lengths=(6, 5), cameras={"top": Camera(encode)})

    def shorten(row: dict[str, Any]) -> None:
        row["videos/top/to_timestamp"] -= 0.1

    edit_episodes(written.root, shorten)
    read = Read(written.root)
    spans = read.plan()
    assert spans.problems == ()
    assert read.frames(spans, 1, 0, tmp_path) == list(range(6, 11))
