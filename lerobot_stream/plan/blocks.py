"""Stretches of an order that are decoded ahead, frames of one visit together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.plan.order import Order, last_positions
from lerobot_stream.plan.share import Share
from lerobot_stream.plan.unit import Unit

_GROWTH = 4
"""How much larger than the one before a block may be at the start of a stream."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The items at ``[start, stop)`` of the stream."""

    start: int
    """Position of the first item."""
    stop: int
    """One past the position of the last item."""
    units: tuple[Unit, ...]
    """One a visit, by the first item that needs it."""


def look_ahead(share: Share, *, batch_size: int) -> int:
    """Items of a block: whole batches, two blocks of which fit the decoded budget.

    Args:
        share: What a worker delivers; a block longer than its epoch would find no more to share.
        batch_size: Items of a batch; a block has at least one batch.
    """
    config = share.config
    fitting = max(1, config.worker_decoded_bytes // (2 * config.item_bytes * batch_size))
    return min(fitting, -(-share.num_items // batch_size)) * batch_size


def plan_blocks(
    order: Order,
    visit_bytes: NDArray[np.int64],
    *,
    start: int,
    block_items: int,
    batch_size: int,
    byte_budget: int,
    position_base: int,
    first_items: int | None = None,
) -> Iterator[Block]:
    """Cut an order into blocks, one at a time, without changing it.

    A block ends with a batch, with the order, or before the first item whose visit does
    not fit the byte budget beside the visits that the block already needs.

    Args:
        order: The order of one epoch.
        visit_bytes: ``(v,)`` Bytes held for each visit.
        start: First item of ``order`` to deliver.
        block_items: Most items of a block.
        batch_size: Items of a batch.
        byte_budget: Bytes that the visits of a block may take together.
        position_base: Position in the stream of item 0 of ``order``; batches are counted
            from position 0 of the stream.
        first_items: Most items of the first block; each further one may have four times as many,
            so that a stream begins soon. None for full blocks at once.

    Yields:
        Blocks that join up to ``[position_base + start, position_base + len(order))``.
    """
    last = last_positions(order)
    num_seen = int(order.visit[:start].max(initial=-1)) + 1
    residents = np.flatnonzero(last[:num_seen] >= start)
    most = first_items or block_items
    while start < len(order):
        most = min(most, block_items)
        stop = _whole_batches(position_base + start, most, batch_size) - position_base
        visit = order.visit[start:stop]
        room = byte_budget - int(visit_bytes[residents].sum())
        visit = visit[: _fitting(visit, visit_bytes, num_seen, room)]
        stop = start + len(visit)
        yield Block(
            position_base + start,
            position_base + stop,
            _units(order, last, start, stop, position_base),
        )
        newcomers = np.arange(num_seen, max(num_seen, int(visit.max()) + 1))
        num_seen += len(newcomers)
        residents = np.concatenate([residents, newcomers])
        residents = residents[last[residents] >= stop]
        start = stop
        most *= _GROWTH


def _whole_batches(start: int, block_items: int, batch_size: int) -> int:
    """Where a block of at most ``block_items`` items from ``start`` ends."""
    stop = (start + block_items) // batch_size * batch_size
    return stop if stop > start else start + block_items


def _fitting(
    visit: NDArray[np.int32], visit_bytes: NDArray[np.int64], num_seen: int, room: int
) -> int:
    """Items before the first newcomer that exceeds ``room``, at least one.

    Visits are numbered by their first item, so newcomers come in rising number.
    """
    newcomers = visit_bytes[num_seen : int(visit.max()) + 1]
    too_many = np.flatnonzero(np.cumsum(newcomers) > room)
    if not len(too_many):
        return len(visit)
    return max(1, int(np.argmax(visit == num_seen + too_many[0])))


def _units(
    order: Order, last: NDArray[np.int32], start: int, stop: int, position_base: int
) -> tuple[Unit, ...]:
    """The items ``[start, stop)`` by visit, visits by first item, frames rising."""
    visit, frame = order.visit[start:stop], order.frame[start:stop]
    visits, first, inverse = np.unique(visit, return_index=True, return_inverse=True)
    by_need = np.argsort(first)
    rank = np.empty(len(visits), dtype=np.int64)
    rank[by_need] = np.arange(len(visits))
    items = np.lexsort((frame, rank[inverse]))
    cuts = np.cumsum(np.bincount(rank[inverse]))[:-1]
    return tuple(
        Unit(
            visit=int(number),
            positions=part + (position_base + start),
            frames=frame[part],
            last=bool(last[number] < stop),
        )
        for number, part in zip(visits[by_need], np.split(items, cuts), strict=True)
    )
