from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.plan.blocks import Block, look_ahead, plan_blocks
from lerobot_stream.plan.epoch import plan_epoch
from lerobot_stream.plan.order import Order, last_positions
from tests.plan.shares import CONFIG, make_episodes, make_share, shares


@dataclass(frozen=True)
class Cut:
    """An order and how it is to be cut."""

    order: Order
    sizes: list[int]
    start: int
    block_items: int
    batch_size: int
    byte_budget: int
    position_base: int
    first_items: int | None = None

    def blocks(self) -> list[Block]:
        return list(
            plan_blocks(
                self.order,
                np.array(self.sizes),
                start=self.start,
                block_items=self.block_items,
                batch_size=self.batch_size,
                byte_budget=self.byte_budget,
                position_base=self.position_base,
                first_items=self.first_items,
            )
        )


@st.composite
def cuts(draw: st.DrawFn, *, tight: bool = True) -> Cut:
    """Cuts from anywhere in the stream, with budgets that bind and some that do not."""
    order = plan_epoch(draw(shares(["remaining", "round_robin"])), epoch=0)
    batch_size = draw(st.integers(1, 9))
    sizes = [draw(st.integers(0, 20)) for _ in range(order.num_visits)]
    start = draw(st.integers(0, len(order)))
    return Cut(
        order=order,
        sizes=sizes,
        start=start,
        block_items=batch_size * draw(st.integers(1, 8)),
        batch_size=batch_size,
        byte_budget=draw(st.integers(0, 60)) if tight else sum(sizes),
        position_base=draw(st.sampled_from([0, 100, -start])),
    )


@given(cuts())
def test_joined_blocks_are_the_rest_of_the_order(cut: Cut) -> None:
    order, base = cut.order, cut.position_base
    at = base + cut.start
    for block in cut.blocks():
        assert block.start == at
        at = block.stop
        positions = np.concatenate([unit.positions for unit in block.units])
        assert sorted(positions.tolist()) == list(range(block.start, block.stop))
        for unit in block.units:
            assert np.all(order.visit[unit.positions - base] == unit.visit)
            assert order.frame[unit.positions - base].tolist() == unit.frames.tolist()
    assert at == base + len(order)


@given(cuts())
def test_units_are_one_a_visit_by_first_need_with_rising_frames(cut: Cut) -> None:
    for block in cut.blocks():
        first = [int(unit.positions.min()) for unit in block.units]
        assert first == sorted(first)
        assert len({unit.visit for unit in block.units}) == len(block.units)
        assert all(np.all(np.diff(unit.frames) > 0) for unit in block.units)


@given(cuts())
def test_the_last_unit_of_each_visit_is_marked(cut: Cut) -> None:
    units = [unit for block in cut.blocks() for unit in block.units]
    last = {unit.visit: number for number, unit in enumerate(units)}
    assert [unit.last for unit in units] == [last[u.visit] == i for i, u in enumerate(units)]


@given(cuts(tight=False))
def test_blocks_are_whole_batches_but_at_the_ends(cut: Cut) -> None:
    blocks = cut.blocks()
    for block in blocks:
        assert block.stop - block.start <= cut.block_items
    for block in blocks[:-1]:
        assert block.stop % cut.batch_size == 0
        assert block.stop - block.start > cut.block_items - cut.batch_size


@given(cuts(tight=False))
def test_a_stream_begins_with_a_batch_and_grows(cut: Cut) -> None:
    begun = replace(cut, first_items=cut.batch_size)
    most = [
        min(cut.block_items, cut.batch_size * 4 ** min(number, 9))
        for number in range(len(begun.blocks()))
    ]
    for block, items in zip(begun.blocks(), most, strict=True):
        assert block.stop - block.start <= items
    for block, items in zip(begun.blocks()[:-1], most, strict=False):
        assert block.stop - block.start > items - cut.batch_size
    assert [block.start for block in begun.blocks()[1:]] == [
        block.stop for block in begun.blocks()[:-1]
    ]
    delivered = sum(block.stop - block.start for block in begun.blocks())
    assert delivered == len(cut.order) - cut.start


def held(cut: Cut, start: int, stop: int) -> int:
    """Bytes of the visits that the items at [start, stop) find or bring in."""
    visits = np.arange(cut.order.num_visits)
    found = np.isin(visits, cut.order.visit[:start]) & (last_positions(cut.order) >= start)
    needed = found | np.isin(visits, cut.order.visit[start:stop])
    return int(np.array(cut.sizes)[needed].sum())


@given(cuts())
def test_blocks_fit_the_budget_or_bring_in_one_visit(cut: Cut) -> None:
    for block in cut.blocks():
        start, stop = block.start - cut.position_base, block.stop - cut.position_base
        if held(cut, start, stop) > cut.byte_budget:
            brought = set(cut.order.visit[start:stop].tolist())
            assert len(brought - set(cut.order.visit[:start].tolist())) <= 1


@given(cuts())
def test_a_block_is_cut_short_only_by_the_budget(cut: Cut) -> None:
    for block in cut.blocks()[:-1]:
        start, stop = block.start - cut.position_base, block.stop - cut.position_base
        short = block.stop % cut.batch_size or stop - start <= cut.block_items - cut.batch_size
        assert not short or held(cut, start, stop + 1) > cut.byte_budget


@given(st.integers(1, 200))
def test_the_residents_of_a_plan_always_fit_its_budget(block_items: int) -> None:
    episodes = make_episodes([9, 30, 4, 17, 25, 8, 12], sizes=[9, 3, 7, 7, 2, 5, 8])
    plan = make_share(episodes)
    order = plan_epoch(plan, epoch=0)
    sizes = episodes.sizes[order.visit_episode]
    budget = int(np.sort(sizes)[::-1][: plan.pool() + 1].sum())
    cut = Cut(order, sizes.tolist(), 0, block_items, 1, budget, 0)
    assert all(held(cut, block.start, block.stop) <= budget for block in cut.blocks())


@pytest.mark.parametrize(
    ("decoded_bytes", "items"), [(0, 8), (100, 8), (479, 16), (480, 24), (1000, 48), (10**9, 104)]
)
def test_two_blocks_of_whole_batches_fit_the_decoded_budget(decoded_bytes: int, items: int) -> None:
    config = replace(CONFIG, decoded_bytes=decoded_bytes, item_bytes=10)
    share = make_share(make_episodes([60, 40]), config)
    assert look_ahead(share, batch_size=8) == items
