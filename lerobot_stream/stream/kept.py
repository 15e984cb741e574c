"""The episodes read last, so that items near each other are not fetched and opened anew."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lerobot_stream.stream.decode import MiniDecoder
from lerobot_stream.stream.episode import EpisodeData

KEPT_BYTES = 1 << 30
"""Most coded bytes and rows of kept episodes."""
KEPT_EPISODES = 32
"""Most kept episodes: each has a decoder open for every camera."""


@dataclass(slots=True, eq=False)
class KeptEpisode:
    """An episode and what is open on it."""

    data: EpisodeData
    """What its items are made of."""
    num_bytes: int
    """Bytes of it, counted once."""
    decoders: dict[str, MiniDecoder | None] = field(default_factory=dict)
    """Open decoders by camera; whoever uses one holds the lock."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while decoding."""


class KeptEpisodes:
    """Keeps the episodes used last; may be asked from many threads."""

    def __init__(self, *, most_bytes: int = KEPT_BYTES, most: int = KEPT_EPISODES) -> None:
        """Start with none.

        Args:
            most_bytes: Bytes that all kept episodes may have; the last one may have more.
            most: Episodes kept.
        """
        self._most_bytes = most_bytes
        self._most = most
        self._kept: OrderedDict[int, KeptEpisode] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, number: int, read: Callable[[], EpisodeData]) -> KeptEpisode:
        """Return an episode, reading it where it is not kept, and forget the oldest ones.

        Args:
            number: The episode.
            read: Reads it, without a lock.
        """
        with self._lock:
            kept = self._kept.get(number)
        if kept is None:
            data = read()
            kept = KeptEpisode(data, data.num_bytes)
        with self._lock:
            self._kept[number] = kept
            self._kept.move_to_end(number)
            sizes = [other.num_bytes for other in self._kept.values()]
            for _ in range(num_to_forget(sizes, most_bytes=self._most_bytes, most=self._most)):
                self._kept.popitem(last=False)
        return kept


def num_to_forget(sizes: Sequence[int], *, most_bytes: int, most: int) -> int:
    """How many of the oldest must go.

    Args:
        sizes: Bytes of each, oldest first.
        most_bytes: Bytes that those left may have.
        most: How many may be left, at least 1.

    Returns:
        The smallest number that leaves few enough; the newest always stays.
    """
    total = 0
    for left, size in enumerate(reversed(sizes)):
        total += size
        if left == most or (left and total > most_bytes):
            return len(sizes) - left
    return 0
