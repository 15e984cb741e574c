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
    episodes: NDArray[np.int64], sizes: NDArray[np.int64], *, pool_size: int, byte_budget: int
) -> int:
    """:func:`largest_pool`, or an error that names the episode which does not fit.

    Args:
        episodes: ``(e,)`` ``episode_index`` of each episode of the worker.
        sizes: ``(e,)`` Bytes of each.
        pool_size: Most episodes wanted.
        byte_budget: Bytes the worker may hold.

    Returns:
        Episodes in the pool, at least 1.

    Raises:
        PlanError: The largest episode, or it and the next, exceed the budget.
    """
    pool = largest_pool(sizes, pool_size=pool_size, byte_budget=byte_budget)
    if pool:
        return pool
    first, *others = np.argsort(-np.asarray(sizes, dtype=np.int64), kind="stable")[:2].tolist()
    needed = int(sizes[first])
    message = f"episode {int(episodes[first])} takes {needed:,} bytes"
    if needed <= byte_budget:
        second = others[0]
        needed += int(sizes[second])
        message += f" and its successor, episode {int(episodes[second])}, {int(sizes[second]):,}"
    raise PlanError(
        f"{message}; the byte budget is {byte_budget:,}",
        hint=f"allow at least {needed / 1e9:.3g} GB, or leave the episode out",
    )
