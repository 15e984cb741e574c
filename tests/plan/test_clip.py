from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lerobot_stream.plan.clip import _grids, affordable_runs, spread
from lerobot_stream.plan.cost import decoded_frames
from lerobot_stream.plan.entries import common_entries, start_costs
from lerobot_stream.plan.epoch import plan_epoch
from lerobot_stream.plan.order import Order
from lerobot_stream.plan.ragged import Ragged
from lerobot_stream.plan.random import generator
from lerobot_stream.plan.share import PlanConfig, Share
from tests.plan.shares import CONFIG, make_episodes, make_share, most_open, shares

CLIP = replace(CONFIG, strategy="clip", run_frames=16, pool_size=32)


def is_free(share: Share) -> bool:
    return affordable_runs(share, common_entries(share.episodes)) is not None


def clip(lengths: list[int], config: PlanConfig = CLIP, *, gop: int = 2) -> Order:
    return plan_epoch(make_share(make_episodes(lengths, gops=[gop]), config), epoch=0)


def decode_places(order: Order) -> NDArray[np.int64]:
    """Place in decoding order of each position."""
    assert order.decode is not None
    places = np.empty(len(order), dtype=np.int64)
    places[order.decode] = np.arange(len(order))
    return places


def run_visits(order: Order) -> NDArray[np.int32]:
    assert order.decode is not None
    assert order.run_start is not None
    return order.visit[order.decode[order.run_start[:-1]]]


@given(shares(["clip"]))
def test_place_and_position_differ_by_at_most_the_spread(share: Share) -> None:
    order = plan_epoch(share, epoch=0)
    assert np.abs(decode_places(order) - np.arange(len(order))).max() <= order.spread


@given(shares(["clip"]))
def test_a_run_is_of_one_visit_and_its_frames_rise(share: Share) -> None:
    order = plan_epoch(share, epoch=0)
    assert order.decode is not None
    assert order.run is not None
    run, visit, frame = (column[order.decode] for column in (order.run, order.visit, order.frame))
    same = np.diff(run) == 0
    assert np.all(np.diff(run) >= 0)
    assert np.all(np.diff(visit)[same] == 0)
    assert np.all(np.diff(frame)[same] > 0)
    config = share.config
    pools = [share.pool(times * config.worker_pool_size) for times in (1, 3)]
    doubled = max(config.capacity(pool).rows for pool in pools) >= 64 * 2 * config.run_frames
    longest = (2 if doubled else 1) * config.run_frames
    # An entry may be half a run further on.
    assert np.bincount(run).max() <= (1.5 if is_free(share) else 1) * longest


@given(shares(["clip"]))
def test_residents_are_at_most_the_lanes(share: Share) -> None:
    order = plan_epoch(share, epoch=0)
    visits = run_visits(order)
    _, first = np.unique(visits, return_index=True)
    last = len(visits) - 1 - np.unique(visits[::-1], return_index=True)[1]
    pools = [share.pool(times * share.config.worker_pool_size) for times in (1, 3)]
    lanes = [share.config.capacity(pool).lanes for pool in pools]  # halving more may leave fewer
    assert most_open(first, last) <= (lanes[0] if is_free(share) else max(lanes))


@given(shares(["clip"]))
def test_a_visit_that_is_not_free_is_read_front_to_back(share: Share) -> None:
    order = plan_epoch(share, epoch=0)
    assert order.decode is not None
    if is_free(share):
        return
    for visit in range(order.num_visits):
        frames = order.frame[order.decode][order.visit[order.decode] == visit]
        assert np.all(np.diff(frames) > 0)


@given(shares(["clip"], partial=False))
def test_no_more_is_decoded_than_promised(share: Share) -> None:
    order = plan_epoch(share, epoch=0)
    cameras = share.episodes.num_cameras
    decoded = decoded_frames(share, order)
    if is_free(share):
        assert decoded <= 1.1 * len(order) * cameras
        return
    first = np.maximum(order.visit_start.astype(np.int64) + share.config.first_offset, 0)
    starts = int(start_costs(share.episodes, order.visit_episode, first).sum())
    reach = share.config.last_offset - share.config.first_offset
    assert len(order) * cameras <= decoded
    assert decoded <= (len(order) + reach * order.num_visits) * cameras + starts


@pytest.mark.parametrize("gop", [1, 2, 8])
def test_free_runs_decode_each_frame_once(gop: int) -> None:
    share = make_share(make_episodes([300] * 6, gops=[gop, gop]), CLIP)
    assert decoded_frames(share, plan_epoch(share, epoch=0)) == 2 * 6 * 300


@pytest.mark.parametrize(
    ("gop", "window", "free"),
    [
        (1, (0, 0), True),
        (2, (0, 0), True),
        (16, (0, 0), True),
        (30, (0, 0), False),
        (250, (0, 0), False),
        (1, (-1, 0), True),
        (2, (-1, 0), False),
        (1, (0, 2), False),
    ],
)
def test_short_gops_without_wide_windows_are_free(
    gop: int, window: tuple[int, int], free: bool
) -> None:
    config = replace(CLIP, first_offset=window[0], last_offset=window[1])
    assert is_free(make_share(make_episodes([200, 300], gops=[gop]), config)) == free


def test_cameras_whose_entries_disagree_are_not_free() -> None:
    rows = [list(range(0, 200, 2)), list(range(1, 200, 2))]
    assert not is_free(make_share(make_episodes([200], gops=[2, 2], entries=rows), CLIP))


def test_one_episode_that_is_not_free_decides_for_all() -> None:
    rows = [range(0, 200, 2)] * 3 + [[0]]
    episodes = make_episodes([200] * 4, entries=[list(row) for row in rows])
    assert not is_free(make_share(episodes, CLIP))


