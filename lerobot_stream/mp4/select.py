"""Which samples an episode's frames need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.mp4.settling import settling_samples
from lerobot_stream.span import Span


@dataclass(frozen=True, slots=True, eq=False)
class Presentation:
    """The frames of a file: its presented samples in order of time."""

    order: NDArray[np.int64]
    """``(Q,)`` Sample number of each frame."""
    entry: NDArray[np.int64]
    """``(k,)`` Frame numbers, rising, from which on decoding can start clean."""
    entry_sample: NDArray[np.int64]
    """``(k,)`` The sync sample that decoding starts with for each entry, rising."""
    gop: NDArray[np.int64]
    """``(g,)`` Sync samples, rising, before which everything decoded is presented earlier."""
    reordered: bool
    """True where any sample is presented before one that is decoded earlier."""
    settling: int
    """Samples that a run must have at least, unless the file ends; 0 where any number does."""


def present(index: Mp4Index) -> Presentation:
    """Put a file's samples in order of presentation.

    Samples before time 0 are decoded and not presented (an edit list trims them); they have
    no frame number. Frame 0 is an entry even where its sync sample is one of them. A sync
    sample is no entry for its leading pictures, which may need the GOP before (open GOP), and
    is none at all while an earlier sample has still to be presented, or where the file ends
    too soon behind it for a decoder to settle (:func:`.settling.settling_samples`).
    """
    by_time = np.argsort(index.pts_s, kind="stable")
    rank = np.empty_like(by_time)
    rank[by_time] = np.arange(len(index))
    latest = np.maximum.accumulate(rank)
    sync = index.sync
    clean = sync[(sync == 0) | (rank[sync] > latest[sync - 1])]
    settling = settling_samples(index.movie.codec, rank)
    start = clean[(clean <= len(index) - settling) | (clean == clean[:1])]
    hidden = int(np.count_nonzero(index.pts_s < 0))
    frame = np.maximum(rank[start] - hidden, 0)
    last = np.diff(frame, append=-1) != 0  # of several hidden ones the last
    return Presentation(
        order=by_time[hidden:].astype(np.int64),
        entry=frame[last],
        entry_sample=start[last],
        gop=clean,
        reordered=bool((rank[1:] < rank[:-1]).any()),
        settling=settling,
    )


def select_samples(
    index: Mp4Index,
    presentation: Presentation,
    first: NDArray[np.int64],
    length: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the run of samples that decodes each stretch of frames.

    A run starts with the sync sample of the last entry at or before the first frame. It ends
    behind the last sample needed; where pictures are reordered, at the end of that sample's
    GOP, or of a later one where the decoder would not have settled before.

    Args:
        index: The file's sample table.
        presentation: Its frames.
        first: ``(E,)`` First frame number of each stretch.
        length: ``(E,)`` Frames of each stretch, at least 1.

    Returns:
        ``(E,)`` start and ``(E,)`` stop sample numbers. Both are -1 where no entry precedes
        the first frame, so that it cannot be decoded.

    Raises:
        ValueError: A stretch is empty or leaves the file's frames.
    """
    num_frames = len(presentation.order)
    bad = (first < 0) | (length < 1) | (first + length > num_frames)
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(
            f"stretch {i} wants {length[i]} frames from {first[i]}, the file has {num_frames}"
        )
    before = np.searchsorted(presentation.entry, first, side="right") - 1
    known = before >= 0
    start = np.append(presentation.entry_sample, 0)[before]
    if presentation.reordered:
        stop = _maxima(presentation.order, first, first + length) + 1
        stop = np.minimum(np.maximum(stop, start + presentation.settling), len(index))
        borders = np.append(presentation.gop, len(index))
        stop = borders[np.searchsorted(borders, stop)]
    else:
        stop = presentation.order[first + length - 1] + 1
    return np.where(known, start, -1), np.where(known, stop, -1)


def byte_spans(
    index: Mp4Index, start: NDArray[np.int64], stop: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give first and one past last byte of each run of samples, gaps included.

    Args:
        index: The file's sample table.
        start: ``(E,)`` First sample number of each run.
        stop: ``(E,)`` One past the last.

    Returns:
        ``(E,)`` start and ``(E,)`` stop bytes in the file; both -1 where a run is empty.
    """
    some = stop > start
    low, high = np.full_like(start, -1), np.full_like(stop, -1)
    low[some] = -_maxima(-index.offset, start[some], stop[some])
    high[some] = _maxima(index.offset + index.size, start[some], stop[some])
    return low, high


def byte_span(index: Mp4Index, start: int, stop: int) -> Span:
    """Give the bytes of the file that hold the samples ``[start, stop)``, gaps included."""
    offset = index.offset[start:stop]
    return Span(int(offset.min()), int((offset + index.size[start:stop]).max()))


def _maxima(
    values: NDArray[np.int64], start: NDArray[np.int64], stop: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Give the largest value of each non-empty stretch ``[start, stop)``."""
    if not len(start):
        return np.empty(0, dtype=np.int64)
    low, high = int(start.min()), int(stop.max())
    bounds = np.stack([start, stop], axis=1).reshape(-1) - low
    # reduceat refuses a stop at the end
    padded = np.append(values[low:high], np.iinfo(np.int64).min)
    return np.maximum.reduceat(padded, bounds)[::2]
