"""Mini-MP4s: as long as predicted, and they hold what was asked for and nothing else."""

from __future__ import annotations

import dataclasses
import io
import itertools
import json
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.mp4.mux import (
    FRAME_TICKS,
    MiniMp4,
    build_mini_mp4,
    mini_mp4_size,
    mini_mp4_sizes,
)
from lerobot_stream.mp4.select import byte_span
from tests.clips import FileBytes, make_clip
from tests.mp4.streams import stream, streams


def payload_of(index: Mp4Index, start: int, stop: int) -> tuple[bytes, int]:
    """Give bytes for a run: each sample is filled with its number, gaps with 255."""
    span = byte_span(index, start, stop)
    data = bytearray(b"\xff" * len(span))
    for i in range(start, stop):
        at = int(index.offset[i]) - span.start
        data[at : at + int(index.size[i])] = bytes([i]) * int(index.size[i])
    return bytes(data), span.start


def build(index: Mp4Index, start: int, stop: int) -> MiniMp4:
    return build_mini_mp4(index, start, stop, *payload_of(index, start, stop))


@st.composite
def cuts(draw: st.DrawFn) -> tuple[Mp4Index, int, int]:
    index = draw(streams(codec=draw(st.sampled_from(["avc1", "hvc1"]))))
    start = draw(st.integers(0, len(index) - 1))
    return index, start, draw(st.integers(start + 1, len(index)))


@given(cuts())
def test_the_size_is_as_predicted(cut: tuple[Mp4Index, int, int]) -> None:
    index, start, stop = cut
    assert len(build(index, start, stop).data) == mini_mp4_size(index, start, stop)


@given(streams(), st.data())
def test_all_sizes_at_once_are_those_one_by_one(index: Mp4Index, data: st.DataObject) -> None:
    borders = st.integers(0, len(index))
    pairs = data.draw(st.lists(st.tuples(borders, borders).map(sorted), max_size=8))
    start, stop = (np.array([pair[k] for pair in pairs], dtype=np.int64) for k in (0, 1))
    assert mini_mp4_sizes(index, start, stop).tolist() == [
        mini_mp4_size(index, *pair) if pair[0] < pair[1] else 0 for pair in pairs
    ]


@given(cuts())
def test_it_holds_the_samples_in_decoding_order_without_gaps(
    cut: tuple[Mp4Index, int, int],
) -> None:
    index, start, stop = cut
    mini = build(index, start, stop)
    samples = b"".join(bytes([i]) * int(index.size[i]) for i in range(start, stop))
    assert mini.data.endswith(samples)
    assert mini.data[: -len(samples)].endswith((8 + len(samples)).to_bytes(4) + b"mdat")


@given(cuts())
def test_ffmpeg_reads_back_every_sample(cut: tuple[Mp4Index, int, int]) -> None:
    index, start, stop = cut
    assume(start in index.sync)
    # a codec that FFmpeg does not know, so that it looks into no sample
    stsd = b"\0\0\0\0\0\0\0\1" + b"\0\0\0\x56none" + bytes(6) + b"\0\1" + bytes(16)
    stsd += (96).to_bytes(2) + (64).to_bytes(2) + bytes(46) + (24).to_bytes(2) + b"\xff\xff"
    index = dataclasses.replace(index, movie=dataclasses.replace(index.movie, stsd_body=stsd))
    mini = build(index, start, stop)
    with av.open(io.BytesIO(mini.data), "r", format="mp4") as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
        assert container.streams.video[0].time_base == Fraction(1, mini.timescale)
    assert [bytes(packet) for packet in packets] == [
        bytes([i]) * int(index.size[i]) for i in range(start, stop)
    ]
    pts, dts = ([int(getattr(p, name)) for p in packets] for name in ("pts", "dts"))
    assert sorted(pts) == mini.pts.tolist()
    keys = sorted(time for packet, time in zip(packets, pts, strict=True) if packet.is_keyframe)
    assert keys == mini.pts[mini.key_frame].tolist()
    assert all(a < b for a, b in itertools.pairwise(dts))
    assert all(a <= b for a, b in zip(dts, pts, strict=True))


