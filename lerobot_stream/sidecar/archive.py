"""Writing a sidecar's archive: members finished in any order, laid down in one.

A file's arrays are compressed as soon as they are known and wait on disk, so that memory holds
no more than the files being read. The archive is then put together from the compressed bytes,
manifest first and files by number: equal datasets give equal archives, byte for byte.
The layout is that of ``numpy.savez_compressed``.
"""

from __future__ import annotations

import struct
import tempfile
import threading
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

_VERSION = 45
_UNIX = 3
_DEFLATED = 8
_DATE = 0x21
"""1980-01-01, the first day that the format knows."""
_MODE = 0o600 << 16
_FILL = 0xFFFFFFFF
_LIMIT = 0x7FFFFFFF
_COUNT_LIMIT = 0xFFFF
_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s4B4H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")


@dataclass(frozen=True, slots=True)
class Member:
    """A compressed member of an archive."""

    name: str
    """Name in the archive."""
    crc: int
    """CRC-32 of the bytes it stands for."""
    size: int
    """Bytes it stands for."""
    data: bytes
    """The deflated bytes."""


def compress(name: str, data: bytes) -> Member:
    """Deflate a member."""
    deflate = zlib.compressobj(zlib.Z_DEFAULT_COMPRESSION, zlib.DEFLATED, -zlib.MAX_WBITS)
    return Member(name, zlib.crc32(data), len(data), deflate.compress(data) + deflate.flush())


class Spool:
    """Compressed members on disk, in the order in which they came.

    Its file has no name, so that nothing is left of it when the process dies. Members may be
    added from many threads.
    """

    def __init__(self, folder: Path) -> None:
        """Open an unnamed file.

        Args:
            folder: Where there is space for it.
        """
        self._stream = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._lock = threading.Lock()
        self._places: dict[str, tuple[int, int, int, int]] = {}

    def add(self, members: Iterable[Member]) -> None:
        """Append members."""
        with self._lock:
            for member in members:
                place = self._stream.tell()
                self._stream.write(member.data)
                self._places[member.name] = (place, len(member.data), member.crc, member.size)

    def take(self, name: str) -> Member:
        """Read a member back."""
        place, size, crc, whole = self._places[name]
        with self._lock:
            end = self._stream.tell()
            self._stream.seek(place)
            data = self._stream.read(size)
            self._stream.seek(end)
        return Member(name, crc, whole, data)

    def __enter__(self) -> Self:
        """Keep the file until the block ends."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the space back."""
        self._stream.close()


def write_archive(stream: BinaryIO, members: Iterable[Member]) -> None:
    """Write a ZIP archive, from where the stream stands.

    Args:
        stream: Written from front to back.
        members: One after another; only one is held at a time.
    """
    directory = bytearray()
    count = 0
    for member in members:
        offset = stream.tell()
        stream.write(_local_header(member))
        stream.write(member.data)
        directory += _central_header(member, offset)
        count += 1
    start = stream.tell()
    stream.write(directory)
    stream.write(_end_records(count, len(directory), start))


def _local_header(member: Member) -> bytes:
    name = member.name.encode()
    sizes = struct.pack("<HHQQ", 1, 16, member.size, len(member.data))
    fields = (_VERSION, 0, _DEFLATED, 0, _DATE, member.crc, _FILL, _FILL, len(name), len(sizes))
    return _LOCAL.pack(b"PK\3\4", *fields) + name + sizes


def _central_header(member: Member, offset: int) -> bytes:
    name = member.name.encode()
    size, compressed = member.size, len(member.data)
    large: list[int] = []
    if size > _LIMIT or compressed > _LIMIT:
        large += size, compressed
        size = compressed = _FILL
    if offset > _LIMIT:
        large.append(offset)
        offset = _FILL
    extra = struct.pack(f"<HH{len(large)}Q", 1, 8 * len(large), *large) if large else b""
    fixed = (_VERSION, _UNIX, _VERSION, 0, 0, _DEFLATED, 0, _DATE, member.crc, compressed, size)
    places = (len(name), len(extra), 0, 0, 0, _MODE, offset)
    return _CENTRAL.pack(b"PK\1\2", *fixed, *places) + name + extra


def _end_records(count: int, size: int, start: int) -> bytes:
    data = b""
    if count > _COUNT_LIMIT or size > _LIMIT or start > _LIMIT:
        fields = (44, _VERSION, _VERSION, 0, 0, count, count, size, start)
        data = _END64.pack(b"PK\6\6", *fields)
        data += _LOCATOR.pack(b"PK\6\7", 0, start + size, 1)
    few = min(count, _COUNT_LIMIT)
    return data + _END.pack(b"PK\5\6", 0, 0, few, few, min(size, _FILL), min(start, _FILL), 0)
