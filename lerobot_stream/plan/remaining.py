"""Strategy ``remaining``: draw a resident by its frames left, then any frame of it."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.plan.order import Order, order_by_keys
from lerobot_stream.plan.random import exponential, shuffled
from lerobot_stream.plan.share import Share


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """When each episode is admitted and each of its frames delivered."""

    episode: NDArray[np.int64]
    """``(e,)`` Episodes in order of admission."""
    admission: NDArray[np.float64]
    """``(e,)`` Key at which each is admitted."""
    drain: NDArray[np.float64]
    """``(e,)`` Key of its last frame."""
    key: NDArray[np.float64]
    """``(n,)`` Key of each frame, episode after episode."""


def remaining_keys(counts: NDArray[np.int64], *, pool: int, rng: np.random.Generator) -> Keys:
    """Give each frame the admission of its episode plus an ``Exp(1)`` draw.

    Waiting times without memory make the next frame fall on each resident in proportion
    to its frames left.

    Args:
        counts: ``(e,)`` Frames of each episode, at least one each.
        pool: Residents at any time; each one that drains makes room for the next.
        rng: Where all randomness comes from.
    """
    episode = shuffled(len(counts), rng)
    counts = counts[episode]
    starts = np.cumsum(counts) - counts
    key = exponential(int(counts.sum()), rng)
    needs = np.maximum.reduceat(key, starts)
    admission = np.zeros(len(counts))
    admission[pool:] = _admissions(needs.tolist(), pool)
    key += np.repeat(admission, counts)
    return Keys(episode, admission, np.maximum.reduceat(key, starts), key)


def _admissions(needs: list[float], pool: int) -> list[float]:
    """When each episode behind the first ``pool`` finds room, as others drain."""
    drains = needs[:pool]
    heapq.heapify(drains)
    admissions = []
    for need in needs[pool:]:
        room = drains[0]
        admissions.append(room)
        heapq.heapreplace(drains, need + room)
    return admissions


def plan_remaining(share: Share, rng: np.random.Generator) -> Order:
    """Order of one epoch of a share.

    Args:
        share: The worker's share.
        rng: Where all randomness comes from.
    """
    keys = remaining_keys(share.counts, pool=share.pool(), rng=rng)
    return order_by_keys(share, keys.episode, keys.key)
