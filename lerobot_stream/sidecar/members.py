"""The arrays of one video file as members of a sidecar, trusted by nobody."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.errors import FormatError
from lerobot_stream.mp4.index import Movie, Mp4Index
from lerobot_stream.mp4.tables import MAX_SAMPLES, MAX_TICKS

MAX_SAMPLE_BYTES = (1 << 32) - 1
"""Most bytes of one sample that an MP4 can hold."""
_MAX_HEADER_BYTES = 1 << 12
_NPY_MAGIC = b"\x93NUMPY\x01\x00"

MEMBERS: dict[str, str] = {
    "sample_pts": "pts_s",
    "sample_durations": "duration",
    "sample_composition_offsets": "composition_offset",
    "sample_sizes": "size",
    "sample_offsets": "offset",
    "sync_samples": "sync",
}
"""Name in the archive, and column of ``Mp4Index``, in the order they are written."""


def member_name(number: int, member: str) -> str:
    """Name in the archive of an array of the file with this number."""
    return f"{number}/{member}.npy"


def member_limit(file_size: int) -> int:
    """Most bytes a member can declare about a file of this many bytes."""
    return _MAX_HEADER_BYTES + 8 * min(MAX_SAMPLES, file_size)


def array_to_bytes(array: NDArray[np.generic]) -> bytes:
    """An array as an ``.npy`` file."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def text_to_bytes(text: bytes) -> bytes:
    """A text as an ``.npy`` file."""
    return array_to_bytes(np.array(text))


def index_to_bytes(index: Mp4Index) -> dict[str, bytes]:
    """The columns of an index as ``.npy`` files, by member."""
    return {
        member: array_to_bytes(
            np.ascontiguousarray(
                getattr(index, column), np.float64 if member == "sample_pts" else np.int64
            )
        )
        for member, column in MEMBERS.items()
    }


def parse_array(data: bytes, *, path: str, where: str) -> NDArray[np.generic]:
    """Read an ``.npy`` file of numbers or text without copying or unpickling it.

    Args:
        data: The file.
        path: The sidecar, for messages.
        where: The member, for messages.

    Returns:
        An array over ``data``, not writable.

    Raises:
        FormatError: It isn't such a file, or holds more or fewer bytes than it declares.
    """
    stream = io.BytesIO(data[:_MAX_HEADER_BYTES])
    try:
        if stream.read(8) != _NPY_MAGIC:
            raise ValueError("no .npy of version 1")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise FormatError(f"not an array: {error}", path=path, where=where) from None
    if dtype.hasobject or fortran or len(shape) > 1 or any(n < 0 for n in shape):
        raise FormatError(
            f"{dtype} of shape {shape} is no column of numbers", path=path, where=where
        )
    wanted = dtype.itemsize * (shape[0] if shape else 1)
    found = len(data) - stream.tell()
    if wanted != found:
        raise FormatError(f"declares {wanted} bytes, holds {found}", path=path, where=where)
    if not wanted:
        return np.empty(shape, dtype)
    return np.frombuffer(data, dtype, offset=stream.tell()).reshape(shape)


def parse_index(movie: Movie, members: dict[str, bytes], *, path: str, place: str) -> Mp4Index:
    """Read and check the columns of one file.

    Args:
        movie: The file's record in the manifest.
        members: An ``.npy`` file per member.
        path: The sidecar, for messages.
        place: Which file it is about, for messages.

    Raises:
        FormatError: A column is not one of numbers, or :func:`index_faults` finds something.
    """
    columns: dict[str, NDArray[np.generic]] = {}
    for member, column in MEMBERS.items():
        where = f"{place}: {member}"
        array = parse_array(members[member], path=path, where=where)
        dtype = np.dtype("<f8" if member == "sample_pts" else "<i8")
        if array.dtype != dtype or array.ndim != 1:
            found = f"{array.dtype} of shape {array.shape}"
            raise FormatError(f"wanted one column of {dtype}, got {found}", path=path, where=where)
        columns[column] = array
    index = Mp4Index(movie, **columns)  # type: ignore[arg-type]
    for member, fault in index_faults(index):
        raise FormatError(fault, path=path, where=f"{place}: {member}")
    return index


def index_faults(index: Mp4Index) -> list[tuple[str, str]]:
    """Find what no sample table of the file can say.

    Args:
        index: A file's record and columns.

    Returns:
        Member and fault, of each column that is wrong; empty where all is well.
    """
    n = len(index.size)
    faults: list[tuple[str, str]] = []
    if not 1 <= n <= MAX_SAMPLES:
        return [("sample_sizes", f"{n} samples, wanted 1 to {MAX_SAMPLES}")]
    for member, column in MEMBERS.items():
        found = len(getattr(index, column))
        if member != "sync_samples" and found != n:
            faults.append((member, f"{found} samples, but sample_sizes has {n}"))
    if faults:
        return faults
    finite = np.isfinite(index.pts_s)
    if not finite.all():
        at = _first(~finite)
        faults.append(("sample_pts", f"sample {at} is at {index.pts_s[at]} seconds"))
    for member, ticks, least in (
        ("sample_durations", index.duration, 0),
        ("sample_composition_offsets", index.composition_offset, -MAX_TICKS - 1),
    ):
        bad = (ticks < least) | (ticks > MAX_TICKS)
        if bad.any():
            at = _first(bad)
            faults.append((member, f"sample {at} has {ticks[at]} ticks"))
    faults += _place_faults(index)
    sync = index.sync
    if len(sync) and (sync[0] < 0 or sync[-1] >= n or (np.diff(sync) <= 0).any()):
        faults.append(("sync_samples", f"not rising numbers of {n} samples"))
    return faults


def _place_faults(index: Mp4Index) -> list[tuple[str, str]]:
    """Faults of sizes and offsets, without overflowing on absurd ones."""
    size, offset, end = index.size, index.offset, index.movie.file_size
    bad = (size < 0) | (size > min(end, MAX_SAMPLE_BYTES))
    if bad.any():
        at = _first(bad)
        return [("sample_sizes", f"sample {at} has {size[at]} bytes of a file of {end}")]
    bad = (offset < 0) | (offset > end - size)
    if bad.any():
        at = _first(bad)
        place = f"{size[at]} bytes at {offset[at]}"
        return [("sample_offsets", f"sample {at}, {place}, lies outside the file's {end} bytes")]
    bad = offset[1:] < offset[:-1]
    if bad.any():
        at = _first(bad) + 1
        what = f"sample {at} at {offset[at]} lies before sample {at - 1} at {offset[at - 1]}"
        return [("sample_offsets", what)]
    return []


def _first(mask: NDArray[np.bool_]) -> int:
    return int(np.argmax(mask))
