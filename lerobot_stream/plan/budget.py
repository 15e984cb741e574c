"""How many episodes may be held at once, decided by their exact sizes alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.errors import PlanError

DEFAULT_POOL = 32
"""Episodes mixed by one rank where nobody says otherwise."""


def worker_pool_size(pool_size: int | None, num_workers: int) -> int:
    """Episodes that one worker mixes: as asked, or its part of the rank's default."""
    if pool_size is None:
        return max(1, DEFAULT_POOL // num_workers)
    if pool_size < 1:
        raise ValueError(f"pool size must be at least 1, got {pool_size}")
    return pool_size


def largest_pool(sizes: NDArray[np.int64], *, pool_size: int, byte_budget: int) -> int:
    """Largest pool for which the pool and one successor always fit the budget.

    The successor arrives while the pool is still read. A worker that holds all of its
    episodes at once has no successor to make room for.

    Args:
        sizes: ``(e,)`` Bytes of each episode of the worker.
        pool_size: Most episodes wanted.
        byte_budget: Bytes the worker may hold.

    Returns:
        Episodes in the pool, at most ``pool_size`` and the number of episodes;
        0 where not even one episode and its successor fit.
    """
    largest_first = np.cumsum(np.sort(np.asarray(sizes, dtype=np.int64))[::-1])
    fitting = int(np.searchsorted(largest_first, byte_budget, side="right"))
    if fitting == len(sizes):
        return min(pool_size, fitting)
    return min(pool_size, max(fitting - 1, 0))


def checked_pool(
    episodes: NDArray[np.int64],
    sizes: NDArray[np.int64],
    *,
    pool_size: int,
    byte_budget: int,
    num_workers: int = 1,
) -> int:
    """:func:`largest_pool`, or an error that names the episode which does not fit.

    Args:
        episodes: ``(e,)`` ``episode_index`` of each episode of the worker.
        sizes: ``(e,)`` Bytes of each.
        pool_size: Most episodes wanted.
        byte_budget: Bytes the worker may hold.
        num_workers: Workers that have as much; the hint is about all of them.

    Returns:
        Episodes in the pool, at least 1.

    Raises:
        PlanError: The largest episode, or it and the next, exceed the budget.
    """
    pool = largest_pool(sizes, pool_size=pool_size, byte_budget=byte_budget)
    if pool:
        return pool
    largest = np.argsort(-np.asarray(sizes, dtype=np.int64), kind="stable")[:2].tolist()
    (first, size), *others = [(int(episodes[place]), int(sizes[place])) for place in largest]
    message = f"episode {first} takes {size:,} bytes"
    if size <= byte_budget:
        second, its_size = others[0]
        message += f" and its successor, episode {second}, {its_size:,}"
    budget = f"{byte_budget:,}" + (" a worker" if num_workers > 1 else "")
    needed = num_workers * sum(int(sizes[place]) for place in largest)
    raise PlanError(
        f"{message}; the byte budget is {budget}",
        hint=f"allow at least {enough_gb(needed)} GB, or leave the episode out",
    )


def enough_gb(num_bytes: int) -> str:
    """Write a number of GB that is surely not below ``num_bytes``, in three digits."""
    unit = 10 ** max(0, len(str(num_bytes)) - 3)
    return f"{(num_bytes // unit + 1) * unit / 1e9:.3g}"
