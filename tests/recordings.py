"""Whole datasets whose pictures carry their dataset index, one for each way to write video."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import av.error

from tests.lerobot import Camera, VideoWriter, Written, edit_episodes, write_dataset
from tests.media import concat, encode, trim

TOP, WRIST = "observation.images.top", "observation.images.wrist"
LENGTHS = (17, 14, 19, 20, 1, 23, 9, 12, 2, 16, 11, 8, 5)
"""Uneven, one of a single frame."""
FPS = 10


def _encoder(**options: Any) -> VideoWriter:
    def write(path: Path, numbers: Sequence[int]) -> None:
        for tries_left in (2, 1, 0):
            try:
                return encode(path, numbers, fps=FPS, **options)
            except av.error.FFmpegError:  # x265 gives up now and then on a loaded machine
                if not tries_left:
                    raise
        raise AssertionError

    return write


def _trimmed(path: Path, numbers: Sequence[int]) -> None:
    """A file that starts inside a GOP: seven samples before the edit are decoded, not shown."""
    whole = path.with_suffix(".whole.mp4")
    first = 50_000
    encode(whole, [*range(first, first + 7), *numbers], fps=FPS, gop=10, bframes=2)
    trim(whole, path, start_s=7 / FPS)
    whole.unlink()


def _unshifted(path: Path, numbers: Sequence[int]) -> None:
    """No edit list takes the B-frames' delay away, so the file starts two frames late."""
    starts = {sum(LENGTHS[:episode]) for episode in range(len(LENGTHS))}
    keyframes = [i for i, number in enumerate(numbers) if number in starts]
    encode(path, numbers, fps=FPS, gop=10, bframes=2, editlist=False, keyframes=keyframes)


WRITERS: Mapping[str, VideoWriter] = {
    "h264-g2": _encoder(codec="h264", gop=2),
    "h264-g30-b-open": _encoder(codec="h264", gop=30, bframes=2, open_gop=True),
    "h264-g250": _encoder(codec="h264", gop=250),
    "av1-g2": _encoder(codec="av1", gop=2),
    "av1-g30": _encoder(codec="av1", gop=30, bframes=2),
    "hevc-g10-b-open": _encoder(codec="hevc", gop=10, bframes=2, open_gop=True),
    "vp9-g30": _encoder(codec="vp9", gop=30, bframes=2),
    "no-edit-list-b": _unshifted,
    "edit-list-trim": _trimmed,
    "faststart-audio": _encoder(codec="h264", gop=5, faststart=True, audio=True),
}
"""Ways to write a camera's files, by name."""


def record(
    root: Path, writer: VideoWriter, *, lengths: Sequence[int] = LENGTHS, **options: Any
) -> Written:
    """Write a dataset of two cameras that roll over at different episodes.

    Args:
        root: Folder to make.
        writer: Writes the files of both cameras.
        lengths: Frames of each episode.
        options: Further arguments of :func:`write_dataset`.
    """
    cameras = {
        TOP: Camera(writer, episodes_per_file=[2, 3, 4], height=64, width=96),
        WRIST: Camera(writer, episodes_per_file=[3, 1, 5], height=64, width=96),
    }
    return write_dataset(root, lengths=lengths, fps=FPS, cameras=cameras, **options)


def record_joined(root: Path, *, clips: int, length: int = 4, fps: int = 30) -> Written:
    """Write a camera whose file was joined clip by clip by FFmpeg, so that its times drift."""

    def write(path: Path, numbers: Sequence[int]) -> None:
        parts = []
        for start in range(0, len(numbers), length):
            part = path.with_suffix(f".{start}.mp4")
            encode(part, numbers[start : start + length], fps=fps, gop=length)
            parts.append(part)
        concat(parts, path)
        for part in parts:
            part.unlink()

    camera = Camera(write, episodes_per_file=clips, height=64, width=96)
    return write_dataset(root, lengths=[length] * clips, fps=fps, cameras={TOP: camera})


def shift_from_timestamps(root: Path, key: str, seconds: Callable[[int], float]) -> None:
    """Move where the metadata says that each episode starts and stops in a camera's file."""

    def change(row: dict[str, Any]) -> None:
        for edge in ("from_timestamp", "to_timestamp"):
            row[f"videos/{key}/{edge}"] += seconds(row["episode_index"])

    edit_episodes(root, change)
