"""ISO BMFF boxes: sizes checked on the way in, counted on the way out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.errors import FormatError
from lerobot_stream.span import Span

MAX_CHILDREN = 4096
"""Boxes read from one parent; real ones hold fewer than twenty."""


@dataclass(frozen=True, slots=True)
class Extract:
    """Bytes of a file from a known place on."""

    path: str
    """The file, for messages."""
    start: int
    """Where ``data`` begins in the file."""
    data: bytes
    """The bytes."""

    @property
    def stop(self) -> int:
        """One past the last byte held."""
        return self.start + len(self.data)

    def holds(self, span: Span) -> bool:
        """Tell whether the span lies in what has been read."""
        return self.start <= span.start and span.stop <= self.stop

    def take(self, start: int, stop: int) -> memoryview:
        """Give the bytes ``[start, stop)`` of the file, without a copy."""
        return memoryview(self.data)[start - self.start : stop - self.start]


@dataclass(frozen=True, slots=True)
class Box:
    """A typed, sized record of a file."""

    kind: str
    """Four-character code."""
    name: str
    """Where it lies, e.g. ``moov/trak[0]/mdia``."""
    start: int
    """First byte of its header."""
    body: int
    """First byte after its header."""
    stop: int
    """One past its last byte."""

    @property
    def where(self) -> str:
        """The place as messages say it."""
        return f"{self.name} at byte {self.start}"


def parse_header(extract: Extract, at: int, *, within: Span, parent: str = "") -> Box:
    """Read the header of one box.

    Args:
        extract: Holds the header: 16 bytes from ``at``, or all until ``within.stop``.
        at: File byte at which the box starts.
        within: The parent's body, or the whole file.
        parent: The parent's name; empty at the top.

    Returns:
        The box. A size of 0 reaches to the end of ``within``.

    Raises:
        FormatError: The size is smaller than the header, or leaves the parent.
    """
    head = bytes(extract.take(at, min(at + 16, within.stop)))
    place = f"{parent}/" if parent else ""
    if len(head) < 8:
        message = f"wanted a box header of 8 bytes, {len(head)} are left"
        raise FormatError(message, path=extract.path, where=f"{place}? at byte {at}")
    kind = head[4:8].decode("latin-1")
    size, header = int.from_bytes(head[:4]), 8
    name = place + (kind if kind.isprintable() else f"0x{head[4:8].hex()}")
    where = f"{name} at byte {at}"
    if size == 1:
        if len(head) < 16:
            message = f"wanted a box header of 16 bytes, {len(head)} are left"
            raise FormatError(message, path=extract.path, where=where)
        size, header = int.from_bytes(head[8:16]), 16
    elif size == 0:
        size = within.stop - at
    if not header <= size <= within.stop - at:
        inside = parent or "the file"
        message = f"size {size} does not fit, {inside} has {within.stop - at} bytes left"
        hint = None if parent else "the file is cut off or damaged: fetch it again"
        raise FormatError(message, path=extract.path, where=where, hint=hint)
    return Box(kind, name, at, at + header, at + size)


def walk(extract: Extract, box: Box, *, skip: int = 0) -> Iterator[Box]:
    """Give the boxes inside a box, in order; ``trak`` boxes are named by their number.

    Args:
        extract: Holds the whole box.
        box: The parent.
        skip: Bytes of fields before the first child.

    Raises:
        FormatError: A size leaves the parent, or there are absurdly many children.
    """
    at, tracks = box.body + skip, 0
    for _ in range(MAX_CHILDREN):
        left = box.stop - at
        if left < 8 and not any(extract.take(at, box.stop)):  # QuickTime ends lists with a zero
            return
        child = parse_header(extract, at, within=Span(at, box.stop), parent=box.name)
        if child.kind == "trak":
            name = f"{child.name}[{tracks}]"
            child = Box(child.kind, name, child.start, child.body, child.stop)
            tracks += 1
        yield child
        at = child.stop
    message = f"wanted at most {MAX_CHILDREN} boxes inside, found more"
    raise FormatError(message, path=extract.path, where=box.where)


def find(extract: Extract, box: Box, kind: str) -> Box | None:
    """Give the first box of a kind directly inside another, or None."""
    return next((child for child in walk(extract, box) if child.kind == kind), None)


def need(extract: Extract, box: Box, *kinds: str) -> Box:
    """Give the box at the end of a path of kinds below another.

    Raises:
        FormatError: One of them is not there.
    """
    for kind in kinds:
        child = find(extract, box, kind)
        if child is None:
            raise FormatError(f"has no {kind} box", path=extract.path, where=box.where)
        box = child
    return box


def body(extract: Extract, box: Box, size: int) -> memoryview:
    """Give the bytes after a box's header, at least ``size`` of them.

    Raises:
        FormatError: The box is shorter.
    """
    if box.stop - box.body < size:
        message = f"wanted {size} bytes of fields, found {box.stop - box.body}"
        raise FormatError(message, path=extract.path, where=box.where)
    return extract.take(box.body, box.stop)


def integer(data: memoryview, at: int, size: int, *, signed: bool = False) -> int:
    """Read a big-endian integer of ``size`` bytes."""
    return int.from_bytes(data[at : at + size], signed=signed)


def table(
    extract: Extract, box: Box, *, at: int, count: int, columns: int, dtype: str = ">u4"
) -> NDArray[np.int64]:
    """Read a table of equally wide big-endian numbers.

    Args:
        extract: Holds the box.
        box: The box.
        at: Bytes after the box's header at which the table starts.
        count: Rows.
        columns: Numbers in a row.
        dtype: Type of one number.

    Returns:
        ``(columns, count)``, so that each column unpacks to a row.

    Raises:
        FormatError: The box is too short for that many rows.
    """
    size = count * columns * np.dtype(dtype).itemsize
    if at + size > box.stop - box.body:
        left = max(box.stop - box.body - at, 0)
        message = f"{count} entries need {size} bytes, the box has {left}"
        raise FormatError(message, path=extract.path, where=box.where)
    data = extract.take(box.body + at, box.body + at + size)
    return np.frombuffer(data, dtype=dtype).reshape(count, columns).T.astype(np.int64)


def column(
    extract: Extract, box: Box, *, at: int, count: int, dtype: str = ">u4"
) -> NDArray[np.int64]:
    """Read a table with one number in a row; like :func:`table`, ``(count,)``."""
    return table(extract, box, at=at, count=count, columns=1, dtype=dtype).reshape(count)


def make_box(kind: str, *parts: bytes) -> bytes:
    """Put a header before the parts of a box."""
    size = 8 + sum(map(len, parts))
    return b"".join([size.to_bytes(4), kind.encode("latin-1"), *parts])


def make_full_box(kind: str, *parts: bytes, version: int = 0, flags: int = 0) -> bytes:
    """Put header, version and flags before the parts of a box."""
    return make_box(kind, version.to_bytes(1) + flags.to_bytes(3), *parts)
