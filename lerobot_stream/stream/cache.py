"""Episodes fetched ahead of the decoder, within a budget of bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from lerobot_stream.stream.episode import EpisodeData


@dataclass(frozen=True, slots=True)
class Visit:
    """A stretch of an episode that is fetched once."""

    key: tuple[int, int]
    """Epoch, and the visit's number in the epoch's order."""
    episode: int
    """Row of the episode table."""
    start: int
    """First frame needed, windows included."""
    stop: int
    """One past the last frame needed."""
    size: int
    """Exact bytes of its mini-MP4s, known before fetching."""


@dataclass(slots=True)
class _Entry:
    visit: Visit
    data: Future[EpisodeData]
    resident: int = 0


class EpisodeByteCache:
    """Fetches visits in plan order and holds them until they are released.

    Bytes are reserved in plan order only: no visit takes bytes that an earlier one waits for. What
    is reserved covers visits being fetched, waiting and being decoded, and stays within
    the budget at all times.
    """

    def __init__(
        self,
        visits: Iterator[Visit],
        load: Callable[[Visit], EpisodeData],
        *,
        budget_bytes: int,
        ahead: int,
        threads: int,
    ) -> None:
        """Start with nothing fetched.

        Args:
            visits: All visits, in the order in which they are first needed.
            load: Fetches one visit.
            budget_bytes: Most bytes reserved.
            ahead: Most visits fetched or being fetched that nobody has asked for yet.
            threads: Visits fetched at once.
        """
        self._visits = visits
        self._load = load
        self._budget = budget_bytes
        self._ahead = ahead
        self._entries: dict[tuple[int, int], _Entry] = {}
        self._unasked: set[tuple[int, int]] = set()
        self._reserved = 0
        self._resident = 0
        self._closed = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="fetch")
        self._reserver = threading.Thread(target=self._reserve_all, name="reserve", daemon=True)
        self._reserver.start()

    @property
    def reserved_bytes(self) -> int:
        """Bytes of every visit that is being fetched, waiting or being decoded."""
        return self._reserved

    @property
    def resident_bytes(self) -> int:
        """Bytes of the visits that have arrived and are not released."""
        return self._resident

    def get(self, visit: Visit) -> EpisodeData:
        """Wait for a visit's bytes; visits must be asked for in plan order.

        Raises:
            StreamError: It could not be fetched.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: visit.key in self._entries or self._closed or self._error is not None
            )
            if self._closed:
                raise RuntimeError("the cache is closed")
            if visit.key not in self._entries and self._error is not None:
                raise self._error
            entry = self._entries[visit.key]
            self._unasked.discard(visit.key)
            self._changed.notify_all()
        return entry.data.result()

    def release(self, visit: Visit) -> None:
        """Give back a visit's bytes: its last frames are decoded."""
        with self._changed:
            entry = self._entries.pop(visit.key)
            self._reserved -= entry.visit.size
            self._resident -= entry.resident
            self._changed.notify_all()

    def close(self) -> None:
        """Stop fetching and forget everything held."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._reserver.join()
        with self._changed:
            self._entries.clear()
            self._unasked.clear()
            self._reserved = self._resident = 0

    def _reserve_all(self) -> None:
        try:
            for visit in self._visits:
                with self._changed:
                    self._changed.wait_for(partial(self._settled, visit))
                    if self._closed:
                        return
                    self._reserve(visit)
        except BaseException as error:  # noqa: BLE001 - raised by the next get
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _settled(self, visit: Visit) -> bool:
        """Whether there is room for a visit, or no more need."""
        room = len(self._unasked) < self._ahead and self._reserved + visit.size <= self._budget
        return room or self._closed

    def _reserve(self, visit: Visit) -> None:
        self._reserved += visit.size
        entry = _Entry(visit, self._threads.submit(self._load, visit))
        self._entries[visit.key] = entry
        self._unasked.add(visit.key)
        self._changed.notify_all()
        entry.data.add_done_callback(lambda done: self._arrived(entry, done))

    def _arrived(self, entry: _Entry, done: Future[EpisodeData]) -> None:
        with self._changed:
            if done.cancelled() or done.exception() or entry.visit.key not in self._entries:
                return
            entry.resident = entry.visit.size
            self._resident += entry.resident
