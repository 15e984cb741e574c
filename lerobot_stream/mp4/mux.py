"""Mini-MP4s: self-contained files around a run of samples, with times of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.mp4.boxes import make_box, make_full_box
from lerobot_stream.mp4.index import Movie, Mp4Index
from lerobot_stream.mp4.settling import settling_samples

FRAME_TICKS = 1000
"""Duration of every frame. Ticks a second are chosen so that playback has the right speed."""
MAX_TIMESCALE = 1_000_000
FIXED_BYTES = 497
"""Bytes of a mini-MP4 besides samples, what it copies, and what depends on their number."""
ROW, TABLE, FREE = 8, 16, 8
"""Bytes of a row of ``stts`` or ``ctts``; of an empty ``ctts`` or ``stss``; of an empty box."""
UPRIGHT = b"".join(value.to_bytes(4) for value in (1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30))
"""The matrix that neither turns nor scales."""


@dataclass(frozen=True, slots=True, eq=False)
class MiniMp4:
    """A run of samples as a file, and what a decoder must be told of it."""

    data: bytes
    """The file."""
    samples: NDArray[np.int64]
    """``(m,)`` Sample number, in the whole file, of each picture in order of presentation."""
    pts: NDArray[np.int64]
    """``(m,)`` Presentation time of each, in ticks, a frame's duration apart."""
    key_frame: NDArray[np.bool_]
    """``(m,)`` True where decoding may start: sync samples, unless the end is too near."""
    duration: int
    """Ticks of one frame."""
    timescale: int
    """Ticks a second."""

    def mapping_json(self) -> str:
        """Give the mapping for torchcodec's ``custom_frame_mappings``, all pictures listed."""
        keys = ("0", "1")
        frames = ",".join(
            [
                f'{{"pts":{pts},"duration":{self.duration},"key_frame":{keys[key]}}}'
                for pts, key in zip(self.pts.tolist(), self.key_frame.tolist(), strict=True)
            ]
        )
        return f'{{"frames":[{frames}]}}'


