"""Finding the movie box: few requests, and one clear error for every broken file."""

from __future__ import annotations

from pathlib import Path

import pytest

from lerobot_stream.errors import FormatError
from lerobot_stream.mp4.boxes import make_box
from lerobot_stream.mp4.layout import (
    MAX_PROBE_BYTES,
    MIN_PROBE_BYTES,
    Layout,
    probe_bytes,
    read_layout,
)
from tests.clips import FileBytes
from tests.media import encode

FTYP = make_box("ftyp", b"isom\0\0\2\0isom")
MOOV = make_box("moov", bytes(1000))
BIG = 40 << 20
"""Bytes of media data, far beyond a probe."""


def layout_of(*boxes: bytes, max_probe_bytes: int = 64 << 20) -> tuple[Layout, FileBytes]:
    file = FileBytes(b"".join(boxes))
    layout = read_layout(
        file.read, file_size=len(file.data), path="a.mp4", max_probe_bytes=max_probe_bytes
    )
    return layout, file


def mdat(size: int) -> bytes:
    return make_box("mdat", bytes(size))


def test_faststart_takes_one_request() -> None:
    layout, file = layout_of(FTYP, MOOV, make_box("free"), mdat(BIG))
    assert len(file.spans) == 1
    assert (layout.moov.start, layout.mdat[0].start) == (20, 20 + 1008 + 8)


def test_faststart_with_a_long_movie_box_takes_two() -> None:
    layout, file = layout_of(FTYP, make_box("moov", bytes(5 << 20)), mdat(BIG))
    assert len(file.spans) == 2
    assert layout.extract.holds(file.spans[1])
    assert sum(map(len, file.spans)) < 5.1 * (1 << 20)  # no byte of it twice


def test_a_tail_takes_two_requests() -> None:
    layout, file = layout_of(FTYP, mdat(BIG), MOOV)
    assert len(file.spans) == 2
    assert len(file.spans[1]) == len(MOOV)
    assert bytes(layout.extract.take(layout.moov.start, layout.moov.stop)) == MOOV


def test_a_long_tail_takes_three() -> None:
    layout, file = layout_of(FTYP, mdat(BIG), make_box("moov", bytes(6 << 20)), make_box("free"))
    assert len(file.spans) == 3
    assert layout.extract.holds(file.spans[2])


def test_a_small_file_is_read_whole_with_one_request() -> None:
    layout, file = layout_of(FTYP, mdat(1 << 19), MOOV)
    assert len(file.spans) == 1
    assert layout.ftyp == FTYP


def test_64_bit_and_endless_media_data_are_followed() -> None:
    wide = (1).to_bytes(4) + b"mdat" + (16 + BIG).to_bytes(8) + bytes(BIG)
    assert layout_of(FTYP, wide, MOOV)[0].mdat[0].body == len(FTYP) + 16
    endless = (0).to_bytes(4) + b"mdat" + bytes(100)
    assert layout_of(FTYP, MOOV, endless)[0].mdat[0].stop == len(FTYP) + len(MOOV) + 108


@pytest.mark.parametrize("size", [0, 1, 1 << 20, 64 << 20, 200 << 20, 1 << 40])
def test_a_probe_is_a_64th_of_the_file_within_bounds(size: int) -> None:
    assert MIN_PROBE_BYTES <= probe_bytes(size) <= MAX_PROBE_BYTES
    assert MIN_PROBE_BYTES < probe_bytes(200 << 20) == (200 << 20) // 64


def test_no_request_is_longer_than_the_cap() -> None:
    _, file = layout_of(FTYP, mdat(BIG), MOOV, max_probe_bytes=2000)
    assert max(map(len, file.spans)) <= 2000
    with pytest.raises(FormatError, match=r"moov at byte .*: wanted at most 1000 bytes"):
        layout_of(FTYP, mdat(BIG), MOOV, max_probe_bytes=1000)


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:%b\nsize 12345\n" % (b"0" * 64)


@pytest.mark.parametrize(
    ("boxes", "message", "hint"),
    [
        pytest.param([b""], "wanted an MP4, the file has 0 bytes", None, id="empty"),
        pytest.param([FTYP[:5]], "the file has 5 bytes", None, id="5 bytes"),
        pytest.param(
            [LFS], "is a Git-LFS pointer to a file of 12345 bytes", "git lfs pull", id="LFS pointer"
        ),
        pytest.param(
            [b"<!DOCTYPE html>\n<html>"], "is no MP4, it starts with b'<!DOC", None, id="html"
        ),
        pytest.param([b"\x1aE\xdf\xa3matroska"], "is no MP4", None, id="matroska"),
        pytest.param([FTYP, mdat(100)], "has no moov box in 128 bytes", "not closed", id="no moov"),
        pytest.param(
            [FTYP, (0).to_bytes(4) + b"mdat", bytes(99)],
            "has no moov box",
            "cut off",
            id="unclosed",
        ),
        pytest.param([FTYP, MOOV], "has no mdat box", None, id="no mdat"),
        pytest.param([mdat(10), MOOV], "has no ftyp box", "-c copy", id="no ftyp"),
        pytest.param(
            [FTYP, mdat(1000)[:500]],
            "mdat at byte 20: size 1008 does not fit, the file has 500 bytes left",
            "cut off",
            id="cut in mdat",
        ),
        pytest.param(
            [FTYP, mdat(10), MOOV[:900]],
            "moov at byte 38: size 1008 does not fit, the file has 900",
            "cut off",
            id="cut in moov",
        ),
        pytest.param(
            [FTYP, MOOV, mdat(BIG)[: BIG // 2]],
            "mdat at byte 1028: size",
            "cut off",
            id="faststart",
        ),
        pytest.param(
            [FTYP, mdat(10), MOOV[:5]],
            "wanted a box header of 8 bytes, 5 are",
            None,
            id="cut header",
        ),
        pytest.param(
            [FTYP, make_box("moof", bytes(20)), mdat(9)], "is fragmented", "faststart", id="moof"
        ),
        pytest.param([make_box("styp"), mdat(9)], "is fragmented", "faststart", id="segment"),
        pytest.param(
            [make_box("ftyp", bytes(5000)), MOOV, mdat(9)],
            "at most 4096 bytes",
            None,
            id="long ftyp",
        ),
    ],
)
def test_a_broken_file_is_named_by_its_reason(
    boxes: list[bytes], message: str, hint: str | None
) -> None:
    with pytest.raises(FormatError, match=f"^a.mp4: .*{message}") as caught:
        layout_of(*boxes)
    assert hint is None or (caught.value.hint and hint in caught.value.hint)


def test_a_maze_of_boxes_ends_in_an_error() -> None:
    boxes = [make_box("free", bytes(2 << 20)) for _ in range(20)]
    with pytest.raises(FormatError, match="found no moov box with 16 requests"):
        layout_of(FTYP, *boxes, MOOV, mdat(10))


def test_a_short_answer_is_an_error() -> None:
    with pytest.raises(FormatError, match="wanted 100 bytes at 0, got 99"):
        read_layout(lambda span: bytes(99), file_size=100, path="a.mp4", max_probe_bytes=1 << 20)


@pytest.mark.parametrize("faststart", [False, True])
def test_real_movies_are_found_at_either_end(tmp_path: Path, faststart: bool) -> None:
    path = tmp_path / "clip.mp4"
    encode(path, range(10), faststart=faststart)
    layout, _ = layout_of(path.read_bytes())
    assert (layout.moov.start < layout.mdat[0].start) == faststart
