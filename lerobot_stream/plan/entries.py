"""Where decoding can start clean, and what starting elsewhere costs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.plan.share import Episodes


def common_entry(episodes: Episodes, episode: int, frame: int) -> int:
    """Last frame, at or before the given one, at which all cameras can start clean."""
    rows = range(episode * episodes.num_cameras, (episode + 1) * episodes.num_cameras)
    if not rows:
        return frame
    entries = [row[row <= frame] for row in map(episodes.entries.__getitem__, rows)]
    common = entries[0]
    for other in entries[1:]:
        common = np.intersect1d(common, other)
    return int(common.max(initial=0))


def common_entries(episodes: Episodes) -> NDArray[np.int64]:
    """Frames at which all cameras can start clean, counted over all episodes.

    Returns:
        ``(k,)`` Rising; frame ``f`` of an episode is counted on from the frames of all
        episodes before it. The first frame of each episode is always there.
    """
    stops = np.cumsum(episodes.lengths)
    starts = stops - episodes.lengths
    able = np.zeros(int(stops[-1]), dtype=np.uint8)
    for camera in range(episodes.num_cameras):
        able[_camera_entries(episodes, starts, camera)] += 1
    able = able == episodes.num_cameras
    able[starts] = True
    return np.flatnonzero(able)


def largest_gaps(episodes: Episodes, entries: NDArray[np.int64]) -> NDArray[np.int64]:
    """``(e,)`` Most frames between neighbouring common entries, or the last and the end."""
    stops = np.cumsum(episodes.lengths)
    gaps = np.diff(entries, append=stops[-1])
    gaps_of: NDArray[np.int64] = np.maximum.reduceat(
        gaps, np.searchsorted(entries, stops - episodes.lengths)
    )
    return gaps_of


def start_costs(
    episodes: Episodes, episode: NDArray[np.int64], frame: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Frames to decode and not deliver when decoding starts at given frames.

    Args:
        episodes: The episodes.
        episode: ``(m,)`` Position of each start's episode.
        frame: ``(m,)`` First frame needed.

    Returns:
        ``(m,)`` Distances to the last clean entry before, added up over the cameras.
    """
    starts = np.cumsum(episodes.lengths) - episodes.lengths
    wanted = starts[episode] + frame
    costs = np.zeros(len(wanted), dtype=np.int64)
    for camera in range(episodes.num_cameras):
        entries = np.append(_camera_entries(episodes, starts, camera), -1)
        before = np.searchsorted(entries[:-1], wanted, side="right") - 1  # -1 where none is
        costs += wanted - np.maximum(entries[before], starts[episode])
    return costs


def _camera_entries(
    episodes: Episodes, starts: NDArray[np.int64], camera: int
) -> NDArray[np.int64]:
    """Clean entries of one camera, counted over all episodes."""
    entries = episodes.entries
    if episodes.num_cameras > 1:
        rows = np.arange(camera, len(entries), episodes.num_cameras)
        entries = entries.select(rows)
    flat = np.repeat(starts, entries.counts)
    flat += entries.value
    return flat
