"""The order in which a map-style dataset is read: every frame once an epoch over all ranks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Number = tuple[int, int]
"""Epoch and item number."""


def epoch_order(num_items: int, *, seed: int, epoch: int) -> NDArray[np.int64]:
    """``(num_items,)`` All item numbers, shuffled."""
    return np.argsort(np.random.default_rng([seed, epoch]).random(num_items), kind="stable")


def endless_batches(
    num_items: int, *, seed: int, rank: int, world_size: int, batch_size: int, start: int
) -> Iterator[list[Number]]:
    """Deal the endless order out to the ranks, one item each in turn.

    Args:
        num_items: Items of the dataset.
        seed: Decides the order.
        rank: This process.
        world_size: Processes that share the order.
        batch_size: Items a batch; batches are full and may straddle an epoch's end.
        start: Items to leave out, over all ranks.

    Yields:
        The items of each batch, with the epoch they belong to.
    """
    epoch, order = -1, np.zeros(0, dtype=np.int64)
    place = start + rank
    while True:
        batch: list[Number] = []
        for _ in range(batch_size):
            wanted, within = divmod(place, num_items)
            if wanted != epoch:
                epoch, order = wanted, epoch_order(num_items, seed=seed, epoch=wanted)
            batch.append((epoch, int(order[within])))
            place += world_size
        yield batch


def one_epoch(
    num_items: int, *, seed: int, rank: int, world_size: int, batch_size: int
) -> Iterator[list[Number]]:
    """Deal epoch 0 out to the ranks; the last batch may be short."""
    mine = epoch_order(num_items, seed=seed, epoch=0)[rank::world_size].tolist()
    for first in range(0, len(mine), batch_size):
        yield [(0, number) for number in mine[first : first + batch_size]]
