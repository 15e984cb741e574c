from __future__ import annotations

from pathlib import Path

import pytest

from lerobot_stream.inspect.bit_depth import bits_per_value
from lerobot_stream.mp4.probe import read_mp4_index
from tests.media import Codec, encode, ffmpeg, needs_ffmpeg


def bits(path: Path) -> int | None:
    data = path.read_bytes()
    index = read_mp4_index(
        lambda span: data[span.start : span.stop], file_size=len(data), path=path.name
    )
    return bits_per_value(index.movie.stsd_body)


@pytest.mark.parametrize("codec", ["h264", "hevc", "av1", "vp9"])
def test_usual_videos_have_8_bits(tmp_path: Path, codec: Codec) -> None:
    encode(tmp_path / "a.mp4", [1, 2], codec=codec)
    assert bits(tmp_path / "a.mp4") == 8


@needs_ffmpeg
@pytest.mark.parametrize(
    ("encoder", "pixels", "wanted"),
    [
        ("libx264", "yuv420p10le", 10),
        ("libx265", "gray12le", 12),
        ("libsvtav1", "yuv420p10le", 10),
        ("libvpx-vp9", "yuv420p12le", 12),
    ],
)
def test_deeper_ones_say_so(tmp_path: Path, encoder: str, pixels: str, wanted: int) -> None:
    encode(tmp_path / "a.mp4", [1, 2, 3])
    deep = tmp_path / "deep.mp4"
    quiet = ["-x265-params", "log-level=none"] if encoder == "libx265" else []
    ffmpeg("-i", tmp_path / "a.mp4", "-c:v", encoder, *quiet, "-pix_fmt", pixels, deep)
    assert bits(deep) == wanted


def test_a_codec_that_does_not_say_it_is_unknown(tmp_path: Path) -> None:
    encode(tmp_path / "a.mp4", [1, 2], codec="mpeg4")
    assert bits(tmp_path / "a.mp4") is None


@pytest.mark.parametrize("name", [b"avcC", b"hvcC", b"av1C", b"vpcC"])
def test_a_set_up_that_is_cut_off_is_unknown(name: bytes) -> None:
    assert bits_per_value(b"\0" * 20 + name + b"\x01") is None