@given(cuts())
def test_pictures_are_a_frame_apart_in_order_of_time(cut: tuple[Mp4Index, int, int]) -> None:
    index, start, stop = cut
    mini = build(index, start, stop)
    assert sorted(mini.samples.tolist()) == list(range(start, stop))
    assert (np.diff(index.pts_s[mini.samples]) > 0).all()
    assert set(np.diff(mini.pts).tolist()) <= {mini.duration}
    assert mini.duration == FRAME_TICKS


@given(streams(codec="hvc1"))
def test_key_frames_are_the_sync_samples(index: Mp4Index) -> None:
    mini = build(index, 0, len(index))
    assert sorted(mini.samples[mini.key_frame].tolist()) == index.sync.tolist()


def test_h264_sync_samples_near_the_end_are_not_offered() -> None:
    times = [(8 * g + k) / 10 for g in range(5) for k in (0, 3, 1, 2, 6, 4, 5, 7)]
    mini = build(stream(times, range(0, 40, 8), codec="avc1"), 0, 40)
    assert mini.samples[mini.key_frame].tolist() == [0, 8, 16, 24]


def test_the_mapping_lists_every_picture() -> None:
    mini = build(stream([0, 0.2, 0.1, 0.3], [0, 3]), 0, 4)
    assert json.loads(mini.mapping_json()) == {
        "frames": [
            {"pts": pts, "duration": 1000, "key_frame": key}
            for pts, key in zip(mini.pts.tolist(), [1, 0, 0, 1], strict=True)
        ]
    }


def test_equal_and_far_times_reach_no_decoder() -> None:
    mini = build(stream([0, 1e6, 1e6, 1e9], [0]), 0, 4)
    assert mini.samples.tolist() == [0, 1, 2, 3]
    assert mini.pts.tolist() == [0, 1000, 2000, 3000]


@pytest.mark.parametrize(
    ("ticks", "timescale"), [(100, 10_000), (33, 30_303), (0, 30_000), (1 << 40, 1)]
)
def test_ticks_a_second_give_playback_its_speed(ticks: int, timescale: int) -> None:
    index = stream([0, 0.1], [0])
    index = dataclasses.replace(index, duration=np.full(2, ticks))
    assert build(index, 0, 2).timescale == timescale


def test_more_than_4_gib_of_samples_get_a_64_bit_size() -> None:
    small = stream([0, 0.1], [0], sizes=[1 << 31, (1 << 31) - 9])
    large = stream([0, 0.1], [0], sizes=[1 << 31, (1 << 31) - 8])
    assert mini_mp4_size(large, 0, 2) - mini_mp4_size(small, 0, 2) == 1 + 8


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (2, 1), (-1, 2), (0, 4)])
def test_a_run_outside_the_file_is_the_callers_mistake(start: int, stop: int) -> None:
    with pytest.raises(ValueError, match="are no run of 3 samples"):
        build_mini_mp4(stream([0, 0.1, 0.2], [0]), start, stop, bytes(100), 28)


@pytest.mark.parametrize(("cut", "offset"), [(slice(1, None), 29), (slice(None, -1), 28)])
def test_a_payload_that_lacks_bytes_is_the_callers_mistake(cut: slice, offset: int) -> None:
    index = stream([0, 0.1, 0.2], [0])
    payload, _ = payload_of(index, 0, 3)
    with pytest.raises(ValueError, match="do not hold all of samples"):
        build_mini_mp4(index, 0, 3, payload[cut], offset)


def test_bytes_around_the_run_are_left_out() -> None:
    index = stream([n / 10 for n in range(6)], [0, 2, 4])
    payload, offset = payload_of(index, 0, 6)
    assert build_mini_mp4(index, 2, 4, memoryview(payload), offset).data == build(index, 2, 4).data


def test_interleaved_sound_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    make_clip("h264-faststart-audio", path)
    file = FileBytes(path.read_bytes())
    index = file.index()
    assert (index.offset[1:] != (index.offset + index.size)[:-1]).any()
    span = byte_span(index, 0, len(index))
    mini = build_mini_mp4(index, 0, len(index), file.read(span), span.start)
    again = FileBytes(mini.data).index()
    assert len(again) == len(index)
    for i in range(len(index)):
        whole, part = (
            f.data[int(x.offset[i]) : int(x.offset[i] + x.size[i])]
            for f, x in ((file, index), (FileBytes(mini.data), again))
        )
        assert whole == part
