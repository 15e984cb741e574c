from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.plan.entries import common_entries, common_entry
from lerobot_stream.plan.lanes import Runs, Visits, free_runs, grid_runs, ring_visits, whole_visits
from lerobot_stream.plan.ragged import Ragged
from lerobot_stream.plan.random import generator
from lerobot_stream.plan.share import Episodes, Share
from tests.plan.shares import make_episodes, make_share, shares


def frames_of_lanes(share: Share, visits: Visits) -> list[int]:
    """Frames to deliver of each lane's visits."""
    frames = [0] * (int(visits.lane.max()) + 1)
    for lane, e, start, stop in zip(
        visits.lane, visits.episode, visits.start, visits.stop, strict=True
    ):
        rows = share.frames
        listed = np.arange(share.episodes.lengths[e]) if rows is None else rows[e]
        frames[lane] += int(np.sum((listed >= start) & (listed < stop)))
    return frames


@given(shares(), st.integers(1, 9), st.integers(0, 99))
def test_each_episode_joins_the_lane_with_the_fewest_frames(
    share: Share, num_lanes: int, seed: int
) -> None:
    num_lanes = min(num_lanes, len(share.episodes))
    visits = whole_visits(share, num_lanes=num_lanes, rng=generator(seed))
    assert sorted(visits.episode.tolist()) == list(range(len(share.episodes)))
    assert np.all(np.diff(visits.lane) >= 0)
    frames = frames_of_lanes(share, visits)
    assert len(frames) == num_lanes
    assert min(frames) >= max(frames) - int(share.counts.max())


@given(shares(), st.integers(1, 9), st.integers(0, 99))
def test_a_ring_has_every_frame_once_and_cuts_at_most_one_episode(
    share: Share, num_lanes: int, seed: int
) -> None:
    num_lanes = min(num_lanes, len(share.episodes))
    visits = ring_visits(share, num_lanes=num_lanes, rng=generator(seed))
    seen = [
        (int(e), f)
        for e, start, stop in zip(visits.episode, visits.start, visits.stop, strict=True)
        for f in range(start, stop)
    ]
    lengths = share.episodes.lengths.tolist()
    assert sorted(seen) == [(e, f) for e, n in enumerate(lengths) for f in range(n)]
    assert sum(frames_of_lanes(share, visits)) == share.num_items
    for lane in range(num_lanes):
        (mine,) = np.nonzero(visits.lane == lane)
        middle = mine[1:-1]
        assert np.all(visits.start[middle] == 0)
        assert np.all(visits.stop[middle] == share.episodes.lengths[visits.episode[middle]])
        if visits.start[mine[0]]:
            assert visits.episode[mine[0]] == visits.episode[mine[-1]]
            assert visits.stop[mine[-1]] == visits.start[mine[0]]


@given(shares(), st.integers(0, 99))
def test_a_cut_lies_on_a_common_entry_where_one_is_near(share: Share, seed: int) -> None:
    visits = ring_visits(share, num_lanes=1, rng=generator(seed))
    episode, start = int(visits.episode[0]), int(visits.start[0])
    entry = common_entry(share.episodes, episode, start)
    assert entry == start or start - entry > share.episodes.lengths[episode] // 8


def test_cuts_of_many_lanes_lie_evenly_in_their_episodes() -> None:
    share = make_share(make_episodes([1000] * 40, gops=[1]))
    visits = ring_visits(share, num_lanes=20, rng=generator(1))
    firsts = np.flatnonzero(np.diff(visits.lane, prepend=-1))
    assert sorted((visits.start[firsts] // 50).tolist()) == list(range(20))


def test_a_cut_is_uniform_over_the_frames() -> None:
    share = make_share(make_episodes([2, 6], gops=[1]))
    counts = np.zeros((2, 6))
    draws = 4000
    for seed in range(draws):
        visits = ring_visits(share, num_lanes=1, rng=generator(seed))
        counts[visits.episode[0], visits.start[0]] += 1
    drawn = np.concatenate([counts[0, :2], counts[1]]) / draws
    assert np.all(np.abs(drawn - 1 / 8) < 4.5 * np.sqrt(1 / 8 * 7 / 8 / draws))


@given(shares(), st.integers(1, 9), st.integers(1, 20), st.integers(0, 99))
def test_grid_runs_cut_each_visit_at_multiples(
    share: Share, num_lanes: int, run_frames: int, seed: int
) -> None:
    num_lanes = min(num_lanes, len(share.episodes))
    visits = ring_visits(share, num_lanes=num_lanes, rng=generator(seed))
    runs = grid_runs(visits, run_frames)
    wanted = []
    for visit, (start, stop) in enumerate(zip(visits.start, visits.stop, strict=True)):
        inner = [f for f in range(start + 1, stop) if f % run_frames == 0]
        borders = [int(start), *inner, int(stop)]
        wanted += [(visit, a, b) for a, b in pairwise(borders)]
    assert listed(runs) == wanted


def listed(runs: Runs) -> list[tuple[int, int, int]]:
    """Runs as (visit, first frame, stop)."""
    columns = runs.visit.tolist(), runs.start.tolist(), runs.stop.tolist()
    return list(zip(*columns, strict=True))


def greedy(episodes: Episodes, episode: int, run_frames: int) -> list[tuple[int, int]]:
    """Runs of one episode, cut at the first common entry at least ``run_frames`` on."""
    length = int(episodes.lengths[episode])
    clean = [f for f in range(length) if common_entry(episodes, episode, f) == f]
    runs, start = [], 0
    while start < length:
        stop = min([f for f in clean if f >= start + run_frames], default=length)
        runs.append((start, stop))
        start = stop
    return runs


@given(shares(), st.integers(1, 20))
def test_free_runs_start_at_common_entries(share: Share, run_frames: int) -> None:
    episodes = share.episodes
    wanted = [(e, *run) for e in range(len(episodes)) for run in greedy(episodes, e, run_frames)]
    runs = free_runs(share, common_entries(episodes), run_frames=run_frames)
    if any(stop - start > 1.5 * run_frames for _, start, stop in wanted):
        assert runs is None
    else:
        assert runs is not None
        assert listed(runs) == wanted


def test_frames_left_decide_which_lane_is_light() -> None:
    share = make_share(make_episodes([50] * 4))
    rows = [list(range(30)), list(range(10)), list(range(10)), list(range(10))]
    visits = whole_visits(replace(share, frames=Ragged.of(rows)), num_lanes=2, rng=generator(0))
    big = visits.lane[visits.episode == 0]
    assert np.sum(visits.lane == big) <= 2
    assert min(frames_of_lanes(replace(share, frames=Ragged.of(rows)), visits)) >= 20
