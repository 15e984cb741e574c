"""The items of one epoch in the order in which a worker delivers them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.plan.share import Share

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Order:
    """A permutation of the frames of a share; item ``j`` is frame ``frame[j]`` of a visit."""

    visit: NDArray[np.int32]
    """``(n,)`` Visit that each item belongs to; visits are numbered by their first run
    where the strategy fixes runs, else by their first item."""
    frame: NDArray[np.int32]
    """``(n,)`` Frame number of each item within its episode."""
    visit_episode: NDArray[np.int64]
    """``(v,)`` Episode of each visit, as its position in the share."""
    visit_start: NDArray[np.int32]
    """``(v,)`` First frame that a visit delivers."""
    visit_stop: NDArray[np.int32]
    """``(v,)`` One past the last frame that a visit delivers."""
    decode: NDArray[np.int32] | None = None
    """``(n,)`` Positions of the items, in the order in which they are decoded, where the
    strategy fixes it."""
    run_start: NDArray[np.int32] | None = None
    """``(r + 1,)`` Where each run starts in ``decode``; last, ``n``."""
    spread: int = 0
    """An item's position and its place in ``decode`` differ by at most this."""

    def __len__(self) -> int:
        """Items."""
        return len(self.visit)

    @property
    def num_visits(self) -> int:
        """Visits."""
        return len(self.visit_episode)

    @property
    def episode(self) -> NDArray[np.int64]:
        """``(n,)`` Episode of each item, as its position in the share."""
        return self.visit_episode[self.visit]

    @property
    def run(self) -> NDArray[np.int32] | None:
        """``(n,)`` Run of each item, runs numbered as they are decoded."""
        if self.decode is None or self.run_start is None:
            return None
        run = np.empty(len(self), dtype=np.int32)
        numbers = np.arange(len(self.run_start) - 1, dtype=np.int32)
        run[self.decode] = np.repeat(numbers, np.diff(self.run_start))
        return run


def last_positions(order: Order) -> NDArray[np.int32]:
    """``(v,)`` Position of each visit's last item."""
    last = np.zeros(order.num_visits, dtype=np.int32)
    for start in range(0, len(order), _CHUNK):
        visit = order.visit[start : start + _CHUNK]
        last[visit] = np.arange(start, start + len(visit), dtype=np.int32)
    return last


def order_by_keys(share: Share, admitted: NDArray[np.int64], keys: NDArray[Any]) -> Order:
    """Sort frames by their keys, one visit an episode.

    Args:
        share: The worker's share.
        admitted: ``(e,)`` The share's episodes in the order in which ``keys`` has them.
        keys: ``(n,)`` Key of each frame, episode after episode, frames rising.

    Returns:
        The order; equal keys stay as they are.
    """
    counts = share.counts[admitted]
    starts = np.cumsum(counts) - counts
    by_first = np.argsort(np.minimum.reduceat(keys, starts), kind="stable")
    visit_of = np.empty(len(admitted), dtype=np.int32)
    visit_of[by_first] = np.arange(len(admitted), dtype=np.int32)
    by_key = np.argsort(keys, kind="stable")
    frame = frames_to_deliver(share, admitted)[by_key]
    visit = np.repeat(visit_of, counts)[by_key]
    episode = admitted[by_first]
    return Order(
        visit=visit,
        frame=frame,
        visit_episode=episode,
        visit_start=np.zeros(len(episode), dtype=np.int32),
        visit_stop=share.episodes.lengths[episode].astype(np.int32),
    )


def frames_to_deliver(share: Share, episodes: NDArray[np.int64]) -> NDArray[np.int32]:
    """Frame numbers to deliver of the given episodes, rising, one episode after another."""
    if share.frames is not None:
        return share.frames.select(episodes).value
    counts = share.counts[episodes]
    stops = np.cumsum(counts)
    frames = np.ones(int(stops[-1]), dtype=np.int32)
    frames[0] = 0
    frames[stops[:-1]] = 1 - counts[:-1]
    np.cumsum(frames, out=frames)
    return frames
