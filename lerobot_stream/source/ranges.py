"""Ranged reads of one file: several spans at once, the whole of it, or as a file object."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lerobot_stream.errors import FormatError
from lerobot_stream.source.base import Source
from lerobot_stream.source.listing import find_file
from lerobot_stream.span import Span, coalesce

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_GAP_BYTES = 128 << 10
"""Bytes worth fetching for nothing to save a request: about a round trip's worth."""
MAX_WASTE = 1 / 64
"""Share of a request for video that may be fetched for nothing: what lies between two episodes
is mostly a third, which is fetched when its turn comes."""
MAX_REQUEST_BYTES = 64 << 20
"""Largest merged request; a single longer span still goes in one."""
MAX_FILE_BYTES = 64 << 20
"""Largest file that is read as a whole: far above any JSON among the metadata."""


def read_spans(
    source: Source,
    path: str,
    spans: Sequence[Span],
    *,
    max_gap: int = MAX_GAP_BYTES,
    max_size: int = MAX_REQUEST_BYTES,
) -> list[bytes]:
    """Read spans of one file with few requests.

    Args:
        source: Where the file is read from.
        path: The file.
        spans: Spans in any order; they may touch or overlap. Empty ones cost nothing.
        max_gap: Bytes worth fetching for nothing to save a request.
        max_size: Bytes a merged request may not exceed.

    Returns:
        The bytes of each span, in the order given.
    """
    parts = [b""] * len(spans)
    wanted = [number for number, span in enumerate(spans) if len(span)]
    for request in coalesce([spans[i] for i in wanted], max_gap=max_gap, max_size=max_size):
        data = source.read(path, request.span)
        for part in request.parts:
            span = spans[wanted[part]]
            start = span.start - request.span.start
            parts[wanted[part]] = data[start : start + len(span)]
    return parts


def read_file(source: Source, path: str) -> bytes:
    """Read a whole file with one request.

    Raises:
        MissingFileError: There is no such file.
        FormatError: It is larger than :data:`MAX_FILE_BYTES`.
    """
    size = find_file(source, path).size
    if size > MAX_FILE_BYTES:
        raise FormatError(f"wanted at most {MAX_FILE_BYTES} bytes, found {size}", path=path)
    return source.read(path, Span(0, size))


class SourceFile(io.RawIOBase):
    """A read-only, seekable view of one file of a source, for libraries that want a file.

    What was fetched ahead or read is kept until the view is closed, so that a view should live
    as long as one operation. It belongs to one thread.

    Args:
        source: Where the file is read from.
        path: The file.
        block_bytes: Least bytes to fetch when a read finds nothing kept; 0 fetches what is asked.

    Raises:
        MissingFileError: There is no such file.
    """

    def __init__(self, source: Source, path: str, *, block_bytes: int = 0) -> None:
        super().__init__()
        self.path = path
        self._source = source
        self._size = find_file(source, path).size
        self._block_bytes = block_bytes
        self._position = 0
        self._starts: list[int] = []  # ascending, beside _kept
        self._kept: list[bytes] = []

    def size(self) -> int:
        """Return the size of the file in bytes."""
        return self._size

    def fetch(self, spans: Sequence[Span], *, max_gap: int = MAX_GAP_BYTES) -> None:
        """Read spans ahead with few requests; reads inside one of them then cost none.

        Args:
            spans: Spans inside the file, in any order; those already kept are left out.
            max_gap: Bytes worth fetching for nothing to save a request.
        """
        wanted = [span for span in spans if len(span) and self._find(span) is None]
        for request in coalesce(wanted, max_gap=max_gap, max_size=MAX_REQUEST_BYTES):
            self._keep(request.span)

    def read_span(self, span: Span) -> bytes:
        """Read a span without moving the position."""
        if self.closed:
            raise ValueError("read of a closed file")
        if not len(span):
            return b""
        number = self._find(span)
        if number is None:
            stop = max(span.stop, min(self._size, span.start + self._block_bytes))
            number = self._keep(Span(span.start, stop))
        start = span.start - self._starts[number]
        return self._kept[number][start : start + len(span)]

    def read(self, size: int | None = -1, /) -> bytes:
        """Read up to ``size`` bytes, or to the end, from the position on."""
        left = max(0, self._size - self._position)
        count = left if size is None or size < 0 else min(size, left)
        data = self.read_span(Span(self._position, self._position + count))
        self._position += count
        return data

    def readall(self) -> bytes:
        """Read from the position to the end."""
        return self.read()

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill a buffer from the position on; return the number of bytes."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move the position; past the end there is nothing to read."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"position {base + offset} is before the start of the file")
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        """Return the position in bytes."""
        return self._position

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Forget what was kept."""
        self._starts.clear()
        self._kept.clear()
        super().close()

    def _find(self, span: Span) -> int | None:
        number = bisect_right(self._starts, span.start) - 1
        if number < 0:
            return None
        inside = span.stop <= self._starts[number] + len(self._kept[number])
        return number if inside else None

    def _keep(self, span: Span) -> int:
        data = self._source.read(self.path, span)
        number = bisect_right(self._starts, span.start)
        self._starts.insert(number, span.start)
        self._kept.insert(number, data)
        return number
