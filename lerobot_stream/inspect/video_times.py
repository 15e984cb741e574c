"""When the frames of each video are shown, against the rows, and what reaching them costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.dataset.episodes import EpisodeTable
from lerobot_stream.inspect.row_values import RowValues
from lerobot_stream.inspect.video_files import VideoFiles
from lerobot_stream.mp4.select import Presentation, present

DRIFT_EDGES_S = (1e-4, 1e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0)
"""Borders of the bins in which frames are counted by their drift."""


@dataclass(frozen=True, slots=True, eq=False)
class VideoTimes:
    """Times of all videos that could be indexed; ``E`` episodes, ``C`` cameras, ``P`` files."""

    drift_s: NDArray[np.float64]
    """``(E, C)`` Most seconds between a frame and its row; NaN where unknown."""
    worst_frame: NDArray[np.int64]
    """``(E, C)`` The frame that far off; -1 where unknown."""
    drift_counts: NDArray[np.int64]
    """``(bins,)`` Frames by drift, between ``DRIFT_EDGES_S`` and beyond them on either side."""
    lead: NDArray[np.int64]
    """``(E, C)`` Frames decoded before the episode's first, which lies inside a GOP."""
    num_frames: NDArray[np.int64]
    """``(P,)`` Frames presented."""
    unused: NDArray[np.int64]
    """``(P,)`` Frames of them that no episode uses."""
    still: NDArray[np.int64]
    """``(P,)`` Frames of them that are shown no later than the one before."""
    rate: NDArray[np.float64]
    """``(P,)`` Frames a second, by the median distance; NaN for a single frame."""
    gop: NDArray[np.int64]
    """``(P,)`` Frames of a GOP, by the median."""
    longest_gop: NDArray[np.int64]
    """``(P,)`` Frames of the longest GOP."""


def read_video_times(
    videos: VideoFiles, table: EpisodeTable, fps: float, values: RowValues | None
) -> VideoTimes:
    """Go through the sample tables once more, with the places of the episodes known.

    Args:
        videos: The videos.
        table: The dataset's episodes.
        fps: Frames a second.
        values: Rows; where a row was not read, an even rate stands for its timestamp.
    """
    spans = videos.spans
    cells, files = spans.first_frame.shape, len(spans.paths)
    found = VideoTimes(
        drift_s=np.full(cells, np.nan),
        worst_frame=np.full(cells, -1, np.int64),
        drift_counts=np.zeros(len(DRIFT_EDGES_S) + 1, np.int64),
        lead=np.zeros(cells, np.int64),
        num_frames=np.zeros(files, np.int64),
        unused=np.zeros(files, np.int64),
        still=np.zeros(files, np.int64),
        rate=np.full(files, np.nan),
        gop=np.zeros(files, np.int64),
        longest_gop=np.zeros(files, np.int64),
    )
    starts_s = np.zeros(cells)
    for column, key in enumerate(spans.video_keys):
        starts_s[:, column] = table.from_timestamp[key]
    number, camera = np.nonzero(spans.placed)
    order = np.argsort(spans.file[number, camera], kind="stable")
    borders = np.searchsorted(spans.file[number, camera][order], np.arange(files + 1))
    for file, path in enumerate(spans.paths):
        if videos.sidecar is None:
            break
        index = videos.sidecar.index(path)
        presentation = present(index)
        time_s = index.pts_s[presentation.order]
        _measure_file(found, file, time_s, presentation)
        here = order[borders[file] : borders[file + 1]]
        episodes, cameras = number[here], camera[here]
        first = spans.first_frame[episodes, cameras]
        used = np.zeros(len(time_s) + 1, np.int64)
        np.add.at(used, first, 1)
        np.add.at(used, first + table.length[episodes], -1)
        if len(here) == (spans.file == file).sum():  # else some episode would use them
            found.unused[file] = int((np.cumsum(used)[:-1] == 0).sum())
        entry = np.searchsorted(presentation.entry, first, side="right") - 1
        found.lead[episodes, cameras] = first - presentation.entry[entry]
        from_s = starts_s[episodes, cameras]
        row_times = _row_times(values, episodes, table.length[episodes], fps)
        _measure_drift(found, (episodes, cameras), time_s, first, from_s, row_times, table)
    return found


def _measure_file(
    found: VideoTimes, file: int, time_s: NDArray[np.float64], presentation: Presentation
) -> None:
    gaps = np.diff(time_s)
    found.num_frames[file] = len(time_s)
    found.still[file] = int((gaps <= 0).sum())
    if len(gaps) and np.median(gaps) > 0:
        found.rate[file] = 1 / np.median(gaps)
    gops = np.diff(presentation.entry, append=len(time_s))
    if len(gops):
        found.gop[file] = int(np.median(gops))
        found.longest_gop[file] = int(gops.max())


def _row_times(
    values: RowValues | None, episodes: NDArray[np.intp], length: NDArray[np.int64], fps: float
) -> NDArray[np.float64]:
    """Timestamps of the rows of some episodes, one after another; even where not read."""
    start = np.repeat(np.cumsum(length) - length, length)
    frame = np.arange(int(length.sum())) - start
    even: NDArray[np.float64] = frame / fps
    if values is None or not len(values.timestamp):
        return even
    place = np.repeat(values.frame_start[episodes], length) + frame
    stop = np.repeat(values.frame_start[episodes + 1], length)
    read = values.timestamp[np.minimum(place, len(values.timestamp) - 1)]
    return np.where((place < stop) & np.isfinite(read), read, even)


def _measure_drift(
    found: VideoTimes,
    cells: tuple[NDArray[np.intp], NDArray[np.intp]],
    time_s: NDArray[np.float64],
    first: NDArray[np.int64],
    from_s: NDArray[np.float64],
    row_times: NDArray[np.float64],
    table: EpisodeTable,
) -> None:
    """Compare the frames of all episodes of a file with their rows."""
    length = table.length[cells[0]]
    if not len(length):
        return
    start = np.cumsum(length) - length
    frame = np.arange(len(row_times)) - np.repeat(start, length)
    shown = time_s[np.repeat(first, length) + frame] - np.repeat(from_s, length)
    # A timestamp of 32 bits is itself only exact to its last digit.
    digit = np.spacing(np.abs(row_times).astype(np.float32)).astype(np.float64)
    off = np.maximum(np.abs(shown - row_times) - digit, 0)
    worst = np.maximum.reduceat(off, start)
    at = np.where(off == np.repeat(worst, length), frame, len(row_times))
    found.drift_s[cells] = worst
    found.worst_frame[cells] = np.minimum.reduceat(at, start)
    bins = np.searchsorted(DRIFT_EDGES_S, off)
    found.drift_counts[:] += np.bincount(bins, minlength=len(DRIFT_EDGES_S) + 1)
