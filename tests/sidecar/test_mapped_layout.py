"""A mapped index holds every number of its tables, in little space."""

from __future__ import annotations

import dataclasses
import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lerobot_stream.errors import FormatError
from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.sidecar.mapped_layout import (
    COLUMNS,
    pack_columns,
    parse_header,
    smallest_type,
    write_mapped,
)
from tests.sidecar.synthetic import make_index
from tests.sidecar.tables import Tables, indexes


def written(*tables: Mp4Index) -> bytes:
    stream = io.BytesIO()
    write_mapped(stream, Tables({f"videos/{i}.mp4": index for i, index in enumerate(tables)}))
    return stream.getvalue()


def packed(index: Mp4Index, column: str) -> NDArray[Any]:
    return pack_columns(index)[COLUMNS.index(column)]


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-(1 << 63), (1 << 63) - 1))
def test_the_smallest_type_holds_both_ends_and_half_of_it_would_not(one: int, other: int) -> None:
    least, most = min(one, other), max(one, other)
    kind = smallest_type(least, most)
    bits = 8 * kind.itemsize
    assert -(1 << bits - 1) <= least
    assert most < 1 << bits - 1
    assert bits == 8 or least < -(1 << bits // 2 - 1) or most >= 1 << bits // 2 - 1


@given(indexes())
def test_packed_columns_hold_every_number(index: Mp4Index) -> None:
    for name, column in zip(COLUMNS, pack_columns(index), strict=True):
        wanted = getattr(index, name)
        assert len(column) == len(wanted) or len(column) == 1
        assert np.array_equal(np.broadcast_to(column, wanted.shape), wanted)


@given(indexes())
def test_offsets_have_room_for_the_file_and_sync_samples_for_their_number(index: Mp4Index) -> None:
    assert np.iinfo(packed(index, "offset").dtype).max >= index.movie.file_size
    assert np.iinfo(packed(index, "sync").dtype).max >= len(index)


def test_what_is_the_same_everywhere_is_stored_once() -> None:
    index = make_index(1000)
    assert [len(packed(index, name)) for name in ("duration", "composition_offset", "size")] == [
        1,
        1,
        1,
    ]
    assert len(packed(index, "sync")) == 500


def test_times_that_only_look_the_same_are_kept_apart() -> None:
    index = make_index(2, times_s=[0.0, -0.0])
    assert packed(index, "pts_s").tobytes() == np.array([0.0, -0.0]).tobytes()


def test_a_thousand_samples_take_little_more_than_their_times() -> None:
    index = dataclasses.replace(make_index(1000), pts_s=np.arange(1000) / 30)
    assert len(written(index)) < 1000 * (8 + 4 + 1) + 2000  # times, offsets, half of the numbers


def test_equal_tables_are_equal_bytes() -> None:
    assert written(make_index(5), make_index(9)) == written(make_index(5), make_index(9))


def test_the_header_is_read_back() -> None:
    data = written(make_index(5), make_index(9))
    assert parse_header(memoryview(data), path="x").size == len(data)


@given(st.data())
def test_a_file_that_is_not_whole_is_refused(data: st.DataObject) -> None:
    whole = written(make_index(5), make_index(9))
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(FormatError):
        parse_header(memoryview(whole[:cut]), path="x")


@given(st.data())
def test_a_damaged_directory_is_refused(data: st.DataObject) -> None:
    whole = bytearray(written(make_index(5), make_index(9)))
    header = parse_header(memoryview(bytes(whole)), path="x")
    at = data.draw(st.one_of(st.integers(0, 63), st.integers(header.about_place, len(whole) - 1)))
    whole[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(FormatError):
        parse_header(memoryview(bytes(whole)), path="x")
