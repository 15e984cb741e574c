"""A mini-MP4 decodes to the frames it was made for, at the times it promises."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from torchcodec.decoders import VideoDecoder

from lerobot_stream.mp4.mux import MiniMp4, build_mini_mp4, mini_mp4_size
from lerobot_stream.mp4.select import byte_span, present, select_samples
from tests.clips import ALL, FFMPEG, FileBytes, make_clip
from tests.media import needs_ffmpeg, read_number

LENGTHS = (1, 2, 3, 7, 60)


def decode(mini: MiniMp4, rows: list[int], *, one_by_one: bool) -> list[int]:
    """Decode rows of a mini-MP4 and read their numbers; every time must be as promised."""
    decoder = VideoDecoder(
        mini.data,
        custom_frame_mappings=mini.mapping_json(),
        dimension_order="NHWC",
        num_ffmpeg_threads=1,
    )
    if one_by_one:
        frames = [decoder.get_frame_at(row) for row in rows]
        pictures = [frame.data.numpy() for frame in frames]
        seconds = np.array([frame.pts_seconds for frame in frames])
    else:
        batch = decoder.get_frames_at(rows)
        pictures = list(batch.data.numpy())
        seconds = batch.pts_seconds.numpy()
    ticks: NDArray[np.int64] = np.rint(seconds * mini.timescale).astype(np.int64)
    assert ticks.tolist() == mini.pts[rows].tolist()
    return [read_number(picture) for picture in pictures]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=needs_ffmpeg if name in FFMPEG else ()) for name in ALL]
)
def test_every_stretch_decodes_to_its_own_frames(name: str, tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    numbers = make_clip(name, path)
    file = FileBytes(path.read_bytes())
    index = file.index()
    presentation = present(index)
    assert len(presentation.order) == len(numbers)
    generator = np.random.default_rng(0)
    for first in range(len(numbers)):
        length = min(LENGTHS[first % len(LENGTHS)], len(numbers) - first)
        (start,), (stop,) = select_samples(
            index, presentation, np.array([first]), np.array([length])
        )
        span = byte_span(index, start, stop)
        mini = build_mini_mp4(index, start, stop, file.read(span), span.start)
        assert len(mini.data) == mini_mp4_size(index, start, stop)
        place = {sample: row for row, sample in enumerate(mini.samples.tolist())}
        rows = [place[s] for s in presentation.order[first : first + length].tolist()]
        wanted = dict(zip(rows, numbers[first : first + length], strict=True))
        assert decode(mini, rows, one_by_one=False) == list(wanted.values())
        sparse, mixed = rows[::3], generator.permutation(rows)[:8].tolist()
        assert decode(mini, sparse, one_by_one=False) == [wanted[row] for row in sparse]
        assert decode(mini, mixed, one_by_one=True) == [wanted[row] for row in mixed]


def test_a_mini_mp4_stands_alone(tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    numbers = make_clip("hevc-open", path)
    file = FileBytes(path.read_bytes())
    index = file.index()
    span = byte_span(index, 0, len(index))
    mini = build_mini_mp4(index, 0, len(index), file.read(span), span.start)
    decoder = VideoDecoder(mini.data, dimension_order="NHWC")  # without a mapping
    assert [read_number(frame) for frame in decoder[:].numpy()] == list(numbers)
    assert decoder.metadata.average_fps == pytest.approx(10)
