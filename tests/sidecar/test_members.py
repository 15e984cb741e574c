"""Arrays of a sidecar are checked before they are believed."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lerobot_stream.errors import FormatError
from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.sidecar.members import (
    MEMBERS,
    array_to_bytes,
    index_faults,
    index_to_bytes,
    member_limit,
    parse_array,
    parse_index,
    text_to_bytes,
)
from tests.sidecar.synthetic import make_index


def parse(index: Mp4Index, **members: bytes) -> Mp4Index:
    data = index_to_bytes(index) | members
    return parse_index(index.movie, data, path="s.npz", place="a.mp4")


@given(st.integers(1, 40), st.integers(1, 9), st.integers(0, 50))
def test_parsing_undoes_writing(num_samples: int, gop: int, size: int) -> None:
    index = make_index(num_samples, gop=gop, size=size)
    again = parse(index)
    for column in MEMBERS.values():
        np.testing.assert_array_equal(getattr(again, column), getattr(index, column))
        assert getattr(again, column).dtype == getattr(index, column).dtype
    assert again.movie == index.movie


def test_numpy_reads_what_is_written() -> None:
    array = np.arange(5)
    np.testing.assert_array_equal(np.load(io.BytesIO(array_to_bytes(array))), array)
    assert np.load(io.BytesIO(text_to_bytes(b"{}")))[()] == b"{}"


def test_an_array_of_a_sidecar_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        parse(make_index(3)).size[0] = 1


def test_a_member_of_the_most_samples_is_within_the_limit() -> None:
    index = make_index(50, size=1)
    longest = max(len(data) for data in index_to_bytes(index).values())
    assert longest <= member_limit(index.movie.file_size)
    assert member_limit(1 << 50) < 1 << 28


ARRAYS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "not an array"),
    "no magic": (b"PK" + bytes(200), "not an array"),
    "header cut off": (array_to_bytes(np.arange(3))[:40], "not an array"),
    "numbers cut off": (array_to_bytes(np.arange(3))[:-1], "declares 24 bytes, holds 23"),
    "more than declared": (array_to_bytes(np.arange(3)) + b"x", "declares 24 bytes, holds 25"),
    "floats": (array_to_bytes(np.arange(3.0)), "wanted one column of int64, got float64"),
    "big-endian": (array_to_bytes(np.arange(3, dtype=">i8")), "got >i8"),
    "short integers": (array_to_bytes(np.arange(3, dtype=np.int32)), "got int32"),
    "a number": (array_to_bytes(np.array(3)), "of shape ()"),
    "a matrix": (array_to_bytes(np.zeros((3, 1), np.int64)), "is no column of numbers"),
    "another count": (array_to_bytes(np.arange(4)), "wanted"),
}


@pytest.mark.parametrize(("data", "message"), ARRAYS.values(), ids=ARRAYS.keys())
def test_a_damaged_array_is_named(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=r"^s\.npz: a\.mp4: ") as caught:
        parse(make_index(3), sample_durations=data)
    assert message in str(caught.value) or message == "wanted"


def test_objects_are_refused_unread() -> None:
    stream = io.BytesIO()
    np.save(stream, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(FormatError, match=r"object of shape \(1,\) is no column of numbers"):
        parse_array(stream.getvalue(), path="s.npz", where="x")


@given(st.binary(max_size=200))
def test_any_header_is_an_array_or_an_error(data: bytes) -> None:
    try:
        parse_array(b"\x93NUMPY\x01\x00" + data, path="s.npz", where="x")
    except FormatError as error:
        assert error.where == "x"  # noqa: PT017


def changed(array: NDArray[np.generic], at: int, value: float) -> NDArray[np.int64]:
    copy = array.copy()
    copy[at] = value
    return copy  # type: ignore[return-value]


GOOD = make_index(6, gop=3)
END = GOOD.movie.file_size
FAULTS: dict[str, tuple[Mp4Index, str]] = {
    "time is no number": (
        replace(GOOD, pts_s=changed(GOOD.pts_s, 2, np.nan).astype(float)),
        "sample 2 is at nan seconds",
    ),
    "negative duration": (
        replace(GOOD, duration=changed(GOOD.duration, 1, -1)),
        "sample 1 has -1 ticks",
    ),
    "absurd composition offset": (
        replace(GOOD, composition_offset=changed(GOOD.composition_offset, 1, 1 << 31)),
        "sample 1 has 2147483648 ticks",
    ),
    "negative size": (replace(GOOD, size=changed(GOOD.size, 3, -7)), "sample 3 has -7 bytes"),
    "size that overflows": (
        replace(GOOD, size=changed(GOOD.size, 3, (1 << 63) - 1)),
        "sample 3 has 9223372036854775807 bytes",
    ),
    "past the end": (
        replace(GOOD, offset=changed(GOOD.offset, 5, END - 99)),
        f"sample 5, 100 bytes at {END - 99}, lies outside the file's {END} bytes",
    ),
    "offset that overflows": (
        replace(GOOD, offset=changed(GOOD.offset, 5, (1 << 63) - 1)),
        "lies outside",
    ),
    "before the file": (replace(GOOD, offset=changed(GOOD.offset, 0, -1)), "lies outside"),
    "falling offsets": (
        replace(GOOD, offset=changed(GOOD.offset, 3, 40)),
        "sample 3 at 40 lies before sample 2 at 240",
    ),
    "sync past the end": (replace(GOOD, sync=np.array([0, 6])), "not rising numbers of 6"),
    "sync below 0": (replace(GOOD, sync=np.array([-1, 3])), "not rising numbers of 6"),
    "sync twice": (replace(GOOD, sync=np.array([0, 3, 3])), "not rising numbers of 6"),
    "no samples": (
        replace(GOOD, **{c: getattr(GOOD, c)[:0] for c in MEMBERS.values()}),
        "0 samples, wanted 1 to",
    ),
    "unequal columns": (
        replace(GOOD, duration=GOOD.duration[:5]),
        "5 samples, but sample_sizes has 6",
    ),
}


@pytest.mark.parametrize(("index", "fault"), FAULTS.values(), ids=FAULTS.keys())
def test_what_no_file_can_hold_is_found(index: Mp4Index, fault: str) -> None:
    assert fault in "; ".join(text for _, text in index_faults(index))


def test_samples_may_be_empty_or_apart_and_a_file_may_lack_sync_samples() -> None:
    index = replace(GOOD, size=GOOD.size // 2, sync=np.array([], np.int64))
    assert index_faults(replace(index, size=changed(index.size, 2, 0))) == []
