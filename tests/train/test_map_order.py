from __future__ import annotations

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.train.map_order import Number, endless_batches, one_epoch

SIZES = st.integers(1, 23), st.integers(1, 4), st.integers(1, 5)


def take(
    rank: int, count: int, *, items: int, world: int, size: int, start: int = 0
) -> list[Number]:
    batches = endless_batches(
        items, seed=3, rank=rank, world_size=world, batch_size=size, start=start
    )
    taken = list(islice(batches, count))
    assert all(len(batch) == size for batch in taken)
    return [number for batch in taken for number in batch]


@given(*SIZES)
def test_all_ranks_together_see_each_item_once_an_epoch(items: int, world: int, size: int) -> None:
    batches = -(-3 * items // (world * size))
    ranks = [take(r, batches, items=items, world=world, size=size) for r in range(world)]
    dealt = [number for turn in zip(*ranks, strict=True) for number in turn][: 3 * items]
    for epoch in range(3):
        part = dealt[epoch * items : (epoch + 1) * items]
        assert sorted(part) == [(epoch, item) for item in range(items)]


@given(*SIZES, st.integers(0, 12))
def test_a_later_start_continues_the_same_order(
    items: int, world: int, size: int, batches: int
) -> None:
    whole = take(0, batches + 3, items=items, world=world, size=size)
    start = batches * size * world
    assert take(0, 3, items=items, world=world, size=size, start=start) == whole[batches * size :]


@given(*SIZES)
def test_one_epoch_has_each_item_once(items: int, world: int, size: int) -> None:
    seen = [
        number
        for rank in range(world)
        for batch in one_epoch(items, seed=3, rank=rank, world_size=world, batch_size=size)
        for number in batch
    ]
    assert sorted(seen) == [(0, item) for item in range(items)]


def test_epochs_and_seeds_differ() -> None:
    first = take(0, 40, items=20, world=1, size=1)
    assert [item for _, item in first[:20]] != [item for _, item in first[20:]]
    other = endless_batches(20, seed=4, rank=0, world_size=1, batch_size=1, start=0)
    assert [batch[0] for batch in islice(other, 20)] != first[:20]