def mini_mp4_sizes(
    index: Mp4Index, start: NDArray[np.int64], stop: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Say how many bytes the mini-MP4 of each run of samples has, before any is fetched.

    Args:
        index: The file's sample table.
        start: ``(E,)`` First sample number of each run.
        stop: ``(E,)`` One past the last.

    Returns:
        ``(E,)`` Exactly the length of what :func:`build_mini_mp4` makes; 0 for an empty run.
    """
    count = stop - start
    low, high = (int(start.min()), int(stop.max())) if len(start) else (0, 0)
    total = np.append(0, np.cumsum(index.size[low:high]))
    payload = total[stop - low] - total[start - low]
    syncs = np.searchsorted(index.sync, stop) - np.searchsorted(index.sync, start)
    # descents[i] counts those within the first i samples from the lowest start
    pts = index.pts_s[low:high]
    descents = np.append([0, 0], np.cumsum(pts[1:] < pts[:-1]))
    reordered = descents[stop - low] > descents[np.minimum(start - low + 1, len(pts))]
    plain = ROW + np.where(syncs < count, TABLE + 4 * syncs, 0)
    mixed = 2 * ROW * count + 2 * TABLE + 4 * syncs + FREE
    table = 4 * count + np.where(reordered, mixed, plain)
    large = np.where(8 + payload >= 1 << 32, 8, 0)
    fixed = FIXED_BYTES + len(index.movie.ftyp) + len(index.movie.stsd_body)
    return np.where(count > 0, fixed + table + large + payload, 0)


def mini_mp4_size(index: Mp4Index, start: int, stop: int) -> int:
    """Say how many bytes the mini-MP4 of one run of samples has; see :func:`mini_mp4_sizes`."""
    (size,) = mini_mp4_sizes(index, np.array([start]), np.array([stop])).tolist()
    return int(size)


def build_mini_mp4(
    index: Mp4Index, start: int, stop: int, payload: bytes | memoryview, payload_offset: int
) -> MiniMp4:
    """Put the samples ``[start, stop)`` into a file of their own.

    The picture presented as the r-th of the run is shown ``r`` frame durations after the first:
    a constant rate, no edit list, nothing of the times in the whole file.

    Args:
        index: The file's sample table.
        start: First sample number, of a sync sample.
        stop: One past the last.
        payload: Bytes of the file that hold all these samples, with or without gaps.
        payload_offset: Byte of the file at which ``payload`` begins.

    Raises:
        ValueError: The run is empty or leaves the file, or the payload lacks a sample.
    """
    if not 0 <= start < stop <= len(index):
        raise ValueError(f"samples [{start}, {stop}) are no run of {len(index)} samples")
    parts = _pack(index, start, stop, memoryview(payload), payload_offset)
    by_time = np.argsort(index.pts_s[start:stop], kind="stable")
    rank = np.empty_like(by_time)
    rank[by_time] = np.arange(stop - start)
    cts, dts = _times(rank)
    low, high = np.searchsorted(index.sync, [start, stop])
    sync = index.sync[low:high] - start
    marked = sync[(sync <= stop - start - settling_samples(index.movie.codec, rank)) | (sync == 0)]
    key_frame = np.zeros(stop - start, dtype=np.bool_)
    key_frame[rank[marked]] = True
    timescale = _timescale(index, start, stop)
    tables = [
        make_box("stsd", index.movie.stsd_body),
        *_time_boxes(cts, dts),
        *_sync_boxes(marked, num_syncs=len(sync), num_samples=len(rank), reordered=cts is not dts),
        make_full_box("stsz", _words([0, len(rank)]), _words(index.size[start:stop])),
    ]
    header = _header(
        index.movie,
        tables,
        num_samples=len(rank),
        payload=sum(map(len, parts)),
        timescale=timescale,
    )
    return MiniMp4(
        data=b"".join([header, *parts]),
        samples=by_time + start,
        pts=cts[by_time],
        key_frame=key_frame,
        duration=FRAME_TICKS,
        timescale=timescale,
    )


def _times(rank: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give composition and decoding times; one and the same array where nothing is reordered.

    Each sample is decoded as late as its own presentation and the samples after it allow, a
    tick apart. So a sync sample's decoding time lies behind the composition time of the one
    before, and a demuxer that is sent to a picture and seeks by decoding times finds the sync
    sample it should. With decoding times at a constant rate it may find the next one instead
    where GOPs are short.
    """
    number = np.arange(len(rank))
    cts = rank * FRAME_TICKS
    if (rank == number).all():
        return cts, cts
    dts = np.minimum.accumulate((cts - number)[::-1])[::-1] + number
    return cts - dts[0], dts - dts[0]


def _timescale(index: Mp4Index, start: int, stop: int) -> int:
    """Give the ticks a second at which the mean frame of the run lasts as it should."""
    seconds = int(index.duration[start:stop].sum()) / index.movie.timescale
    rate = (stop - start) / seconds if seconds > 0 else 30.0
    return int(min(max(round(rate * FRAME_TICKS), 1), MAX_TIMESCALE))


def _pack(
    index: Mp4Index, start: int, stop: int, payload: memoryview, payload_offset: int
) -> list[memoryview]:
    """Cut the payload into the fewest pieces that hold nothing but samples, in their order."""
    begin = index.offset[start:stop] - payload_offset
    end = begin + index.size[start:stop]
    if begin.min() < 0 or end.max() > len(payload):
        held = f"[{payload_offset}, {payload_offset + len(payload)})"
        raise ValueError(f"bytes {held} do not hold all of samples [{start}, {stop})")
    gap = np.flatnonzero(begin[1:] != end[:-1]) + 1
    first, last = begin[np.append(0, gap)], end[np.append(gap - 1, -1)]
    return [payload[a:b] for a, b in zip(first.tolist(), last.tolist(), strict=True)]


def _time_boxes(cts: NDArray[np.int64], dts: NDArray[np.int64]) -> list[bytes]:
    """Give ``stts`` and, where the two differ, ``ctts``: a row a sample, as predicted."""
    if cts is dts:
        return [make_full_box("stts", _words([1, len(dts), FRAME_TICKS]))]
    one = np.ones_like(dts)
    duration = np.diff(dts, append=dts[-1:] + FRAME_TICKS)
    return [
        make_full_box(kind, _words([len(dts)]), _words(np.stack([one, value], axis=1)))
        for kind, value in (("stts", duration), ("ctts", cts - dts))
    ]


def _sync_boxes(
    marked: NDArray[np.int64], *, num_syncs: int, num_samples: int, reordered: bool
) -> list[bytes]:
    """Give ``stss``, and space for the sync samples that are left out of it, as predicted."""
    if not reordered and num_syncs == num_samples:
        return []
    boxes = [make_full_box("stss", _words([len(marked)]), _words(marked + 1))]
    return [*boxes, make_box("free", bytes(4 * (num_syncs - len(marked))))] if reordered else boxes


def _header(
    movie: Movie, tables: list[bytes], *, num_samples: int, payload: int, timescale: int
) -> bytes:
    """Give everything before the samples: ``ftyp``, ``moov`` and the header of ``mdat``."""
    mdat = _mdat_header(payload)
    stsc = make_full_box("stsc", _words([1, 1, num_samples, 1]))
    stco = make_full_box("stco", _words([1, 0]))
    moov = _moov(movie, num_samples, timescale, [*tables, stsc, stco])
    # The place of the first sample is the last word of the last box.
    place = len(movie.ftyp) + len(moov) + len(mdat)
    return movie.ftyp + moov[:-4] + place.to_bytes(4) + mdat


def _moov(movie: Movie, count: int, timescale: int, boxes: list[bytes]) -> bytes:
    """Wrap the boxes of a sample table into a movie of one track."""
    times = bytes(16) + timescale.to_bytes(4) + (count * FRAME_TICKS).to_bytes(8)  # version 1
    mvhd = times + (1 << 16).to_bytes(4) + bytes(12) + UPRIGHT + bytes(24) + (2).to_bytes(4)
    tkhd = bytes(16) + (1).to_bytes(4) + bytes(4) + (count * FRAME_TICKS).to_bytes(8) + bytes(16)
    pixels = b"".join(min(n, 0xFFFF).to_bytes(2) + bytes(2) for n in (movie.width, movie.height))
    url = make_full_box("url ", flags=1)  # samples lie in this file
    dinf = make_box("dinf", make_full_box("dref", _words([1]), url))
    minf = [make_full_box("vmhd", bytes(8), flags=1), dinf, make_box("stbl", *boxes)]
    mdia = [
        make_full_box("mdhd", times, b"\x55\xc4\0\0", version=1),  # language "und"
        make_full_box("hdlr", bytes(4) + b"vide" + bytes(13)),
        make_box("minf", *minf),
    ]
    trak = [
        make_full_box("tkhd", tkhd, UPRIGHT, pixels, version=1, flags=3),
        make_box("mdia", *mdia),
    ]
    return make_box("moov", make_full_box("mvhd", mvhd, version=1), make_box("trak", *trak))


def _mdat_header(payload: int) -> bytes:
    if 8 + payload >= 1 << 32:
        return (1).to_bytes(4) + b"mdat" + (16 + payload).to_bytes(8)
    return (8 + payload).to_bytes(4) + b"mdat"


def _words(values: list[int] | NDArray[np.int64]) -> bytes:
    return np.asarray(values).astype(">u4").tobytes()
