"""The bytes of a mapped index: sample tables as a processor reads them, one file a dataset.

A header of fixed size, then the columns of each video file, each on a border of 64 bytes; then
text (identity, names, the files' own records) and last a directory of fixed-size records, sorted
by name. A column has the smallest signed type that holds its values, and is stored once where
they are all the same; presentation times keep every bit.

Reading adds and subtracts numbers of one column, and of two, without widening them first. So
offsets get a type that holds the file's size, and sync samples one that holds the number of
samples.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.errors import FormatError
from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.sidecar.manifest import movie_record
from lerobot_stream.sidecar.members import MEMBERS
from lerobot_stream.sidecar.sample_tables import SampleTables

GENERATION = 1
"""Raised with every change of the layout; part of the file's name."""
COLUMNS = tuple(MEMBERS.values())
"""Columns of ``Mp4Index``, in the order of the directory's records."""
TYPES = tuple(np.dtype(text) for text in ("<i1", "<i2", "<i4", "<i8", "<f8"))
"""Types by the number that stands for them."""
RECORD = np.dtype(
    [
        ("name_place", "<u8"),
        ("name_size", "<u4"),
        ("movie_size", "<u4"),
        ("movie_place", "<u8"),
        ("num_samples", "<u8"),
        ("num_sync", "<u8"),
        ("place", "<u8", (len(COLUMNS),)),
        ("stored", "<u8", (len(COLUMNS),)),
        ("type", "u1", (len(COLUMNS),)),
    ]
)
"""One video file. A column with one number stored, and a length above 1, repeats it."""
_BORDER = 64
_MAGIC = b"lrsindex"
_HEADER = struct.Struct("<8sIIQQQ")
_CHECKSUM = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Header:
    """Where things are in a mapped index."""

    num_files: int
    """Records in the directory."""
    about_place: int
    """First byte of the JSON text about the whole."""
    about_size: int
    """Its bytes."""
    directory_place: int
    """First byte of the directory, which ends with the file."""

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return self.directory_place + self.num_files * RECORD.itemsize

    def to_bytes(self, tail: bytes | memoryview) -> bytes:
        """The header, padded to its fixed size, with a checksum.

        Args:
            tail: Everything behind the columns, which the checksum is of, too.
        """
        fields = (self.num_files, self.about_place, self.about_size, self.directory_place)
        data = _HEADER.pack(_MAGIC, GENERATION, *fields)
        checksum = zlib.crc32(tail, zlib.crc32(data))
        return (data + _CHECKSUM.pack(checksum)).ljust(_BORDER, b"\0")


def parse_header(data: memoryview, *, path: str) -> Header:
    """Read the header of a mapped index, and check that the file is whole.

    Args:
        data: The whole file.
        path: Its name, for messages.

    Raises:
        FormatError: It is another format or generation, or not whole.
    """
    if len(data) < _BORDER:
        raise FormatError(f"{len(data)} bytes are no mapped index", path=path)
    magic, generation, *fields = _HEADER.unpack_from(data)
    if (magic, generation) != (_MAGIC, GENERATION):
        raise FormatError(f"no mapped index of generation {GENERATION}", path=path)
    header = Header(*fields)
    if header.size != len(data):
        raise FormatError(f"wanted {header.size} bytes, found {len(data)}", path=path)
    if not _BORDER <= header.about_place <= header.directory_place:
        raise FormatError(f"text at byte {header.about_place} is out of place", path=path)
    if header.to_bytes(data[header.about_place :]) != data[:_BORDER]:
        raise FormatError("the directory is damaged", path=path)
    return header


def write_mapped(stream: BinaryIO, tables: SampleTables) -> None:
    """Write the mapped form of sample tables; only one file's are held at a time.

    Args:
        stream: A new file, written from its start.
        tables: What to write.

    Raises:
        FormatError: A table is damaged.
        OSError: The disk refuses.
    """
    directory = np.zeros(len(tables.paths), RECORD)
    text = bytearray()
    stream.write(bytes(_BORDER))
    for record, path in zip(directory, tables.paths, strict=True):
        index = tables.index(path)
        name = path.encode("utf-8", "surrogatepass")
        movie = json.dumps(movie_record(path, index.movie)).encode()
        record["name_place"], record["name_size"] = len(text), len(name)
        record["movie_place"], record["movie_size"] = len(text) + len(name), len(movie)
        record["num_samples"], record["num_sync"] = len(index), len(index.sync)
        text += name + movie
        for number, column in enumerate(pack_columns(index)):
            record["place"][number] = _write_column(stream, column)
            record["stored"][number] = len(column)
            record["type"][number] = TYPES.index(column.dtype)
    place = _pad(stream)
    about = _about(tables)
    for field in ("name_place", "movie_place"):
        directory[field] += place + len(about)
    text += bytes(-(len(about) + len(text)) % 8)
    tail = about + text + directory.tobytes()
    stream.write(tail)
    at = place + len(tail) - directory.nbytes
    stream.seek(0)
    stream.write(Header(len(directory), place, len(about), at).to_bytes(tail))


def _about(tables: SampleTables) -> bytes:
    identity = tables.identity
    facts = {
        "repo_id": identity.repo_id,
        "revision": identity.revision,
        "data_root": identity.data_root,
        "subset": tables.subset,
    }
    return json.dumps(facts).encode()


def pack_columns(index: Mp4Index) -> list[NDArray[np.generic]]:
    """Give each column in its smallest type, cut to one number where all are the same.

    Args:
        index: A file's sample table.

    Returns:
        Arrays in the order of ``COLUMNS``.
    """
    bounds = {"offset": (0, index.movie.file_size), "sync": (0, len(index))}
    packed: list[NDArray[np.generic]] = []
    for column in COLUMNS:
        values: NDArray[np.generic] = getattr(index, column)
        if column == "pts_s":
            values = np.asarray(values, TYPES[-1])
            same = _is_constant(values.view(np.int64))  # -0.0 is not 0.0
        else:
            least, most = bounds.get(column) or _bounds(values)
            values = np.asarray(values, smallest_type(least, most))
            same = column != "sync" and _is_constant(values)
        packed.append(values[:1] if same else values)
    return packed


def _bounds(values: NDArray[np.generic]) -> tuple[int, int]:
    return (int(values.min()), int(values.max())) if len(values) else (0, 0)


def _is_constant(values: NDArray[np.generic]) -> bool:
    return len(values) > 0 and bool((values == values[0]).all())


def smallest_type(least: int, most: int) -> np.dtype[np.generic]:
    """Give the smallest signed type that holds two whole numbers of at most 64 bits."""
    for kind in TYPES[:-2]:
        info = np.iinfo(kind)
        if info.min <= least and most <= info.max:
            return kind
    return TYPES[-2]


def _write_column(stream: BinaryIO, column: NDArray[np.generic]) -> int:
    """Write a column on the next border; return its place."""
    place = _pad(stream)
    stream.write(column.tobytes())
    return place


def _pad(stream: BinaryIO) -> int:
    """Go to the next border; return its place."""
    place = stream.tell()
    stream.write(bytes(-place % _BORDER))
    return place + -place % _BORDER
