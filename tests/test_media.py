"""Clips carry what they are told to, in every codec."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.media import (
    ENCODERS,
    Codec,
    concat,
    encode,
    needs_ffmpeg,
    picture,
    read_number,
    read_numbers,
    trim,
)

NUMBERS = [(i * 2477 + 12345) % 65536 for i in range(40)]


@given(st.integers(0, 65535), st.sampled_from([(96, 64), (64, 64), (130, 66)]))
def test_a_picture_gives_its_number_back(number: int, size: tuple[int, int]) -> None:
    assert read_number(np.repeat(picture(number, size)[:, :, None], 3, axis=2)) == number


def test_a_grey_block_is_no_number() -> None:
    with pytest.raises(ValueError, match="block 0,0 has grey level 128"):
        read_number(np.full((64, 96, 3), 128, np.uint8))


@pytest.mark.parametrize(
    ("gop", "bframes", "open_gop"), [(2, 0, False), (8, 3, True), (250, 2, False)]
)
@pytest.mark.parametrize("codec", ENCODERS)
def test_every_codec_keeps_the_numbers(
    tmp_path: Path, codec: Codec, gop: int, bframes: int, open_gop: bool
) -> None:
    clip = tmp_path / "clip.mp4"
    encode(clip, NUMBERS, codec=codec, gop=gop, bframes=bframes, open_gop=open_gop)
    assert read_numbers(clip) == NUMBERS


@needs_ffmpeg
def test_trimmed_and_joined_clips_keep_the_numbers_left(tmp_path: Path) -> None:
    clip, cut, joined = (tmp_path / f"{name}.mp4" for name in ("clip", "cut", "joined"))
    encode(clip, NUMBERS, gop=8, bframes=2, audio=True)
    trim(clip, cut, start_s=1.3)
    assert read_numbers(cut) == NUMBERS[13:]
    concat([clip, clip], joined)
    assert read_numbers(joined) == NUMBERS + NUMBERS


def test_a_variable_rate_keeps_its_times(tmp_path: Path) -> None:
    clip = tmp_path / "clip.mp4"
    times = [i * 100 + i % 3 * 17 for i in range(40)]
    encode(clip, NUMBERS, gop=250, bframes=2, times_ms=times, keyframes={5, 11})
    assert read_numbers(clip) == NUMBERS
