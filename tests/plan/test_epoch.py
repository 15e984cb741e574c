from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lerobot_stream.errors import PlanError
from lerobot_stream.plan.epoch import plan_epoch
from lerobot_stream.plan.order import last_positions
from lerobot_stream.plan.share import Episodes, Share, plan_share
from lerobot_stream.plan.strategy import Strategy
from tests.plan.shares import (
    CONFIG,
    episode_sets,
    make_episodes,
    make_share,
    most_open,
    pairs,
    shares,
    wanted_pairs,
)

STRATEGIES: list[Strategy] = ["remaining", "round_robin", "clip"]


@given(shares(), st.integers(0, 3))
def test_every_frame_to_deliver_comes_exactly_once(share: Share, epoch: int) -> None:
    assert sorted(pairs(plan_epoch(share, epoch=epoch))) == wanted_pairs(share)


@given(shares(), st.integers(0, 3))
def test_equal_inputs_give_equal_orders(share: Share, epoch: int) -> None:
    order, again = plan_epoch(share, epoch=epoch), plan_epoch(replace(share), epoch=epoch)
    for name in order.__slots__:
        np.testing.assert_array_equal(getattr(order, name), getattr(again, name))


@given(shares(), st.integers(0, 3))
def test_each_item_lies_in_its_visit(share: Share, epoch: int) -> None:
    order = plan_epoch(share, epoch=epoch)
    assert np.all(order.frame >= order.visit_start[order.visit])
    assert np.all(order.frame < order.visit_stop[order.visit])


@given(shares(["remaining", "round_robin"]))
def test_visits_are_numbered_by_their_first_item(share: Share) -> None:
    order = plan_epoch(share, epoch=0)
    visits, first = np.unique(order.visit, return_index=True)
    assert visits.tolist() == list(range(order.num_visits))
    assert np.all(np.diff(first) > 0)


@given(shares(["clip"]))
def test_visits_with_runs_are_numbered_by_their_first_run(share: Share) -> None:
    order = plan_epoch(share, epoch=0)
    assert order.decode is not None
    visits, first = np.unique(order.visit[order.decode], return_index=True)
    assert visits.tolist() == list(range(order.num_visits))
    assert np.all(np.diff(first) > 0)


@given(shares())
def test_last_positions_are_those_of_the_last_items(share: Share) -> None:
    order = plan_epoch(share, epoch=0)
    wanted = [max(np.flatnonzero(order.visit == v)) for v in range(order.num_visits)]
    assert last_positions(order).tolist() == wanted


@given(shares(["remaining", "round_robin"]))
def test_at_most_the_pool_is_resident(share: Share) -> None:
    order = plan_epoch(share, epoch=0)
    _, first = np.unique(order.visit, return_index=True)
    assert most_open(first, last_positions(order).astype(np.int64)) <= share.pool()


@given(episode_sets(), st.integers(1, 4), st.integers(1, 4), st.sampled_from(STRATEGIES))
def test_all_shards_together_visit_each_frame_once(
    episodes: Episodes, world_size: int, num_workers: int, strategy: Strategy
) -> None:
    assume(len(episodes) // world_size >= num_workers)
    config = replace(CONFIG, world_size=world_size, num_workers=num_workers, strategy=strategy)
    seen = []
    try:
        for rank in range(world_size):
            for worker in range(num_workers):
                share = plan_share(episodes, config, rank=rank, worker=worker)
                order = plan_epoch(share, epoch=1)
                seen += [(int(share.positions[e]), f) for e, f in pairs(order)]
    except ValueError as error:  # a rank with a few long episodes
        assume("workers" not in str(error))
        raise
    assert sorted(seen) == [(e, f) for e, n in enumerate(episodes.lengths) for f in range(n)]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("change", ["seed", "epoch", "rank", "worker"])
def test_each_seed_epoch_rank_and_worker_has_an_order_of_its_own(
    strategy: Strategy, change: str
) -> None:
    episodes = make_episodes([20] * 12)
    config = replace(CONFIG, strategy=strategy, world_size=2, num_workers=2)
    at = {"seed": 7, "epoch": 0, "rank": 0, "worker": 0}

    def items(at: dict[str, int]) -> list[tuple[int, int]]:
        share = plan_share(
            episodes, replace(config, seed=at["seed"]), rank=at["rank"], worker=at["worker"]
        )
        return pairs(plan_epoch(share, epoch=at["epoch"]))

    assert items(at) != items({**at, change: at[change] + 1})


def test_more_workers_than_episodes_of_the_rank_is_a_mistake() -> None:
    config = replace(CONFIG, world_size=2, num_workers=3)
    with pytest.raises(ValueError, match="3 workers, 2 episodes on rank 1"):
        plan_share(make_episodes([5] * 4), config, rank=1, worker=0)


def test_an_episode_above_the_budget_fails_before_anything_is_planned() -> None:
    with pytest.raises(PlanError, match="episode 10 takes 30 bytes; the byte budget is 20"):
        make_share(make_episodes([5, 30, 5]), replace(CONFIG, byte_budget=20))


def test_each_worker_has_its_part_of_the_budget() -> None:
    config = replace(CONFIG, byte_budget=50, num_workers=2, pool_size=9)
    share = plan_share(make_episodes([5] * 16), config, rank=0, worker=1)
    assert share.pool() == 4
