"""Boxes: no size leaves its parent, and parsing undoes making."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.errors import FormatError
from lerobot_stream.mp4.boxes import (
    MAX_CHILDREN,
    Box,
    Extract,
    body,
    column,
    find,
    make_box,
    make_full_box,
    need,
    parse_header,
    table,
    walk,
)
from lerobot_stream.span import Span

KINDS = st.sampled_from(["free", "trak", "mdia", "\xa9too"])


def parent(data: bytes, *, start: int = 0) -> tuple[Extract, Box]:
    """Put bytes into a parent box ``moov`` that begins at ``start`` in its file."""
    extract = Extract("a.mp4", start, make_box("moov", data))
    return extract, parse_header(extract, start, within=Span(start, extract.stop))


@given(st.lists(st.tuples(KINDS, st.binary(max_size=40)), max_size=8), st.integers(0, 1 << 40))
def test_walking_gives_back_what_was_made(parts: list[tuple[str, bytes]], start: int) -> None:
    extract, moov = parent(b"".join(make_box(kind, part) for kind, part in parts), start=start)
    boxes = list(walk(extract, moov))
    found = [(box.kind, bytes(extract.take(box.body, box.stop))) for box in boxes]
    assert found == parts
    assert [box.stop for box in boxes[:-1]] == [box.start for box in boxes[1:]]


@pytest.mark.parametrize(
    ("head", "body_at", "stop"),
    [
        pytest.param(struct.pack(">I4s", 20, b"mdat"), 8, 20, id="32-bit"),
        pytest.param(struct.pack(">I4sQ", 1, b"mdat", 20), 16, 20, id="64-bit"),
        pytest.param(struct.pack(">I4s", 0, b"mdat"), 8, 24, id="to the end"),
    ],
)
def test_a_header_says_its_size_in_three_ways(head: bytes, body_at: int, stop: int) -> None:
    extract = Extract("a.mp4", 0, head + bytes(24 - len(head)))
    assert parse_header(extract, 0, within=Span(0, 24)) == Box("mdat", "mdat", 0, body_at, stop)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        pytest.param(
            struct.pack(">I4s", 25, b"mdat"),
            "mdat at byte 0: size 25 does not fit, the file has 24 bytes left",
            id="leaves the file",
        ),
        pytest.param(
            struct.pack(">I4s", 7, b"mdat"), "mdat at byte 0: size 7 does not fit", id="too small"
        ),
        pytest.param(
            struct.pack(">I4sQ", 1, b"mdat", 15), "size 15 does not fit", id="64-bit, too small"
        ),
        pytest.param(
            struct.pack(">I4sQ", 1, b"mdat", (1 << 64) - 1), "size 18446744073709551615", id="huge"
        ),
    ],
)
def test_a_size_that_does_not_fit_is_named_by_place(head: bytes, message: str) -> None:
    extract = Extract("a.mp4", 0, head + bytes(24 - len(head)))
    with pytest.raises(FormatError, match=f"^a.mp4: .*{message}"):
        parse_header(extract, 0, within=Span(0, 24))


def test_a_child_cannot_leave_its_parent() -> None:
    inner = struct.pack(">I4s", 17, b"mvhd") + bytes(8)
    extract, moov = parent(inner, start=100)
    with pytest.raises(
        FormatError, match=r"moov/mvhd at byte 108: size 17 does not fit, moov has 16 bytes left"
    ):
        list(walk(extract, moov))


def test_half_a_header_is_named() -> None:
    extract, moov = parent(make_box("free") + b"\0\0\0\1")
    with pytest.raises(FormatError, match=r"moov/\? at byte 16: .* 4 are left"):
        list(walk(extract, moov))


def test_zero_bytes_may_end_a_list() -> None:
    extract, moov = parent(make_box("free") + bytes(4))
    assert [box.kind for box in walk(extract, moov)] == ["free"]


def test_tracks_are_named_by_number() -> None:
    extract, moov = parent(make_box("free") + make_box("trak") * 2)
    assert [box.name for box in walk(extract, moov)] == [
        "moov/free",
        "moov/trak[0]",
        "moov/trak[1]",
    ]


def test_absurdly_many_boxes_are_refused() -> None:
    extract, moov = parent(make_box("free") * (MAX_CHILDREN + 1))
    with pytest.raises(FormatError, match="at most 4096 boxes"):
        list(walk(extract, moov))


def test_a_missing_box_is_named_by_its_parent() -> None:
    extract, moov = parent(make_box("trak", make_box("mdia")))
    assert find(extract, moov, "mvex") is None
    assert need(extract, moov, "trak", "mdia").name == "moov/trak[0]/mdia"
    with pytest.raises(FormatError, match=r"moov/trak\[0\]/mdia at byte 16: has no minf box"):
        need(extract, moov, "trak", "mdia", "minf")


def test_fields_and_rows_beyond_the_box_are_refused() -> None:
    extract, moov = parent(make_full_box("stts", bytes(12)) + make_box("free", bytes(100)))
    stts = need(extract, moov, "stts")
    assert len(body(extract, stts, 16)) == 16
    with pytest.raises(FormatError, match="wanted 17 bytes of fields, found 16"):
        body(extract, stts, 17)
    with pytest.raises(FormatError, match="4294967295 entries need 34359738360 bytes, the box has"):
        table(extract, stts, at=8, count=0xFFFFFFFF, columns=2)


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)), max_size=9))
def test_a_table_gives_its_columns(rows: list[tuple[int, int]]) -> None:
    packed = b"".join(struct.pack(">II", *row) for row in rows)
    extract, moov = parent(make_full_box("stts", packed))
    stts = need(extract, moov, "stts")
    first, second = table(extract, stts, at=4, count=len(rows), columns=2)
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == rows
    assert column(extract, stts, at=4, count=len(rows) * 2).tolist() == [n for r in rows for n in r]
