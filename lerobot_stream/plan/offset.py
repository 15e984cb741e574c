"""Where in its order a worker stands after a number of batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def locate(num_items: int, offset: int) -> tuple[int, int]:
    """Epoch and item at an offset into endlessly repeated epochs.

    Args:
        num_items: Items of each epoch.
        offset: Items delivered before.

    Returns:
        The epoch, and the position in it of the next item to deliver.
    """
    if num_items < 1 or offset < 0:
        raise ValueError(f"no item {offset} in epochs of {num_items}")
    return divmod(offset, num_items)


def worker_offset(batches: int, *, num_workers: int, worker: int, batch_size: int) -> int:
    """Items that one worker has delivered when its rank has taken a number of batches.

    The loader takes whole batches from its workers in turn, beginning with worker 0, and
    every worker's stream is endless.

    Args:
        batches: Batches taken by the rank.
        num_workers: Workers of the rank; 1 where all is in one process.
        worker: Number of the worker.
        batch_size: Items of each batch.
    """
    if not 0 <= worker < num_workers:
        raise ValueError(f"worker {worker} is not one of {num_workers}")
    return (batches - worker + num_workers - 1) // num_workers * batch_size


def finite_worker_offsets(batches: int, *, num_items: Sequence[int], batch_size: int) -> list[int]:
    """Items that each worker has delivered when none of them repeats its epoch.

    A worker's last batch may be short; workers that are done are passed over.

    Args:
        batches: Batches taken by the rank; more than there are count as all.
        num_items: Items of each worker.
        batch_size: Items of each batch but a worker's last.
    """
    items = np.asarray(num_items, dtype=np.int64)
    total = -(-items // batch_size)
    taken = np.minimum(total, _full_rounds(total, batches))
    for worker in np.flatnonzero(total > taken)[: max(0, batches - int(taken.sum()))]:
        taken[worker] += 1
    offsets: list[int] = np.minimum(items, taken * batch_size).tolist()
    return offsets


def _full_rounds(total: np.ndarray[tuple[int], np.dtype[np.int64]], batches: int) -> int:
    """Most rounds that take no more than ``batches`` from workers with ``total`` each."""
    low, high = 0, int(total.max(initial=0))
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.minimum(total, middle).sum()) <= batches:
            low = middle
        else:
            high = middle - 1
    return low
