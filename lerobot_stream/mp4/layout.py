"""Find and fetch the movie box with as few requests as its place allows."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from lerobot_stream.errors import FormatError
from lerobot_stream.mp4.boxes import Box, Extract, parse_header
from lerobot_stream.span import Span

MIN_PROBE_BYTES = 1 << 20
MAX_PROBE_BYTES = 4 << 20
MAX_FTYP_BYTES = 4096
MAX_REQUESTS = 16
"""Requests for one file; a plain one takes 1 to 3."""
AFTER_MOVIE_BYTES = 64
"""Read behind a movie box, so that the next headers cost no request of their own."""

LFS_POINTER = b"version https://git-lfs.github.com/spec/"
TOP_LEVEL = frozenset(
    b"ftyp moov mdat free skip wide pnot uuid styp moof sidx ssix emsg prft meta".split()
)
FRAGMENTED = frozenset(("moof", "styp", "sidx", "ssix"))
REMUX = "write it again: ffmpeg -i IN -c copy -movflags +faststart OUT"

Read = Callable[[Span], bytes]
"""Gives exactly the bytes of a span, with one request."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The top-level boxes that matter."""

    ftyp: bytes
    """The file type box with its header."""
    moov: Box
    """The movie box."""
    mdat: tuple[Box, ...]
    """Media data boxes, those met until a movie box and one of them were found."""
    extract: Extract
    """Holds the whole movie box."""


def probe_bytes(file_size: int) -> int:
    """Say how much of a file one request reads when it looks for the movie box.

    A movie box takes 8 to 20 bytes a sample and a coded picture of a robot's camera seldom
    less than 1 KB, so a sixty-fourth of the file holds nearly every movie box. At least
    1 MiB, which takes no longer than another request would, and at most 4 MiB, the table of
    200,000 samples at the least.
    """
    return min(max(file_size // 64, MIN_PROBE_BYTES), MAX_PROBE_BYTES)


def read_layout(read: Read, *, file_size: int, path: str, max_probe_bytes: int) -> Layout:
    """Walk the top-level boxes until the movie box and media data are found.

    Args:
        read: Gives exactly the bytes of a span of the file, with one request.
        file_size: Bytes of the file.
        path: The file, for messages.
        max_probe_bytes: Most bytes that one request may ask for.

    Raises:
        FormatError: The file is no MP4, is cut off, is fragmented, or lacks one of the boxes.
    """
    window = _Window(read, file_size=file_size, path=path, max_probe_bytes=max_probe_bytes)
    ftyp, at = b"", 0
    movie: tuple[Box, Extract] | None = None
    mdat: list[Box] = []
    while at < file_size and not (movie and mdat):
        box = window.header(at, ahead=probe_bytes(file_size) if movie is None else 16)
        if box.kind in FRAGMENTED:
            raise FormatError("the file is fragmented", path=path, where=box.where, hint=REMUX)
        if box.kind == "mdat":
            mdat.append(box)
        elif box.kind == "ftyp" and not ftyp:
            ftyp = bytes(window.whole(box, most=MAX_FTYP_BYTES).take(box.start, box.stop))
        elif box.kind == "moov" and movie is None:
            movie = box, window.whole(box, most=max_probe_bytes)
        at = box.stop
    if movie is None:
        message = f"has no moov box in {file_size} bytes"
        raise FormatError(message, path=path, hint="the recording was not closed, or was cut off")
    if not mdat:
        raise FormatError(f"has no mdat box in {file_size} bytes", path=path)
    if not ftyp:
        raise FormatError("has no ftyp box", path=path, hint=REMUX)
    return Layout(ftyp=ftyp, moov=movie[0], mdat=tuple(mdat), extract=movie[1])


class _Window:
    """The stretch of the file read last; boxes inside it cost no request."""

    def __init__(self, read: Read, *, file_size: int, path: str, max_probe_bytes: int) -> None:
        self._read = read
        self._file = Span(0, file_size)
        self._max_probe_bytes = max_probe_bytes
        self._requests = 0
        self._held = Extract(path, 0, b"")
        if file_size < 8:
            raise FormatError(f"wanted an MP4, the file has {file_size} bytes", path=path)

    def header(self, at: int, *, ahead: int) -> Box:
        """Parse the header at a byte, reading ``ahead`` bytes where it is not held yet."""
        stop = self._file.stop
        if not self._held.holds(Span(at, min(at + 16, stop))):
            ahead = max(min(ahead, self._max_probe_bytes), 16)
            self._held = self._fetch(Span(at, min(at + ahead, stop)))
            if at == 0:
                _check_start(self._held)
        return parse_header(self._held, at, within=Span(at, stop))

    def whole(self, box: Box, *, most: int) -> Extract:
        """Give the bytes of a box, reading those that are not held yet."""
        path = self._held.path
        if box.stop - box.start > most:
            raise FormatError(
                f"wanted at most {most} bytes, found {box.stop - box.start}",
                path=path,
                where=box.where,
                hint="a larger --max-probe-mb allows it, if the file is sound",
            )
        if not self._held.holds(Span(box.start, box.stop)):
            stop = min(box.stop + AFTER_MOVIE_BYTES, self._file.stop)
            rest = self._fetch(Span(self._held.stop, stop))
            start = bytes(self._held.take(box.start, self._held.stop))
            self._held = Extract(path, box.start, start + rest.data)
        return self._held

    def _fetch(self, span: Span) -> Extract:
        path = self._held.path
        self._requests += 1
        if self._requests > MAX_REQUESTS:
            message = f"found no moov box with {MAX_REQUESTS} requests, up to byte {span.start}"
            raise FormatError(message, path=path, hint=REMUX)
        data = self._read(span)
        if len(data) != len(span):
            message = f"wanted {len(span)} bytes at {span.start}, got {len(data)}"
            raise FormatError(message, path=path)
        return Extract(path, span.start, data)


def _check_start(head: Extract) -> None:
    """Name what is often found in the place of a video."""
    if head.data.startswith(LFS_POINTER):
        size = re.search(rb"\nsize (\d{1,18})\n", head.data[:1024])
        promised = f" to a file of {int(size[1])} bytes" if size else ""
        message = f"is a Git-LFS pointer{promised}, not a video"
        raise FormatError(message, path=head.path, hint="fetch the files: git lfs pull")
    if head.data[4:8] not in TOP_LEVEL:
        raise FormatError(f"is no MP4, it starts with {head.data[:8]!r}", path=head.path)