def test_episodes_without_video_are_free() -> None:
    order = clip([40] * 4)
    share = make_share(make_episodes([40] * 4, gops=[]), CLIP)
    assert is_free(share)
    assert plan_epoch(share, epoch=0).num_visits == order.num_visits


@pytest.mark.parametrize(("gop", "lanes"), [(2, 4), (20, 12), (150, 4)])
def test_short_gops_that_are_read_in_order_get_three_times_the_lanes(gop: int, lanes: int) -> None:
    config = replace(CLIP, pool_size=4, run_frames=8, decoded_bytes=400)
    order = clip([200] * 48, config, gop=gop)
    visits = run_visits(order)
    _, first = np.unique(visits, return_index=True)
    last = len(visits) - 1 - np.unique(visits[::-1], return_index=True)[1]
    assert most_open(first, last) == lanes


def test_lanes_obey_the_byte_budget() -> None:
    config = replace(CLIP, pool_size=4, run_frames=8, byte_budget=7 * 200)
    visits = run_visits(clip([200] * 48, config, gop=20))
    _, first = np.unique(visits, return_index=True)
    last = len(visits) - 1 - np.unique(visits[::-1], return_index=True)[1]
    assert most_open(first, last) == 6


@pytest.mark.parametrize(
    ("gop", "rows", "longest"), [(250, 2047, 16), (250, 2048, 32), (2, 2047, 16), (2, 2048, 32)]
)
def test_runs_are_longer_where_many_of_them_fit(gop: int, rows: int, longest: int) -> None:
    order = clip([300] * 40, replace(CLIP, decoded_bytes=rows), gop=gop)
    assert order.run_start is not None
    assert np.diff(order.run_start).max() == longest


@pytest.mark.parametrize("gop", [2, 250])
def test_lanes_leave_their_first_episode_at_different_times(gop: int) -> None:
    lanes, episodes = 8, 64
    order = clip([200] * episodes, replace(CLIP, pool_size=lanes, decoded_bytes=100), gop=gop)
    _, first = np.unique(run_visits(order), return_index=True)
    changes = np.sort(first)[lanes : 2 * lanes] / len(run_visits(order))
    assert np.ptp(changes) > 0.4 * lanes / episodes  # of the time that one episode takes


def test_all_lanes_end_together() -> None:
    order = clip([200] * 64, replace(CLIP, pool_size=8), gop=250)
    assert len(np.unique(order.visit[-160:])) == 8


@pytest.mark.parametrize("gop", [2, 250])
def test_rows_in_the_making_fit_the_decoded_budget(gop: int) -> None:
    rows, batch = 400, 50
    for seed in range(8):
        config = replace(CLIP, seed=seed, pool_size=8, decoded_bytes=rows)
        order = clip([150] * 50, config, gop=gop)
        assert order.decode is not None
        assert order.run_start is not None
        needed = np.maximum.accumulate(decode_places(order))  # decoded before a position leaves
        run_stop = order.run_start[np.searchsorted(order.run_start, needed, side="right")]
        farthest = np.maximum.accumulate(order.decode)[run_stop - 1]
        position = np.arange(len(order))
        open_rows = (farthest // batch - position // batch + 1) * batch
        assert open_rows.max() <= rows


def test_the_first_batch_needs_few_items() -> None:
    # About sqrt(2 * spread * batch) of them have to be decoded, not the whole spread.
    spread_, batch = 900, 64
    config = replace(CLIP, decoded_bytes=1200)
    needed = [
        int(decode_places(clip([300] * 64, replace(config, seed=s)))[:batch].max())
        for s in range(20)
    ]
    assert clip([300] * 64, config).spread == spread_
    wanted = np.sqrt(2 * spread_ * batch)
    assert 0.8 * wanted < np.mean(needed) < 1.2 * wanted


def test_the_order_does_not_depend_on_where_blocks_of_draws_end() -> None:
    counts = generator(0).integers(1, 4, 9000)
    drawn = np.concatenate(
        [_grids(counts[i : i + 4096], generator(5, i // 4096)) for i in range(0, 9000, 4096)]
    )
    wanted = np.argsort(np.arange(counts.sum()) + 700 * drawn, kind="stable")
    assert spread(counts, 700, (5,)).tolist() == wanted.tolist()


@given(st.lists(st.integers(1, 30), min_size=1, max_size=20), st.integers(0, 99))
def test_the_draws_of_a_run_lie_on_an_even_grid(counts: list[int], seed: int) -> None:
    drawn = _grids(np.array(counts), generator(seed))
    assert np.all((drawn >= 0) & (drawn < 1))
    for count, run in zip(counts, np.split(drawn, np.cumsum(counts)[:-1]), strict=True):
        assert np.allclose(np.diff(np.sort(run)), 1 / count)


def test_each_place_of_a_run_draws_uniformly() -> None:
    drawn = _grids(np.full(4000, 16), generator(2)).reshape(4000, 16)
    distance = np.abs(np.sort(drawn, axis=0) - (np.arange(4000)[:, None] + 0.5) / 4000)
    assert distance.max() < 2.4 / np.sqrt(4000)  # 16 Kolmogorov-Smirnov tests, 1 in 1,000


def test_frames_left_are_cut_where_whole_episodes_are() -> None:
    share = make_share(make_episodes([64]), replace(CLIP, pool_size=1))
    share = replace(share, frames=Ragged.of([[0, 1, 15, 16, 47, 63]]))
    order = plan_epoch(share, epoch=0)
    assert order.decode is not None
    assert order.run_start is not None
    runs = np.split(order.frame[order.decode], order.run_start[1:-1])
    assert sorted(run.tolist() for run in runs) == [[0, 1, 15], [16], [47], [63]]
