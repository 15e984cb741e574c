from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.inspect.row_scan import plan_groups

sizes = st.lists(st.integers(1, 1000), max_size=60)


@given(sizes, st.integers(1, 20_000))
def test_chosen_row_groups_fit_or_there_is_one(size: list[int], most: int) -> None:
    chosen = plan_groups(np.array(size, np.int64), most)
    assert len(chosen) == len(set(chosen.tolist()))
    assert np.array(size, np.int64)[chosen].sum() <= most or len(chosen) == 1
    assert bool(len(chosen)) == bool(size)
    if sum(size) <= most:
        assert chosen.tolist() == list(range(len(size)))


def test_without_a_bound_all_are_chosen() -> None:
    assert plan_groups(np.array([10**12] * 3), None).tolist() == [0, 1, 2]


def test_a_part_is_spread_over_the_whole() -> None:
    assert plan_groups(np.full(100, 10), 100).tolist() == list(range(0, 100, 10))
