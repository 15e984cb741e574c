"""Strategy ``round_robin``: each round takes one frame of every resident, in random order."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.plan.order import Order, order_by_keys
from lerobot_stream.plan.random import shuffled
from lerobot_stream.plan.share import Share

_ROUND_BITS = 32


@dataclass(frozen=True, slots=True, eq=False)
class Rounds:
    """In which round each episode begins and each of its frames is delivered."""

    episode: NDArray[np.int64]
    """``(e,)`` Episodes in order of admission."""
    first_round: NDArray[np.int64]
    """``(e,)`` Round in which each takes part for the first time."""
    key: NDArray[np.int64]
    """``(n,)`` ``round << 32`` plus a random place in it, episode after episode."""


def round_robin_keys(counts: NDArray[np.int64], *, pool: int, rng: np.random.Generator) -> Rounds:
    """Give the frames of each shuffled episode one round after another.

    Args:
        counts: ``(e,)`` Frames of each episode, at least one each.
        pool: Residents of a round; newcomers join the round after their predecessor's last.
        rng: Where all randomness comes from.
    """
    episode = shuffled(len(counts), rng)
    counts = counts[episode]
    first_round = np.array(_first_rounds(counts.tolist(), pool), dtype=np.int64)
    key = np.empty(int(counts.sum()), dtype=np.int64)
    stops = np.cumsum(counts)
    for round_, start, stop in zip(first_round, stops - counts, stops, strict=True):
        key[start:stop] = shuffled(stop - start, rng) + round_
    key <<= _ROUND_BITS
    key |= (rng.random(len(key)) * (1 << _ROUND_BITS)).astype(np.int64)
    return Rounds(episode, first_round, key)


def _first_rounds(counts: list[int], pool: int) -> list[int]:
    """First round of each episode; a heap of the rounds in which room is made."""
    rooms = [0] * min(pool, len(counts))
    rounds = []
    for count in counts:
        room = rooms[0]
        rounds.append(room)
        heapq.heapreplace(rooms, room + count)
    return rounds


def plan_round_robin(share: Share, rng: np.random.Generator) -> Order:
    """Order of one epoch of a share.

    Args:
        share: The worker's share.
        rng: Where all randomness comes from.
    """
    rounds = round_robin_keys(share.counts, pool=share.pool(), rng=rng)
    return order_by_keys(share, rounds.episode, rounds.key)
