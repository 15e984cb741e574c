"""The sample table: run-length boxes of ``stbl`` expanded to one number a sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.errors import FormatError
from lerobot_stream.mp4.boxes import Box, Extract, body, column, find, integer, need, table

MAX_SAMPLES = 1 << 23
"""Samples of one track, 77 hours at 30 fps; a count above it is damage."""
MAX_TICKS = (1 << 31) - 1
"""Longest sample, in track ticks."""


@dataclass(frozen=True, slots=True, eq=False)
class SampleTable:
    """What the boxes of ``stbl`` say, a column per array, in decoding order."""

    duration: NDArray[np.int64]
    """``(n,)`` Track ticks (``stts``)."""
    composition_offset: NDArray[np.int64]
    """``(n,)`` Signed track ticks (``ctts``)."""
    size: NDArray[np.int64]
    """``(n,)`` Bytes of each sample (``stsz``, ``stz2``)."""
    offset: NDArray[np.int64]
    """``(n,)`` First byte of each sample in the file (``stsc``, ``stco``, ``co64``)."""
    sync: NDArray[np.int64]
    """``(m,)`` Numbers of the sync samples, rising (``stss``)."""
    entry: NDArray[np.int64]
    """``(n,)`` Sample entry of each sample, from 1."""


def parse_sample_table(extract: Extract, stbl: Box, *, file_size: int) -> SampleTable:
    """Expand a track's sample table.

    Args:
        extract: Holds the whole box.
        stbl: The sample table box.
        file_size: Bytes of the file; samples must lie inside.

    Raises:
        FormatError: A box is missing, counts disagree or are absurd, or a sample leaves the file.
    """
    size = parse_sizes(extract, stbl, file_size=file_size)
    offset, entry = _places(extract, stbl, size, file_size=file_size)
    stop = offset + size
    if len(size) and int(stop.max()) > file_size:
        i = int(np.argmax(stop > file_size))
        message = f"sample {i} ends at byte {stop[i]}, the file has {file_size} bytes"
        raise FormatError(message, path=extract.path, where=stbl.where)
    return SampleTable(
        duration=_durations(extract, stbl, len(size)),
        composition_offset=_composition_offsets(extract, stbl, len(size)),
        size=size,
        offset=offset,
        sync=_sync_samples(extract, stbl, len(size)),
        entry=entry,
    )


def parse_sizes(extract: Extract, stbl: Box, *, file_size: int) -> NDArray[np.int64]:
    """Read ``stsz`` or ``stz2``: the bytes of each sample.

    Raises:
        FormatError: There are more samples than the file can hold, or one has no bytes.
    """
    box = find(extract, stbl, "stsz") or find(extract, stbl, "stz2")
    if box is None:
        raise FormatError("has no stsz or stz2 box", path=extract.path, where=stbl.where)
    data = body(extract, box, 12)
    count, uniform = integer(data, 8, 4), integer(data, 4, 4)
    if count > min(MAX_SAMPLES, file_size):
        most = min(MAX_SAMPLES, file_size)
        message = f"wanted at most {most} samples, found {count}"
        raise FormatError(message, path=extract.path, where=box.where)
    if box.kind == "stz2":
        size = _packed_sizes(extract, box, bits=uniform & 0xFF, count=count)
    elif uniform:
        size = np.full(count, uniform, dtype=np.int64)
    else:
        size = column(extract, box, at=12, count=count)
    if count and not size.all():
        message = f"sample {int(np.argmin(size))} has no bytes"
        raise FormatError(message, path=extract.path, where=box.where)
    return size


def _packed_sizes(extract: Extract, box: Box, *, bits: int, count: int) -> NDArray[np.int64]:
    if bits == 4:  # two a byte, the first in the high half
        pairs = column(extract, box, at=12, count=(count + 1) // 2, dtype=">u1")
        return np.stack([pairs >> 4, pairs & 15], axis=1).reshape(-1)[:count]
    if bits not in (8, 16):
        message = f"wanted sizes of 4, 8 or 16 bits, found {bits}"
        raise FormatError(message, path=extract.path, where=box.where)
    return column(extract, box, at=12, count=count, dtype=f">u{bits // 8}")


def _runs(extract: Extract, box: Box, num_samples: int) -> tuple[NDArray[np.int64], ...]:
    """Read (count, value) pairs and check the counts before anything is expanded."""
    rows = integer(body(extract, box, 8), 4, 4)
    count, value = table(extract, box, at=8, count=rows, columns=2)
    if int(count.sum()) != num_samples:
        message = f"wanted {num_samples} samples, as in stsz, found {int(count.sum())}"
        raise FormatError(message, path=extract.path, where=box.where)
    return count, value


def _durations(extract: Extract, stbl: Box, num_samples: int) -> NDArray[np.int64]:
    box = need(extract, stbl, "stts")
    count, value = _runs(extract, box, num_samples)
    if len(value) and int(value.max()) > MAX_TICKS:
        message = f"wanted samples of at most {MAX_TICKS} ticks, found {int(value.max())}"
        raise FormatError(message, path=extract.path, where=box.where)
    return np.repeat(value, count)


def _composition_offsets(extract: Extract, stbl: Box, num_samples: int) -> NDArray[np.int64]:
    box = find(extract, stbl, "ctts")
    if box is None:
        return np.zeros(num_samples, dtype=np.int64)
    count, value = _runs(extract, box, num_samples)
    # version 1 is signed; writers put negative offsets into version 0 as well
    return np.repeat(np.where(value > MAX_TICKS, value - (1 << 32), value), count)


def _places(
    extract: Extract, stbl: Box, size: NDArray[np.int64], *, file_size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the first byte and the sample entry of each sample."""
    box = find(extract, stbl, "co64") or need(extract, stbl, "stco")
    num_chunks = integer(body(extract, box, 8), 4, 4)
    width = ">u8" if box.kind == "co64" else ">u4"
    chunk_offset = column(extract, box, at=8, count=num_chunks, dtype=width)
    outside = (chunk_offset < 0) | (chunk_offset > file_size)  # below 0 was above 2**63
    if outside.any():
        message = f"mp4 chunk {int(np.argmax(outside))} lies outside the file's {file_size} bytes"
        raise FormatError(message, path=extract.path, where=box.where)
    per_chunk, chunk_entry = _chunks(extract, stbl, num_chunks, len(size))
    # bytes of an mp4 chunk's samples before each: running total less that at the chunk's start
    before = np.cumsum(size) - size
    first = np.cumsum(per_chunk) - per_chunk
    # chunks without samples may come last, after every sample
    start = before[np.minimum(first, max(len(size) - 1, 0))] if len(size) else first
    return (
        before + np.repeat(chunk_offset - start, per_chunk),
        np.repeat(chunk_entry, per_chunk),
    )


