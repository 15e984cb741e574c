"""Whole episodes dealt to shards so that all get about equally many frames."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.errors import PlanError


def plan_shards(lengths: NDArray[np.int64], num_shards: int) -> list[NDArray[np.int64]]:
    """Give each episode to the lightest shard, longest episodes first.

    Equal lengths go in rising position, equal loads to the lowest shard, so that
    every rank finds the same answer alone.

    Args:
        lengths: ``(e,)`` Frames of each episode.
        num_shards: Shards to fill; with fewer episodes than shards some stay empty.

    Returns:
        Positions in ``lengths`` of each shard's episodes, rising.
    """
    if num_shards < 1:
        raise ValueError(f"num_shards must be at least 1, got {num_shards}")
    lengths = np.asarray(lengths, dtype=np.int64)
    longest_first = np.argsort(-lengths, kind="stable")
    shard_of = np.empty(len(lengths), dtype=np.int64)
    shard_of[longest_first] = deal(lengths[longest_first].tolist(), num_shards)
    by_shard = np.argsort(shard_of, kind="stable")
    stops = np.cumsum(np.bincount(shard_of, minlength=num_shards))
    return np.split(by_shard, stops[:-1])


def deal(loads: list[int], num_shards: int) -> list[int]:
    """Give each load in turn to the lightest shard, ties to the lowest.

    Args:
        loads: Loads in the order in which they are dealt.
        num_shards: Shards to fill.

    Returns:
        Shard of each load.
    """
    heap = list(range(num_shards))  # each is total * num_shards + shard
    dealt = []
    for load in loads:
        shard = heap[0] % num_shards
        dealt.append(shard)
        heapq.heapreplace(heap, heap[0] + load * num_shards)
    return dealt


def plan_rank(lengths: NDArray[np.int64], *, rank: int, world_size: int) -> NDArray[np.int64]:
    """Positions of the episodes of one rank.

    Args:
        lengths: ``(e,)`` Frames of each selected episode.
        rank: The rank asked for.
        world_size: Ranks in the job.

    Returns:
        Rising positions in ``lengths``.

    Raises:
        PlanError: There are more ranks than episodes.
    """
    if not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} is not one of {world_size}")
    if world_size > len(lengths):
        raise PlanError(
            f"{world_size} ranks, {len(lengths)} episodes",
            hint="start at most as many ranks as there are selected episodes",
        )
    return plan_shards(lengths, world_size)[rank]
