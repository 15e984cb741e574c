"""The kinds of clips that video files hold, by name, and how tests index them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.mp4.probe import read_mp4_index
from lerobot_stream.span import Span
from tests.media import concat, encode, trim

NUMBERS = tuple((i * 2477 + 12345) % 65536 for i in range(60))
"""What the frames of a clip carry; neighbours share few bits."""

Make = Callable[[Path], None]


@dataclass
class FileBytes:
    """A file in memory that records what is asked of it."""

    data: bytes
    """The file."""
    spans: list[Span] = field(default_factory=list)
    """Requests so far."""

    def read(self, span: Span) -> bytes:
        """Give the bytes of a span; asking beyond the end is a fault of the reader."""
        if span.stop > len(self.data):
            raise AssertionError(f"wanted {span} of {len(self.data)} bytes")
        self.spans.append(span)
        return self.data[span.start : span.stop]

    def index(self, *, max_probe_bytes: int = 64 << 20) -> Mp4Index:
        """Read the file's sample table."""
        return read_mp4_index(
            self.read,
            file_size=len(self.data),
            path="clip.mp4",
            max_probe_bytes=max_probe_bytes,
        )


def _trimmed(path: Path, *, start_s: float, numbers: Sequence[int] = NUMBERS) -> None:
    whole = path.with_suffix(".whole.mp4")
    encode(whole, numbers, gop=20, bframes=2)
    trim(whole, path, start_s=start_s)


def _trimmed_open(path: Path) -> None:
    """Cut at leading pictures: FFmpeg writes an empty edit and hides them with the next one."""
    whole = path.with_suffix(".whole.mp4")
    encode(whole, NUMBERS, gop=8, bframes=3, open_gop=True)
    trim(whole, path, start_s=0.75)


def _joined(path: Path) -> None:
    parts = [path.with_suffix(f".{k}.mp4") for k in range(6)]
    for k, part in enumerate(parts):
        encode(part, NUMBERS[k * 10 : k * 10 + 10], gop=4, bframes=1, fps=30)
    concat(parts, path)


ENCODED: Mapping[str, Callable[[Path, Sequence[int]], None]] = {
    "h264-g2": functools.partial(encode, gop=2),
    "h264-intra": functools.partial(encode, gop=1),
    "h264-g250": functools.partial(encode, gop=250),
    "h264-closed": functools.partial(encode, gop=10, bframes=2),
    "h264-open": functools.partial(encode, gop=8, bframes=3, open_gop=True),
    "h264-open-g2": functools.partial(encode, gop=2, bframes=1, open_gop=True),
    "h264-open-no-leading": functools.partial(encode, gop=4, bframes=2, open_gop=True),
    "h264-open-pyramid": functools.partial(encode, gop=8, bframes=7, open_gop=True),
    "h264-no-editlist": functools.partial(encode, gop=10, bframes=2, editlist=False),
    "h264-negative-ctts": functools.partial(
        encode, gop=10, bframes=2, container_options={"movflags": "negative_cts_offsets"}
    ),
    "h264-faststart-audio": functools.partial(
        encode, gop=10, bframes=2, faststart=True, audio=True
    ),
    "h264-variable-rate": functools.partial(
        encode,
        gop=250,
        bframes=2,
        times_ms=[i * 100 + i * i % 7 * 9 for i in range(len(NUMBERS))],
        keyframes=(17, 18, 43),
    ),
    "hevc-g2": functools.partial(encode, codec="hevc", gop=2),
    "hevc-closed": functools.partial(encode, codec="hevc", gop=10, bframes=2),
    "hevc-open": functools.partial(encode, codec="hevc", gop=8, bframes=3, open_gop=True),
    "hevc-open-g2": functools.partial(encode, codec="hevc", gop=2, bframes=1, open_gop=True),
    "av1-g2": functools.partial(encode, codec="av1", gop=2),
    "av1-hierarchical": functools.partial(encode, codec="av1", gop=16, bframes=2, audio=True),
    "av1-open": functools.partial(encode, codec="av1", gop=8, bframes=2, open_gop=True),
    "vp9-g2": functools.partial(encode, codec="vp9", gop=2),
    "vp9-alt-ref": functools.partial(encode, codec="vp9", gop=16, bframes=2, audio=True),
    "mpeg4-bframes": functools.partial(encode, codec="mpeg4", gop=10, bframes=2),
}
"""Clips of all ``NUMBERS``, called with a path and the numbers."""

FFMPEG: Mapping[str, tuple[Make, Sequence[int]]] = {
    "trimmed-inside-gop": (functools.partial(_trimmed, start_s=1.3), NUMBERS[13:]),
    "trimmed-at-gop": (functools.partial(_trimmed, start_s=2.0), NUMBERS[20:]),
    "trimmed-at-leading": (_trimmed_open, NUMBERS[8:]),
    "joined": (_joined, NUMBERS),
}
"""Clips that need the ffmpeg command, and the numbers that they present."""

ALL = (*ENCODED, *FFMPEG)


def make_clip(name: str, path: Path) -> Sequence[int]:
    """Write the clip of a name and give the numbers that it presents, in order."""
    if name in ENCODED:
        ENCODED[name](path, NUMBERS)
        return NUMBERS
    make, numbers = FFMPEG[name]
    make(path)
    return numbers
