"""Strategy ``clip``: lanes of episodes decoded once, shuffled behind the decoder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.plan.entries import common_entries, largest_gaps, start_costs
from lerobot_stream.plan.lanes import Runs, Visits, free_runs, grid_runs, ring_visits, whole_visits
from lerobot_stream.plan.order import Order
from lerobot_stream.plan.random import generator
from lerobot_stream.plan.share import Share

_FREE_COST = 1.1
_DRAWN_RUNS = 1 << 12
_MANY_RUNS = 64
"""Open runs whose items mix well: about one of each in a batch."""


def plan_clip(share: Share, *seeds: int) -> Order:
    """Order of one epoch of a share.

    Args:
        share: The worker's share.
        seeds: What the generator is seeded by.
    """
    rng = generator(*seeds)
    entries = common_entries(share.episodes)
    free = affordable_runs(share, entries)
    lanes = share.pool()
    if free is None:
        gaps = largest_gaps(share.episodes, entries)
        if 8 * int(gaps.sum()) <= int(share.episodes.lengths.sum()):
            lanes = share.pool(3 * share.config.worker_pool_size)
    capacity = share.config.capacity(lanes)
    run_frames = _run_frames(share.config.run_frames, capacity.rows)
    if free is None:
        visits = ring_visits(share, num_lanes=capacity.lanes, rng=rng)
        runs = grid_runs(visits, run_frames)
        weights = _Items.of(share, visits, runs).count
    else:
        visits = whole_visits(share, num_lanes=capacity.lanes, rng=rng)
        if run_frames != share.config.run_frames:
            free = free_runs(share, entries, run_frames=run_frames) or free
        runs = _shuffled_runs(visits, free, rng)
        weights = _first_visits_shortened(visits, runs, _Items.of(share, visits, runs).count, rng)
    runs = runs.take(_by_key(visits.lane[runs.visit], weights, rng))
    items = _Items.of(share, visits, runs)
    return _order(share, visits, runs, items, capacity.spread, seeds)


def affordable_runs(share: Share, entries: NDArray[np.int64]) -> Runs | None:
    """Runs of all episodes that may be decoded each on its own, or ``None``.

    Args:
        share: The worker's share.
        entries: ``(k,)`` Common entries, counted over all episodes of the share.

    Returns:
        Runs of whole episodes where decoding them apart costs at most a tenth more than
        decoding each episode once, in every episode.
    """
    config, episodes = share.config, share.episodes
    runs = free_runs(share, entries, run_frames=config.run_frames)
    if runs is None:
        return None
    first = np.maximum(runs.start + config.first_offset, 0)
    stop = np.minimum(runs.stop + config.last_offset, episodes.lengths[runs.visit])
    cost = (stop - first) * episodes.num_cameras + start_costs(episodes, runs.visit, first)
    costs = np.zeros(len(episodes), dtype=np.int64)
    np.add.at(costs, runs.visit, cost)
    allowed = _FREE_COST * episodes.lengths * episodes.num_cameras
    return runs if np.all(costs <= allowed) else None


def _run_frames(run_frames: int, rows: int) -> int:
    """Frames of a run: twice as many as asked for where enough such runs are open at a time.

    Decoding them costs a fiftieth less.
    """
    return 2 * run_frames if rows >= _MANY_RUNS * 2 * run_frames else run_frames


def _shuffled_runs(visits: Visits, runs: Runs, rng: np.random.Generator) -> Runs:
    """Runs of whole episodes in the order of their visits, shuffled within each."""
    visit_of = np.empty(len(visits.episode), dtype=np.int64)
    visit_of[visits.episode] = np.arange(len(visits.episode))
    visit = visit_of[runs.visit]
    taken = runs.take(np.lexsort((rng.random(len(visit)), visit)))
    return Runs(visit_of[taken.visit], taken.start, taken.stop)


def _first_visits_shortened(
    visits: Visits, runs: Runs, count: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Frames of each run in 64ths, fewer in a lane's first visit.

    It passes faster, by a quarter to the whole of its length, so that lanes do not all
    change their episode at once.
    """
    first = np.diff(visits.lane, prepend=-1) > 0
    weight: NDArray[np.int64] = np.full(len(visits.lane), 64, dtype=np.int64)
    weight[first] = 16 + (rng.random(int(first.sum())) * 49).astype(np.int64)
    shortened: NDArray[np.int64] = count * weight[runs.visit]
    return shortened


