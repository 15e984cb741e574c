"""Spans start where decoding can start clean, and hold all that their frames need."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.mp4.select import (
    Presentation,
    byte_span,
    byte_spans,
    present,
    select_samples,
)
from tests.mp4.streams import stream, streams


def select(index: Mp4Index, first: int, length: int) -> tuple[int, int]:
    (start,), (stop,) = select_samples(index, present(index), np.array([first]), np.array([length]))
    return int(start), int(stop)


def gop_of(index: Mp4Index, sample: int) -> int:
    """Give the sync sample that a sample is decoded behind."""
    return max(int(s) for s in index.sync if s <= sample)


def needed(index: Mp4Index, sample: int) -> set[int]:
    """Give what a sample may need: its GOP up to itself, and the one before if it leads."""
    gop = gop_of(index, sample)
    wanted = set(range(gop, sample + 1))
    if index.pts_s[sample] < index.pts_s[gop] and gop > 0:
        wanted |= set(range(gop_of(index, gop - 1), gop))
    return wanted


@given(streams(), st.data())
def test_a_span_holds_all_that_its_frames_need(index: Mp4Index, data: st.DataObject) -> None:
    presentation = present(index)
    frames = len(presentation.order)
    first = data.draw(st.integers(0, frames - 1))
    length = data.draw(st.integers(1, frames - first))
    start, stop = select(index, first, length)
    if start < 0:  # before the first entry: pictures that lead the file's first sync sample
        assert index.pts_s[presentation.order[first]] < index.pts_s[0]
        return
    assert start in index.sync
    held = set(range(start, stop))
    for sample in presentation.order[first : first + length].tolist():
        assert sample in held
        assert needed(index, sample) <= held


@given(streams(), st.data())
def test_a_span_holds_no_gop_more(index: Mp4Index, data: st.DataObject) -> None:
    presentation = present(index)
    first = data.draw(st.integers(0, len(presentation.order) - 1))
    length = data.draw(st.integers(1, len(presentation.order) - first))
    start, stop = select(index, first, length)
    if start < 0:
        return
    wanted = presentation.order[first : first + length].tolist()
    gops = {gop_of(index, sample) for s in wanted for sample in needed(index, s)}
    later = [int(s) for s in index.sync if s > start]
    assert not later or index.pts_s[later[0]] > index.pts_s[wanted[0]]  # a later start is too late
    if presentation.reordered:
        assert gop_of(index, stop - 1) == max(gops)
    else:
        assert stop == max(wanted) + 1


@given(streams())
def test_frames_are_the_samples_from_time_zero_in_order(index: Mp4Index) -> None:
    order = present(index).order
    times = index.pts_s[order]
    assert (np.diff(times) > 0).all()
    assert sorted(order.tolist()) == np.flatnonzero(index.pts_s >= 0).tolist()


@given(streams())
def test_entries_are_frames_that_start_a_span_of_their_own(index: Mp4Index) -> None:
    presentation = present(index)
    frames = len(presentation.order)
    starts = [select(index, first, 1)[0] for first in range(frames)]
    changes = [
        f for f in range(frames) if starts[f] >= 0 and (f == 0 or starts[f] != starts[f - 1])
    ]
    assert presentation.entry.tolist() == changes
    assert presentation.entry_sample.tolist() == [starts[f] for f in changes]


@given(streams(), st.data())
def test_all_spans_at_once_are_those_one_by_one(index: Mp4Index, data: st.DataObject) -> None:
    presentation = present(index)
    frames = len(presentation.order)
    stretches = data.draw(
        st.lists(
            st.integers(0, frames - 1).flatmap(
                lambda first: st.tuples(st.just(first), st.integers(1, frames - first))
            ),
            max_size=8,
        )
    )
    first, length = (np.array([s[k] for s in stretches], dtype=np.int64) for k in (0, 1))
    start, stop = select_samples(index, presentation, first, length)
    assert list(zip(start.tolist(), stop.tolist(), strict=True)) == [
        select(index, *stretch) for stretch in stretches
    ]
    low, high = byte_spans(index, start, stop)
    for k in range(len(stretches)):
        if start[k] < 0:
            assert (low[k], high[k]) == (-1, -1)
        else:
            span = byte_span(index, int(start[k]), int(stop[k]))
            assert (low[k], high[k]) == (span.start, span.stop)


def test_without_reordering_a_span_ends_with_its_last_frame() -> None:
    index = stream([n / 10 for n in range(8)], [0, 4])
    assert select(index, 1, 4) == (0, 5)
    assert select(index, 5, 2) == (4, 7)


def test_with_reordering_a_span_ends_with_its_gop() -> None:
    index = stream([0, 0.2, 0.1, 0.3, 0.5, 0.4], [0, 3])
    assert select(index, 0, 1) == (0, 3)
    assert select(index, 1, 3) == (0, 6)


def test_leading_pictures_need_the_gop_before() -> None:
    index = stream([0, 0.1, 0.4, 0.2, 0.3, 0.5], [0, 2])  # 0.2 and 0.3 lead the one at 0.4
    assert present(index).entry.tolist() == [0, 4]
    assert select(index, 2, 1) == (0, 6)
    assert select(index, 4, 1) == (2, 6)


def test_frames_before_the_first_sync_sample_have_no_span() -> None:
    index = stream([0.2, 0, 0.1, 0.3], [0])
    assert [select(index, first, 1) for first in range(4)] == [(-1, -1)] * 2 + [(0, 4)] * 2


def test_a_trim_inside_a_gop_starts_with_the_hidden_sync_sample() -> None:
    index = stream([-0.3, -0.2, -0.1, 0, 0.1, 0.2], [0, 2, 5])
    presentation = present(index)
    assert presentation.order.tolist() == [3, 4, 5]
    assert presentation.entry.tolist() == [0, 2]
    assert presentation.entry_sample.tolist() == [2, 5]
    assert select(index, 0, 1) == (2, 4)


def test_a_sync_sample_with_older_pictures_still_to_come_is_no_entry() -> None:
    index = stream([0, 0.1, 0.3, 0.2, 0.4], [0, 3])  # joined clips that overlap
    presentation = present(index)
    assert presentation.entry.tolist() == [0]
    assert presentation.gop.tolist() == [0]


def test_h264_starts_early_enough_before_the_end_to_settle() -> None:
    times = [(8 * g + k) / 10 for g in range(5) for k in (0, 3, 1, 2, 6, 4, 5, 7)]
    sync = range(0, 40, 8)
    hevc, h264 = (stream(times, sync, codec=codec) for codec in ("hvc1", "avc1"))
    assert present(hevc).settling == 0
    assert present(h264).settling == 13
    assert present(hevc).entry.tolist() == [0, 8, 16, 24, 32]
    assert present(h264).entry.tolist() == [0, 8, 16, 24]
    assert select(hevc, 8, 1) == (8, 16)
    assert select(h264, 8, 1) == (8, 24)  # one GOP more, so that 13 samples follow
    assert select(h264, 8, 16) == (8, 24)
    assert select(h264, 39, 1) == (24, 40)


def test_h264_without_reordering_needs_no_settling() -> None:
    index = stream([n / 10 for n in range(8)], [0, 2, 4, 6], codec="avc1")
    assert present(index).settling == 0
    assert select(index, 6, 1) == (6, 7)


@pytest.mark.parametrize(("first", "length"), [(-1, 1), (0, 0), (0, 9), (8, 1)])
def test_a_stretch_outside_the_file_is_the_callers_mistake(first: int, length: int) -> None:
    index = stream([n / 10 for n in range(8)], [0])
    with pytest.raises(ValueError, match=f"stretch 0 wants {length} frames from {first}"):
        select(index, first, length)


def test_no_stretches_give_no_spans() -> None:
    index = stream([0, 0.2, 0.1], [0])
    none = np.empty(0, dtype=np.int64)
    presentation: Presentation = present(index)
    assert [len(a) for a in select_samples(index, presentation, none, none)] == [0, 0]
