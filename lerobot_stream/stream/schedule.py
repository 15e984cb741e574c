"""The planned order of one worker as visits to fetch and tasks to decode, epoch after epoch."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.plan.blocks import look_ahead, plan_blocks
from lerobot_stream.plan.epoch import plan_epoch
from lerobot_stream.plan.layers import Layers
from lerobot_stream.plan.order import Order
from lerobot_stream.plan.runs import plan_runs
from lerobot_stream.plan.share import Share
from lerobot_stream.plan.unit import Unit
from lerobot_stream.stream.pipeline import Task
from lerobot_stream.stream.visit import Visit

logger = logging.getLogger(__name__)


class Schedule:
    """What a worker does from an item of an epoch on. Its two iterators may run side by side."""

    def __init__(
        self,
        layers: Layers,
        numbers: NDArray[np.int64],
        *,
        epoch: int,
        item: int,
        num_epochs: int | None,
        batch_size: int,
        visit_bytes: Callable[[int, int, int], int],
    ) -> None:
        """Plan nothing yet.

        Args:
            layers: What the worker delivers.
            numbers: ``(e,)`` Row of the episode table of each selected episode.
            epoch: First epoch.
            item: First item of that epoch.
            num_epochs: Epochs to run; None for endless.
            batch_size: Items a batch.
            visit_bytes: Exact bytes of (row, first frame, stop frame).
        """
        self._layers = layers
        self._numbers = numbers
        self._epoch = epoch
        self._item = item
        self._num_epochs = num_epochs
        self._batch_size = batch_size
        self._visit_bytes = visit_bytes
        self._orders: dict[int, Order] = {}
        self._lock = threading.Lock()
        self._visits: dict[tuple[int, int], Visit] = {}
        self._visits_lock = threading.Lock()
        self._config = layers.whole.config
        self._block_items = look_ahead(layers.whole, batch_size=batch_size)
        _warn_of_large_batches(layers.whole, batch_size)

    @property
    def num_items(self) -> int | None:
        """Items of all epochs; None if they never end."""
        if self._num_epochs is None:
            return None
        epochs = itertools.islice(self._layers.epochs(self._epoch), self._num_epochs)
        return sum(self._layers.share(epoch).num_items for epoch in epochs) - self._item

    @property
    def block_batches(self) -> int:
        """Batches that are decoded together, so that stopping between them gains nothing."""
        if self._config.strategy == "clip":
            return 1
        return 2 * self._block_items // self._batch_size

    @property
    def open_items(self) -> int:
        """Items ahead of the next one delivered that may be in the making."""
        if self._config.strategy != "clip":
            return 2 * self._block_items
        begun = [epoch for epoch in self._layers.unfinished if epoch > self._epoch]
        epochs = {self._epoch, *begun, max(self._epoch, self._layers.next_epoch)}
        spread = max(self._order(epoch).spread for epoch in epochs)
        # The spread is three quarters of the rows there is memory for, and the batches at both
        # ends are whole. Half of what is left lets decoding go on while a batch lacks one run.
        spare = max(0, min(spread // 6, spread // 3 - 2 * self._batch_size))
        return spread + spare + self._batch_size

    def visits(self) -> Iterator[Visit]:
        """Visits in the order in which :meth:`tasks` first needs them."""
        for epoch, order, item in self._epochs():
            for number in _visits_left(order, item).tolist():
                yield self._visit(epoch, order, number)

    def tasks(self) -> Iterator[Task]:
        """Tasks in the order in which they are decoded."""
        base = -self._item
        for epoch, order, item in self._epochs():
            with self._lock:  # fetching is never behind decoding
                for past in [past for past in self._orders if past < epoch]:
                    del self._orders[past]
            begun: dict[int, Visit] = {}
            for unit in self._units(epoch, order, item, base):
                visit = begun.pop(unit.visit, None) or self._visit(epoch, order, unit.visit)
                if not unit.last:
                    begun[unit.visit] = visit
                yield Task(visit, unit.positions, unit.frames.astype(np.int64), unit.last)
            base += len(order)

    def _units(self, epoch: int, order: Order, item: int, base: int) -> Iterator[Unit]:
        if order.decode is not None:
            yield from plan_runs(order, start=item, position_base=base)
            return
        sizes = self._layers.share(epoch).episodes.sizes[order.visit_episode]
        for block in plan_blocks(
            order,
            sizes,
            start=item,
            block_items=self._block_items,
            batch_size=self._batch_size,
            byte_budget=self._config.worker_byte_budget,
            position_base=base,
            first_items=self._batch_size if base == -self._item else None,
        ):
            yield from block.units

    def _epochs(self) -> Iterator[tuple[int, Order, int]]:
        item = self._item
        for epoch in itertools.islice(self._layers.epochs(self._epoch), self._num_epochs):
            yield epoch, self._order(epoch), item
            item = 0

    def _order(self, epoch: int) -> Order:
        with self._lock:
            if epoch not in self._orders:
                self._orders[epoch] = plan_epoch(self._layers.share(epoch), epoch=epoch)
            return self._orders[epoch]

    def _visit(self, epoch: int, order: Order, number: int) -> Visit:
        """Make a visit for whichever iterator comes to it first; the other one takes it over."""
        with self._visits_lock:
            visit = self._visits.pop((epoch, number), None)
            if visit is None:
                visit = self._visits[epoch, number] = self._new_visit(epoch, order, number)
        return visit

    def _new_visit(self, epoch: int, order: Order, number: int) -> Visit:
        share = self._layers.share(epoch)
        position = int(order.visit_episode[number])
        length = int(share.episodes.lengths[position])
        start = max(0, int(order.visit_start[number]) + self._config.first_offset)
        stop = min(length, int(order.visit_stop[number]) + self._config.last_offset)
        row = int(self._numbers[share.positions[position]])
        return Visit((epoch, number), row, start, stop, self._visit_bytes(row, start, stop))


def _warn_of_large_batches(share: Share, batch_size: int) -> None:
    """Two batches are held however small the budget is: one filled, one being filled."""
    config = share.config
    held = 2 * batch_size * config.item_bytes * config.num_workers
    if held > config.decoded_bytes and share.worker == 0:
        logger.warning(
            "two batches of %d take %.3g GB decoded%s, more than the %.3g GB of the decoded pool; "
            "they are held all the same",
            batch_size,
            held / 1e9,
            f" in {config.num_workers} workers" if config.num_workers > 1 else "",
            config.decoded_bytes / 1e9,
        )


def _visits_left(order: Order, item: int) -> NDArray[np.int64]:
    """Visits with an item at or behind ``item``, by the first one decoded."""
    if order.decode is None:
        visits = order.visit[item:]
    else:
        visits = order.visit[order.decode[order.decode >= item]]
    found, first = np.unique(visits, return_index=True)
    return found[np.argsort(first)].astype(np.int64)