def _by_key(
    lane: NDArray[np.int64], weights: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Runs in the order in which they are decoded.

    A run behind ``p`` of the ``m`` frames of its lane gets a key between ``p / m`` and that
    of the next, so that each lane keeps its order and all end together.
    """
    stops = np.cumsum(weights)
    lane_start = np.searchsorted(lane, np.arange(lane[-1] + 2))
    borders = np.append(0, stops)[lane_start]
    before = stops - weights - borders[lane]
    keys = (before + rng.random(len(lane)) * weights) / np.diff(borders)[lane]
    by_key: NDArray[np.int64] = np.argsort(keys, kind="stable")
    return by_key


@dataclass(frozen=True, slots=True, eq=False)
class _Items:
    """The frames to deliver of each run."""

    first: NDArray[np.int64]
    """``(r,)`` First of them, as its number or, where frames are listed, its place there."""
    count: NDArray[np.int64]
    """``(r,)`` How many."""

    @classmethod
    def of(cls, share: Share, visits: Visits, runs: Runs) -> _Items:
        """Look up what a share delivers of each run."""
        if share.frames is None:
            return cls(runs.start, runs.stop - runs.start)
        starts = np.cumsum(share.episodes.lengths) - share.episodes.lengths
        listed = np.repeat(starts, share.frames.counts) + share.frames.value
        base = starts[visits.episode[runs.visit]]
        first = np.searchsorted(listed, base + runs.start)
        return cls(first, np.searchsorted(listed, base + runs.stop) - first)

    def frames(self, share: Share) -> NDArray[np.int32]:
        """``(n,)`` Frame numbers of all runs, one run after another."""
        shift = self.first - (np.cumsum(self.count) - self.count)
        frames = np.repeat(shift.astype(np.int32), self.count)
        frames += np.arange(len(frames), dtype=np.int32)
        return frames if share.frames is None else share.frames.value[frames]


def spread(counts: NDArray[np.int64], width: int, seeds: tuple[int, ...]) -> NDArray[np.int32]:
    """Displace the items of runs by random numbers of places below ``width``.

    Sorts ``i + width * u``. Each ``u`` is uniform in ``[0, 1)``, and those of one run lie on
    an even grid, so that neighbours seldom meet in a batch. Blocks of runs have their own
    seeds and are sorted one by one: what is below the next block's start is in place.

    Args:
        counts: ``(r,)`` Items of each run, at least one each.
        width: Places that an item may be displaced by.
        seeds: What the draws are seeded by.

    Returns:
        ``(n,)`` For each place, which item it gets, counted along the runs; the two numbers
        differ by at most ``width``.
    """
    stops = np.cumsum(counts)
    placed = np.empty(int(stops[-1]), dtype=np.int32)
    done, stop = 0, 0
    key = np.zeros(0)
    number = np.zeros(0, dtype=np.int32)
    for block, first in enumerate(range(0, len(counts), _DRAWN_RUNS)):
        run_counts = counts[first : first + _DRAWN_RUNS]
        start, stop = stop, stop + int(run_counts.sum())
        drawn = width * _grids(run_counts, generator(*seeds, block))
        key = np.concatenate([key, np.arange(start, stop) + drawn])
        number = np.concatenate([number, np.arange(start, stop, dtype=np.int32)])
        by_key = np.argsort(key, kind="stable")
        key, number = key[by_key], number[by_key]
        settled = len(key) if stop == len(placed) else int(np.searchsorted(key, stop))
        placed[done : done + settled] = number[:settled]
        done += settled
        key, number = key[settled:], number[settled:]
    return placed


def _grids(counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Even grids in ``[0, 1)`` of the given sizes, each shuffled and shifted at random."""
    widest = int(counts.max())
    within = np.arange(widest) < counts[:, None]  # (r, widest)
    shuffle = np.argsort(np.where(within, rng.random(within.shape), 2.0), axis=1, kind="stable")
    grids: NDArray[np.float64] = (shuffle + rng.random((len(counts), 1))) / counts[:, None]
    return grids[within]


def _order(
    share: Share,
    visits: Visits,
    runs: Runs,
    items: _Items,
    width: int,
    seeds: tuple[int, ...],
) -> Order:
    """Number visits by their first run and put every item in its place."""
    kept = items.count > 0
    visit_of_run = runs.visit[kept]
    used, first = np.unique(visit_of_run, return_index=True)
    used = used[np.argsort(first)]
    number = np.empty(len(visits.episode), dtype=np.int32)
    number[used] = np.arange(len(used), dtype=np.int32)
    count = items.count[kept]
    placed = spread(count, width, seeds)
    visit = np.repeat(number[visit_of_run], count)[placed]
    frame = items.frames(share)[placed]
    decode = np.empty_like(placed)
    decode[placed] = np.arange(len(placed), dtype=np.int32)
    return Order(
        visit=visit,
        frame=frame,
        visit_episode=visits.episode[used],
        visit_start=visits.start[used].astype(np.int32),
        visit_stop=visits.stop[used].astype(np.int32),
        decode=decode,
        run_start=np.append(0, np.cumsum(count)).astype(np.int32),
        spread=min(width, len(placed)),
    )
