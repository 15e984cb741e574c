from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.errors import PlanError
from lerobot_stream.plan.shard import deal, plan_rank, plan_shards
from tests.plan.shares import lengths


@given(lengths(), st.integers(1, 15))
def test_each_episode_is_in_one_shard(lengths: list[int], num_shards: int) -> None:
    shards = plan_shards(np.array(lengths), num_shards)
    assert len(shards) == num_shards
    assert sorted(np.concatenate(shards).tolist()) == list(range(len(lengths)))
    assert all(np.all(np.diff(shard) > 0) for shard in shards)


@given(lengths(), st.integers(1, 15))
def test_shards_differ_by_at_most_the_longest_episode(lengths: list[int], num_shards: int) -> None:
    loads = [sum(lengths[e] for e in shard) for shard in plan_shards(np.array(lengths), num_shards)]
    assert max(loads) - min(loads) <= max(lengths)


@given(lengths(), st.integers(1, 15))
def test_the_longest_goes_to_the_lightest_shard_and_ties_to_the_lowest(
    lengths: list[int], num_shards: int
) -> None:
    loads = [0] * num_shards
    wanted: list[list[int]] = [[] for _ in loads]
    for episode in sorted(range(len(lengths)), key=lambda e: (-lengths[e], e)):
        shard = loads.index(min(loads))
        loads[shard] += lengths[episode]
        wanted[shard].append(episode)
    shards = plan_shards(np.array(lengths), num_shards)
    assert [shard.tolist() for shard in shards] == [sorted(shard) for shard in wanted]


def test_loads_of_zero_go_to_the_lowest_shard() -> None:
    assert deal([0, 0, 3, 0], 2) == [0, 0, 0, 1]


def test_a_rank_without_an_episode_is_refused() -> None:
    with pytest.raises(PlanError, match="8 ranks, 3 episodes"):
        plan_rank(np.array([5, 5, 5]), rank=0, world_size=8)


@pytest.mark.parametrize("rank", [-1, 2])
def test_a_rank_outside_the_world_is_a_mistake(rank: int) -> None:
    with pytest.raises(ValueError, match=f"rank {rank} is not one of 2"):
        plan_rank(np.array([5, 5, 5]), rank=rank, world_size=2)


def test_no_shard_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        plan_shards(np.array([5]), 0)
