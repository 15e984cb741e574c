from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.plan.offset import finite_worker_offsets, locate, worker_offset


@given(st.integers(1, 50), st.integers(0, 500))
def test_an_offset_is_found_by_walking(num_items: int, offset: int) -> None:
    walked = [(epoch, item) for epoch in range(offset + 1) for item in range(num_items)]
    assert locate(num_items, offset) == walked[offset]


@pytest.mark.parametrize(("num_items", "offset"), [(0, 0), (5, -1)])
def test_no_place_before_the_start_or_in_nothing(num_items: int, offset: int) -> None:
    with pytest.raises(ValueError, match=f"no item {offset} in epochs of {num_items}"):
        locate(num_items, offset)


@given(st.integers(0, 60), st.integers(1, 5), st.integers(1, 7))
def test_endless_workers_are_asked_in_turn(batches: int, num_workers: int, batch_size: int) -> None:
    delivered = [0] * num_workers
    for batch in range(batches):
        delivered[batch % num_workers] += batch_size
    found = [
        worker_offset(batches, num_workers=num_workers, worker=worker, batch_size=batch_size)
        for worker in range(num_workers)
    ]
    assert found == delivered


def test_a_worker_that_is_not_there_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="worker 2 is not one of 2"):
        worker_offset(1, num_workers=2, worker=2, batch_size=1)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=5), st.integers(1, 7), st.integers(0, 90))
def test_finite_workers_are_asked_in_turn_until_they_are_done(
    num_items: list[int], batch_size: int, batches: int
) -> None:
    left = list(num_items)
    taken = 0
    while taken < batches and any(left):
        for worker, items in enumerate(left):
            if items and taken < batches:
                left[worker] -= min(items, batch_size)
                taken += 1
    wanted = [total - rest for total, rest in zip(num_items, left, strict=True)]
    found = finite_worker_offsets(batches, num_items=num_items, batch_size=batch_size)
    assert found == wanted