def _chunks(
    extract: Extract, stbl: Box, num_chunks: int, num_samples: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read ``stsc``: samples and sample entry of each mp4 chunk."""
    box = need(extract, stbl, "stsc")
    rows = integer(body(extract, box, 8), 4, 4)
    first, samples, entry = table(extract, box, at=8, count=rows, columns=3)
    rising = rows == 0 or (first[0] == 1 and first[-1] <= num_chunks and (np.diff(first) > 0).all())
    if not rising or (rows == 0) != (num_chunks == 0):
        message = f"{rows} runs do not cover {num_chunks} mp4 chunks"
        raise FormatError(message, path=extract.path, where=box.where)
    length = np.diff(first, append=num_chunks + 1)
    total = int(samples @ length)  # below 2**32 times the chunks that fit a box
    if total != num_samples:
        message = f"wanted {num_samples} samples, as in stsz, found {total}"
        raise FormatError(message, path=extract.path, where=box.where)
    return np.repeat(samples, length), np.repeat(entry, length)


def _sync_samples(extract: Extract, stbl: Box, num_samples: int) -> NDArray[np.int64]:
    box = find(extract, stbl, "stss")
    if box is None:  # 14496-12, 8.6.2: every sample is a sync sample
        return np.arange(num_samples, dtype=np.int64)
    count = integer(body(extract, box, 8), 4, 4)
    number = column(extract, box, at=8, count=count)
    if count == 0:
        raise FormatError("no sample is a sync sample", path=extract.path, where=box.where)
    if number[0] < 1 or number[-1] > num_samples or not (np.diff(number) > 0).all():
        message = f"wanted rising numbers from 1 to {num_samples}, found {count} others"
        raise FormatError(message, path=extract.path, where=box.where)
    return number - 1
