from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.errors import PlanError
from lerobot_stream.plan.budget import checked_pool, largest_pool, worker_pool_size

SIZES = st.lists(st.integers(0, 50), min_size=1, max_size=12)


@given(SIZES, st.integers(1, 15), st.integers(0, 400))
def test_the_pool_is_the_largest_that_fits_with_a_successor(
    sizes: list[int], pool_size: int, byte_budget: int
) -> None:
    pool = largest_pool(np.array(sizes), pool_size=pool_size, byte_budget=byte_budget)
    falling = sorted(sizes, reverse=True)
    most = min(pool_size, len(sizes))
    assert 0 <= pool <= most
    if pool:
        assert sum(falling[: pool + 1]) <= byte_budget
    if pool < most:
        assert sum(falling[: pool + 2]) > byte_budget


def test_a_pool_of_all_episodes_needs_no_room_for_a_successor() -> None:
    assert largest_pool(np.array([5, 5]), pool_size=8, byte_budget=10) == 2


def test_a_single_episode_may_fill_the_budget() -> None:
    assert largest_pool(np.array([10]), pool_size=8, byte_budget=10) == 1


def test_an_episode_above_the_budget_is_named_with_both_sizes() -> None:
    with pytest.raises(PlanError, match=r"episode 30 takes 2,000 bytes; .* budget is 1,500") as e:
        checked_pool(np.array([10, 30]), np.array([9, 2000]), pool_size=4, byte_budget=1500)
    assert e.value.hint == "allow at least 2.01e-06 GB, or leave the episode out"


@given(
    st.lists(st.integers(1, 10**13), min_size=1, max_size=5),
    st.integers(0, 10**13),
    st.integers(1, 4),
)
def test_as_much_as_the_hint_says_is_enough(
    sizes: list[int], byte_budget: int, num_workers: int
) -> None:
    def pool(budget: int) -> int:
        return checked_pool(
            np.arange(len(sizes)),
            np.array(sizes),
            pool_size=4,
            byte_budget=budget // num_workers,
            num_workers=num_workers,
        )

    try:
        pool(byte_budget)
    except PlanError as error:
        gigabytes = float(str(error.hint).split()[3])
        assert pool(int(gigabytes * 10**9)) >= 1


def test_an_episode_without_room_for_a_successor_is_named_with_it() -> None:
    with pytest.raises(PlanError, match=r"episode 30 takes 8 bytes and its successor, episode 10"):
        checked_pool(np.array([10, 20, 30]), np.array([7, 1, 8]), pool_size=4, byte_budget=14)


@pytest.mark.parametrize(
    ("pool_size", "num_workers", "pool"),
    [(None, 1, 32), (None, 3, 10), (None, 64, 1), (5, 3, 5)],
)
def test_an_unset_pool_is_divided_among_workers(
    pool_size: int | None, num_workers: int, pool: int
) -> None:
    assert worker_pool_size(pool_size, num_workers) == pool


def test_a_pool_of_nothing_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        worker_pool_size(0, 1)
