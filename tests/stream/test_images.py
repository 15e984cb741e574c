"""Pictures kept inside Parquet: what is decoded, and what is refused without harm."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from lerobot_stream.errors import DecodeError
from lerobot_stream.stream.images import decode_image


def encoded(mode: str, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.new(mode, (6, 4), 1).save(file, kind)
    return file.getvalue()


def png_of_size(width: int, height: int) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(b"")), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize(
    ("mode", "kind", "channels"),
    [
        ("RGB", "PNG", 3),
        ("RGB", "JPEG", 3),
        ("RGB", "WEBP", 3),
        ("L", "PNG", 1),
        ("RGBA", "PNG", 3),
        ("P", "PNG", 3),
        ("CMYK", "JPEG", 3),
    ],
)
def test_pictures_of_8_bits_are_grey_or_rgb(mode: str, kind: str, channels: int) -> None:
    picture = decode_image(encoded(mode, kind), place="frame 0")
    assert picture.dtype == np.uint8
    assert picture.shape == (4, 6, channels)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "found 0 bytes"),
        (b"junk" * 9, "found 36 bytes that start with b'junkjunk'"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 6 4\n", "start with b'%!PS-Ado'"),
        (encoded("RGB")[:-30], "no readable picture"),
        (encoded("I;16"), "pictures of mode I;16"),
        (png_of_size(60_000, 60_000), "no readable picture"),
    ],
    ids=["empty", "junk", "another program's", "cut off", "16 bits", "bomb"],
)
def test_anything_else_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_image(data, place="episode 3, top, frame 0")
    assert str(caught.value).startswith("episode 3, top, frame 0: ")
    assert message in str(caught.value)
