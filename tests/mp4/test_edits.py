"""Edit lists: what a sidecar can hold is applied, the rest is refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from lerobot_stream.errors import FormatError
from lerobot_stream.mp4.boxes import (
    Extract,
    make_box,
    make_full_box,
    parse_header,
)
from lerobot_stream.mp4.edits import UNIT_RATE, Edit, parse_edits, presentation_shift
from lerobot_stream.span import Span

CTS = np.arange(10) * 100  # 10 samples, a tenth of a second apart


def shift(*edits: Edit, movie_timescale: int = 1000) -> int:
    return presentation_shift(
        edits, CTS, timescale=1000, movie_timescale=movie_timescale, path="a.mp4"
    )


def media(start: int, duration: int = 0, rate: int = UNIT_RATE) -> Edit:
    return Edit(duration, start, rate)


def empty(duration: int) -> Edit:
    return Edit(duration, -1, UNIT_RATE)


def read(*edits: Edit, version: int) -> tuple[Edit, ...]:
    wide = 8 if version else 4
    rows = [
        e.duration.to_bytes(wide)
        + e.media_time.to_bytes(wide, signed=True)
        + e.rate.to_bytes(4, signed=True)
        for e in edits
    ]
    elst = make_full_box("elst", len(rows).to_bytes(4), *rows, version=version)
    extract = Extract("a.mp4", 0, make_box("trak", make_box("edts", elst)))
    return parse_edits(extract, parse_header(extract, 0, within=Span(0, extract.stop)))


@given(
    st.lists(
        st.builds(
            Edit,
            st.integers(0, 2**32 - 1),
            st.integers(-1, 2**31 - 1),
            st.integers(-(2**31), 2**31 - 1),
        ),
        max_size=3,
    ),
    st.sampled_from([0, 1]),
)
def test_both_versions_are_read_as_written(edits: list[Edit], version: int) -> None:
    assert read(*edits, version=version) == tuple(edits)


def test_64_bit_edits_are_read() -> None:
    long = Edit(1 << 40, 1 << 41, UNIT_RATE)
    assert read(long, version=1) == (long,)


def test_a_track_without_an_edit_list_keeps_its_times() -> None:
    extract = Extract("a.mp4", 0, make_box("trak"))
    assert parse_edits(extract, parse_header(extract, 0, within=Span(0, 8))) == ()
    assert shift() == 0


def test_a_count_beyond_the_box_is_refused() -> None:
    elst = make_full_box("elst", (1 << 31).to_bytes(4), bytes(12))
    extract = Extract("a.mp4", 0, make_box("trak", make_box("edts", elst)))
    with pytest.raises(FormatError, match=r"trak/edts/elst at byte 16: 2147483648 edits need"):
        parse_edits(extract, parse_header(extract, 0, within=Span(0, extract.stop)))


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(FormatError, match="unknown version 2"):
        read(media(0), version=2)


def test_a_trim_moves_what_lies_before_it_below_zero() -> None:
    assert shift(media(250)) == -250
    assert np.count_nonzero(shift(media(250)) + CTS < 0) == 3


def test_an_empty_edit_delays() -> None:
    assert shift(empty(40), media(0)) == 40


def test_a_trim_behind_a_short_empty_edit_stays_below_zero() -> None:
    moved = shift(empty(49), media(250)) + CTS  # FFmpeg cuts leading pictures like this
    assert moved[:4].tolist() == [-201, -101, -1, 99]


def test_an_empty_edit_is_rounded_to_the_nearest_tick() -> None:
    assert [shift(empty(n), media(0), movie_timescale=600) for n in (1, 2, 3)] == [2, 3, 5]


def test_an_empty_edit_of_no_length_is_none() -> None:
    assert shift(empty(0), media(250)) == -250


@pytest.mark.parametrize("duration", [0, 901, 999, 1000, 5000])
def test_an_edit_that_reaches_the_last_sample_cuts_nothing(duration: int) -> None:
    assert shift(media(0, duration)) == 0  # 0: to the end


def test_movie_ticks_longer_than_a_sample_are_forgiven_one() -> None:
    assert shift(media(0, 1), movie_timescale=2) == 0  # half seconds: 0.5 s of 1 s, rounded
    with pytest.raises(FormatError, match="cuts the tail, at tick 1000, the last sample is at 1"):
        presentation_shift(
            [media(0, 1)], np.array([0, 900, 1000]), timescale=1000, movie_timescale=2, path=""
        )


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        pytest.param([media(0, 800)], "cuts the tail, at tick 800, .* at 900", id="cut tail"),
        pytest.param([media(0, 900)], "cuts the tail", id="one sample cut"),
        pytest.param([media(200, 650)], "cuts the tail", id="cut tail behind a trim"),
        pytest.param(
            [empty(50), media(250)],
            r"cuts 0\.250 s from the front, behind an empty edit",
            id="cut front behind an empty edit",
        ),
        pytest.param([media(901)], "starts at tick 901, the last sample is at 900", id="nothing"),
        pytest.param([media(0, 500), media(500)], "wanted one media edit", id="two edits"),
        pytest.param([empty(5), empty(5), media(0)], "wanted one media edit", id="two empty ones"),
        pytest.param([media(0), empty(5)], "wanted one media edit", id="an empty one behind"),
        pytest.param([empty(5)], "wanted one media edit", id="only an empty one"),
        pytest.param([media(-2)], "wanted one media edit", id="before the start"),
        pytest.param([media(0, 0, 0)], "found a dwell on one picture", id="dwell"),
        pytest.param([media(0, 0, 2 * UNIT_RATE)], r"found rate 2\.0", id="fast"),
        pytest.param([media(0, 0, -UNIT_RATE)], r"found rate -1\.0", id="backwards"),
        pytest.param([empty(1 << 60), media(0)], "wanted an empty edit below", id="absurd delay"),
    ],
)
def test_edits_that_a_sidecar_cannot_hold_are_refused(edits: list[Edit], message: str) -> None:
    with pytest.raises(FormatError, match=f"^a.mp4: elst: .*{message}") as caught:
        shift(*edits)
    assert caught.value.hint


@given(
    cts=st.lists(st.integers(0, 1000).map(lambda n: n * 5), min_size=1, max_size=30, unique=True),
    start=st.integers(0, 5000),
    duration=st.integers(0, 10000),
)
@example(cts=[5000], start=0, duration=10000)  # a lone sample right behind the edit
def test_times_from_zero_on_are_the_presented_ones(
    cts: list[int], start: int, duration: int
) -> None:
    times = np.array(cts)
    try:
        moved = times + presentation_shift(
            [media(start, duration)], times, timescale=500, movie_timescale=1000, path="a.mp4"
        )
    except FormatError:
        assume(False)
    stop = start + duration / 2 if duration else np.inf
    assert ((moved >= 0) == ((times >= start) & (times < stop))).all()
