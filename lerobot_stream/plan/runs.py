"""The runs of an order in the order in which they are decoded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.plan.order import Order
from lerobot_stream.plan.unit import Unit


def plan_runs(order: Order, *, start: int, position_base: int) -> Iterator[Unit]:
    """List the runs of an order that are still to be decoded, one at a time.

    Args:
        order: The order of one epoch, by a strategy that fixes its runs.
        start: First item of ``order`` to deliver; items before it are left out, and with
            them runs that have no other.
        position_base: Position in the stream of item 0 of ``order``.

    Yields:
        Runs in the order of decoding. Before the run at place ``i`` of the epoch is decoded,
        all items at positions before ``i - order.spread`` have been.
    """
    decode, borders = order.decode, order.run_start
    if decode is None or borders is None:
        raise ValueError("the order has no runs of its own")
    alive = _with_items_from(decode, borders, start)
    last = np.full(order.num_visits, -1)
    visits = order.visit[decode[borders[alive]]] if len(alive) else np.zeros(0, dtype=np.int32)
    last[visits] = alive
    for run, visit in zip(alive.tolist(), visits.tolist(), strict=True):
        positions = decode[borders[run] : borders[run + 1]]
        positions = positions[positions >= start]
        yield Unit(
            visit=visit,
            positions=positions.astype(np.int64) + position_base,
            frames=order.frame[positions],
            last=bool(last[visit] == run),
        )


def _with_items_from(
    decode: NDArray[np.int32], borders: NDArray[np.int32], start: int
) -> NDArray[np.int64]:
    """Runs that have an item at ``start`` or behind it."""
    if not len(decode):
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(np.maximum.reduceat(decode, borders[:-1]) >= start)
