"""Clips that know their frames: every picture carries its number in big black or white blocks."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import av
import numpy as np
import pytest
from av.audio.frame import AudioFrame
from av.video.frame import PictureType, VideoFrame
from numpy.typing import NDArray

Codec = Literal["h264", "hevc", "av1", "vp9", "mpeg4"]

ENCODERS: Mapping[Codec, str] = {
    "h264": "libx264",
    "hevc": "libx265",
    "av1": "libsvtav1",
    "vp9": "libvpx-vp9",
    "mpeg4": "mpeg4",
}
BITS = 16
COLUMNS, ROWS = 8, 2

needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="no ffmpeg on the PATH")
"""Mark of a test that calls ``trim`` or ``concat``."""

os.environ.setdefault("SVT_LOG", "1")  # errors only; SVT-AV1 writes straight to stderr


def picture(number: int, size: tuple[int, int] = (96, 64)) -> NDArray[np.uint8]:
    """Draw the bits of a number, highest first, as 2 rows of 8 blocks.

    Args:
        number: 0 to 65535.
        size: Width and height in pixels; blocks are an eighth wide and half as high.

    Returns:
        ``(H, W)`` luma, 235 for a set bit and 16 for a clear one.
    """
    if not 0 <= number < 1 << BITS:
        raise ValueError(f"wanted a number below {1 << BITS}, got {number}")
    width, height = size
    bits = (number >> np.arange(BITS - 1, -1, -1) & 1).reshape(ROWS, COLUMNS)
    rows = np.minimum(np.arange(height) * ROWS // height, ROWS - 1)
    columns = np.minimum(np.arange(width) * COLUMNS // width, COLUMNS - 1)
    return np.where(bits[rows][:, columns] == 1, 235, 16).astype(np.uint8)


def read_number(frame: NDArray[np.uint8]) -> int:
    """Read the number back from a decoded picture.

    Args:
        frame: ``(H, W, C)`` or ``(H, W)``.

    Raises:
        ValueError: A block is neither black nor white, so the picture is damaged.
    """
    grey = frame if frame.ndim == 2 else frame.mean(axis=2)
    height, width = grey.shape
    number = 0
    for row in range(ROWS):
        for column in range(COLUMNS):
            top, left = row * height / ROWS, column * width / COLUMNS
            middle = grey[
                int(top + height / ROWS * 0.25) : int(top + height / ROWS * 0.75),
                int(left + width / COLUMNS * 0.25) : int(left + width / COLUMNS * 0.75),
            ]
            level = float(middle.mean())
            if 80 < level < 176:
                raise ValueError(f"block {row},{column} has grey level {level:.0f}")
            number = number << 1 | (level >= 128)
    return number


def read_numbers(path: Path) -> list[int]:
    """Decode a whole file with PyAV and read the number of each presented frame."""
    with av.open(str(path)) as container:
        frames = [frame.to_ndarray(format="gray") for frame in container.decode(video=0)]
    return [read_number(frame.astype(np.uint8, copy=False)) for frame in frames]


def _options(codec: Codec, gop: int, bframes: int, open_gop: bool) -> dict[str, str]:
    """Encoder options for GOPs of fixed length and B-frame runs of fixed length."""
    opened = int(open_gop)
    if codec == "h264":
        params = f"open-gop={opened}:scenecut=0:keyint={gop}:min-keyint={gop}:b-adapt=0:threads=1"
        return {"preset": "ultrafast", "crf": "18", "x264-params": f"{params}:bframes={bframes}"}
    if codec == "hevc":
        params = f"open-gop={opened}:scenecut=0:keyint={gop}:min-keyint={gop}:b-adapt=0:pools=1"
        params += f":bframes={bframes}:frame-threads=1:log-level=none:no-info=1"
        return {"preset": "ultrafast", "crf": "18", "x265-params": params}
    if codec == "av1":
        structure, refresh = (2 if bframes else 1), (1 if open_gop else 2)
        params = f"pred-struct={structure}:irefresh-type={refresh}:keyint={gop}:scd=0:lp=1"
        return {"preset": "8", "crf": "25", "svtav1-params": params}  # faster ones lose blocks
    if codec == "vp9":
        alt_ref = {"lag-in-frames": "12", "auto-alt-ref": "1"} if bframes else {}
        return {"deadline": "realtime", "cpu-used": "8", "crf": "20", "b": "0", **alt_ref}
    return {"qscale": "3"}


def encode(
    path: Path,
    numbers: Sequence[int],
    *,
    codec: Codec = "h264",
    gop: int = 2,
    bframes: int = 0,
    open_gop: bool = False,
    size: tuple[int, int] = (96, 64),
    fps: int = 10,
    faststart: bool = False,
    editlist: bool = True,
    audio: bool = False,
    times_ms: Sequence[int] | None = None,
    keyframes: Collection[int] = (),
    options: Mapping[str, str] | None = None,
    container_options: Mapping[str, str] | None = None,
) -> None:
    """Encode one frame a number.

    Args:
        path: The MP4 to write; its folder must exist.
        numbers: What each frame carries, in order of presentation.
        codec: The codec; each has one encoder.
        gop: Frames from one sync sample to the next.
        bframes: B-frames between two references. AV1 and VP9 reorder inside their samples.
        open_gop: Let pictures before a sync sample use the GOP before it.
        size: Width and height, even, at least 64 by 64.
        fps: Frames per second.
        faststart: Put the movie box before the media data.
        editlist: False writes ``use_editlist=0``, so that reordered clips start late.
        audio: Interleave an AAC track of silence.
        times_ms: When each frame is presented, for a variable rate.
        keyframes: Frames that are forced to be sync samples.
        options: More options for the encoder.
        container_options: More options for the muxer, e.g. ``video_track_timescale``.
    """
    flags: dict[str, str] = {"movflags": "faststart"} if faststart else {}
    if not editlist:
        flags["use_editlist"] = "0"
    flags |= container_options or {}
    settings = _options(codec, gop, bframes, open_gop) | dict(options or {})
    with av.open(str(path), "w", format="mp4", options=flags) as container:
        stream: Any = container.add_stream(ENCODERS[codec], rate=fps, options=settings)
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        context = stream.codec_context
        context.gop_size, context.max_b_frames, context.thread_count = gop, bframes, 1
        context.time_base = Fraction(1, fps) if times_ms is None else Fraction(1, 1000)
        sound: Any = container.add_stream("aac", rate=16000) if audio else None
        for i, number in enumerate(numbers):
            frame = _frame(number, size)
            frame.pts = i if times_ms is None else times_ms[i]
            frame.time_base = context.time_base
            if i in keyframes:
                frame.pict_type = PictureType.I
            container.mux(stream.encode(frame))
            if sound is not None:
                for heard in _silence(i, fps):
                    container.mux(sound.encode(heard))
        container.mux(stream.encode(None))
        if sound is not None:
            container.mux(sound.encode(None))


def _frame(number: int, size: tuple[int, int]) -> VideoFrame:
    width, height = size
    luma = picture(number, size)
    chroma = np.full((height // 2, width), 128, np.uint8)  # both planes, one after the other
    return VideoFrame.from_ndarray(np.concatenate([luma, chroma]), format="yuv420p")


def _silence(i: int, fps: int) -> Iterator[AudioFrame]:
    """Give the audio frames that begin during frame ``i``."""
    for k in range(-(-i * 16000 // (fps * 1024)), -(-(i + 1) * 16000 // (fps * 1024))):
        heard = AudioFrame.from_ndarray(
            np.zeros((1, 1024), np.float32), format="fltp", layout="mono"
        )
        heard.sample_rate, heard.pts = 16000, k * 1024
        heard.time_base = Fraction(1, 16000)
        yield heard


def ffmpeg(*arguments: str | Path) -> None:
    """Run the ffmpeg command; it must succeed."""
    command = ["ffmpeg", "-v", "error", "-nostdin", "-y", *map(str, arguments)]
    subprocess.run(command, check=True, timeout=60)


def trim(source: Path, out: Path, *, start_s: float, duration_s: float | None = None) -> None:
    """Cut without coding again.

    Samples from the sync sample before ``start_s`` are kept and an edit list hides those
    before it.
    """
    length = [] if duration_s is None else ["-t", str(duration_s)]
    ffmpeg("-ss", str(start_s), "-i", source, *length, "-c", "copy", out)


def concat(paths: Sequence[Path], out: Path, *options: str) -> None:
    """Join clips with ffmpeg's concat demuxer, as LeRobot does; times may drift."""
    with tempfile.TemporaryDirectory() as folder:
        listing = Path(folder) / "list.txt"
        listing.write_text("".join(f"file '{path.resolve()}'\n" for path in paths))
        ffmpeg("-f", "concat", "-safe", "0", "-i", listing, "-c", "copy", *options, out)
