"""Queues of visits that ``clip`` reads side by side, and the runs that each visit is cut into."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.plan.entries import common_entry
from lerobot_stream.plan.random import shuffled
from lerobot_stream.plan.shard import deal
from lerobot_stream.plan.share import Share


@dataclass(frozen=True, slots=True, eq=False)
class Visits:
    """Stretches of episodes, lane after lane, in the order in which a lane reads them."""

    lane: NDArray[np.int64]
    """``(v,)`` Rising."""
    episode: NDArray[np.int64]
    """``(v,)`` Position in the share."""
    start: NDArray[np.int64]
    """``(v,)`` First frame."""
    stop: NDArray[np.int64]
    """``(v,)`` One past the last frame."""


def whole_visits(share: Share, *, num_lanes: int, rng: np.random.Generator) -> Visits:
    """Put shuffled episodes into lanes, each into the one with the fewest frames.

    Args:
        share: The worker's share.
        num_lanes: Lanes, at most one an episode.
        rng: Where all randomness comes from.
    """
    episode = shuffled(len(share.episodes), rng)
    lane = np.array(deal(share.counts[episode].tolist(), num_lanes), dtype=np.int64)
    by_lane = np.argsort(lane, kind="stable")
    episode = episode[by_lane]
    return Visits(lane[by_lane], episode, np.zeros_like(episode), share.episodes.lengths[episode])


def ring_visits(share: Share, *, num_lanes: int, rng: np.random.Generator) -> Visits:
    """Like :func:`whole_visits`, but every lane starts at a random frame of its ring.

    The episode that is cut gives the lane its first and its last visit. Cuts are spread
    evenly over the phases of their episodes, so that even a few lanes begin neither all
    early nor all late. A cut moves back to the last common entry where that is at most an
    eighth of the episode away.

    Args:
        share: The worker's share.
        num_lanes: Lanes, at most one an episode.
        rng: Where all randomness comes from.
    """
    whole = whole_visits(share, num_lanes=num_lanes, rng=rng)
    counts = share.counts[whole.episode]
    stops = np.cumsum(counts)
    borders = np.searchsorted(whole.lane, np.arange(num_lanes + 1))
    lane_start = np.append(0, stops)[borders]
    drawn = lane_start[:-1] + (rng.random(num_lanes) * np.diff(lane_start)).astype(np.int64)
    cut_visit = np.searchsorted(stops, drawn, side="right")
    phase = (shuffled(num_lanes, rng) + rng.random(num_lanes)) / num_lanes
    cut_item = (phase * counts[cut_visit]).astype(np.int64)
    parts = []
    for first, stop, cut, item in zip(borders, borders[1:], cut_visit, cut_item, strict=False):
        frame = _cut_frame(share, int(whole.episode[cut]), int(item))
        ring = [(int(i), 0, -1) for i in (*range(cut + 1, stop), *range(first, cut))]
        parts += [(int(cut), frame, -1), *ring] + [(int(cut), 0, frame)] * (frame > 0)
    visit, starts, ends = np.array(parts, dtype=np.int64).T
    whole_stop = whole.stop[visit]
    return Visits(
        lane=whole.lane[visit],
        episode=whole.episode[visit],
        start=starts,
        stop=np.where(ends < 0, whole_stop, ends),
    )


def _cut_frame(share: Share, episode: int, item: int) -> int:
    """Frame at which a ring is cut so that the first visit begins near an item."""
    frame = item if share.frames is None else int(share.frames[episode][item])
    entry = common_entry(share.episodes, episode, frame)
    near = frame - entry <= share.episodes.lengths[episode] // 8
    return entry if near else frame


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Consecutive frames that are decoded together, lane after lane."""

    visit: NDArray[np.int64]
    """``(r,)`` Visit of each run."""
    start: NDArray[np.int64]
    """``(r,)`` First frame."""
    stop: NDArray[np.int64]
    """``(r,)`` One past the last frame."""

    def take(self, which: NDArray[np.int64]) -> Runs:
        """The given runs in the given order."""
        return Runs(self.visit[which], self.start[which], self.stop[which])


def grid_runs(visits: Visits, run_frames: int) -> Runs:
    """Cut visits front to back, at multiples of ``run_frames`` of their episode."""
    first = visits.start // run_frames
    counts = -(-visits.stop // run_frames) - first
    visit = np.repeat(np.arange(len(counts)), counts)
    cell = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts - first, counts)
    return Runs(
        visit=visit,
        start=np.maximum(cell * run_frames, visits.start[visit]),
        stop=np.minimum((cell + 1) * run_frames, visits.stop[visit]),
    )


def free_runs(share: Share, entries: NDArray[np.int64], *, run_frames: int) -> Runs | None:
    """Cut whole episodes at common entries, each run at least ``run_frames`` but the last.

    Args:
        share: The worker's share.
        entries: ``(k,)`` Common entries, counted over all episodes of the share.
        run_frames: Frames wanted in a run.

    Returns:
        Runs of all episodes, frames rising; ``visit`` is the episode's position. ``None``
        where entries are so far apart that a run would exceed what is wanted by half.
    """
    stops = np.cumsum(share.episodes.lengths)
    starts = stops - share.episodes.lengths
    entries = np.append(entries, stops[-1])
    cut, episode = starts, np.arange(len(starts))
    parts = []
    while len(cut):
        wanted = np.minimum(cut + run_frames, stops[episode])
        stop = np.minimum(entries[np.searchsorted(entries, wanted)], stops[episode])
        if np.any(2 * (stop - cut) > 3 * run_frames):
            return None
        parts.append(np.stack([episode, cut, stop]))
        goes_on = stop < stops[episode]
        cut, episode = stop[goes_on], episode[goes_on]
    episode, cut, stop = np.concatenate(parts, axis=1)
    by_frame = np.argsort(cut, kind="stable")
    episode = episode[by_frame]
    return Runs(episode, cut[by_frame] - starts[episode], stop[by_frame] - starts[episode])
