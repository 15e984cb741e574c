"""Files where counting and time disagree: the right frames, or a refusal by name."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from lerobot_stream.errors import DatasetError
from lerobot_stream.stream.dataset import StreamingLeRobotDataset
from lerobot_stream.stream.map_style import LeRobotDataset
from tests.lerobot import Camera, Written, write_dataset
from tests.media import encode, needs_ffmpeg, read_number
from tests.recordings import FPS, TOP, WRIST, record_joined, shift_from_timestamps


def shown(pictures: torch.Tensor) -> int:
    return read_number(pictures.movedim(0, -1).numpy())


def check_all(written: Written, **settings: object) -> None:
    options = {"root": written.root, "return_uint8": True, **settings}
    stream = StreamingLeRobotDataset("a/b", **options)  # type: ignore[arg-type]
    seen = []
    for item in stream:
        seen.append(int(item["index"]))
        assert shown(item[TOP]) == seen[-1]
    by_number = LeRobotDataset("a/b", **options)  # type: ignore[arg-type]
    assert sorted(seen) == [int(by_number[i]["index"]) for i in range(len(by_number))]
    assert all(shown(by_number[i][TOP]) == int(by_number[i]["index"]) for i in seen)


@needs_ffmpeg
def test_200_joined_clips_whose_times_drift_come_back_right(tmp_path: Path) -> None:
    written = record_joined(tmp_path / "set", clips=200)
    check_all(written)


def test_from_timestamps_one_frame_short_an_episode_come_back_right(tmp_path: Path) -> None:
    written = _record(tmp_path, keyframes=True)
    shift_from_timestamps(written.root, TOP, lambda episode: -(episode % 4) / FPS)
    check_all(written)


def test_a_file_whose_samples_start_late_comes_back_right(tmp_path: Path) -> None:
    written = _record(tmp_path, keyframes=True, editlist=False, bframes=2)
    check_all(written)


@pytest.mark.parametrize("frames_by", ["count", "time"])
def test_doubt_is_refused_by_name_until_somebody_decides(tmp_path: Path, frames_by: str) -> None:
    written = _record(tmp_path, keyframes=False, editlist=False, bframes=2)
    with pytest.raises(DatasetError, match=r"episodes .*: observation.images.top, .*mp4") as caught:
        StreamingLeRobotDataset("a/b", root=written.root)
    assert "--dataset.exclude_episodes" in (caught.value.hint or "")
    if frames_by == "count":
        check_all(written, frames_by=frames_by)


def test_a_camera_that_dropped_frames_costs_its_own_episodes_only(tmp_path: Path) -> None:
    def dropping(path: Path, numbers: Sequence[int]) -> None:
        kept = [number for number in numbers if number not in (20, 21, 22)]
        encode(path, kept, fps=FPS, gop=5)

    def whole(path: Path, numbers: Sequence[int]) -> None:
        encode(path, numbers, fps=FPS, gop=5)

    cameras = {
        TOP: Camera(whole, 4, height=64, width=96),
        WRIST: Camera(dropping, 2, height=64, width=96),
    }
    lengths = [15, 15, 15, 15]
    written = write_dataset(tmp_path / "set", lengths=lengths, fps=FPS, cameras=cameras)
    with pytest.raises(DatasetError, match=rf"episode.* 1.*{WRIST}.*file-000.mp4"):
        StreamingLeRobotDataset("a/b", root=written.root)
    stream = StreamingLeRobotDataset(
        "a/b", root=written.root, exclude_episodes=[1], return_uint8=True
    )
    seen = [(int(item["index"]), shown(item[TOP]), shown(item[WRIST])) for item in stream]
    assert sorted(seen) == [(index, index, index) for index in [*range(15), *range(30, 60)]]


def test_a_drift_of_timestamps_is_told_once_and_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    written = _record(tmp_path, keyframes=False, timestamps=lambda e, f: 0.05 + f * 0.1037)
    with caplog.at_level(logging.WARNING):
        check_all(written)
    told = [record for record in caplog.records if "drift" in record.message]
    assert len(told) == 2  # once by the stream, once by the map-style reader
    assert "in episode" in told[0].message
    assert TOP in told[0].message


def _record(
    tmp_path: Path,
    *,
    keyframes: bool,
    editlist: bool = True,
    bframes: int = 0,
    timestamps: object = None,
) -> Written:
    lengths = [11, 7, 13, 9, 8, 12]
    starts = {sum(lengths[:episode]) for episode in range(len(lengths))}

    def write(path: Path, numbers: Sequence[int]) -> None:
        forced = [i for i, number in enumerate(numbers) if number in starts] if keyframes else []
        encode(path, numbers, fps=FPS, gop=30, bframes=bframes, editlist=editlist, keyframes=forced)

    return write_dataset(
        tmp_path / "set",
        lengths=lengths,
        fps=FPS,
        cameras={TOP: Camera(write, 3, height=64, width=96)},
        timestamps=timestamps,  # type: ignore[arg-type]
    )
