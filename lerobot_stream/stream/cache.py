"""Episodes fetched ahead of the decoder, within a budget of bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

from lerobot_stream.stream.episode import EpisodeData
from lerobot_stream.stream.visit import Visit


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
        fetch: Callable[[Sequence[Visit]], Sequence[Future[EpisodeData]]],
        *,
        budget_bytes: int,
        ahead: int,
    ) -> None:
        """Start with nothing fetched.

        Args:
            visits: All visits, in the order in which they are first needed.
            fetch: Starts to fetch visits that are wanted together.
            budget_bytes: Most bytes reserved.
            ahead: Most visits fetched or being fetched that nobody has asked for yet.
        """
        self._visits = visits
        self._fetch = fetch
        self._budget = budget_bytes
        self._ahead = ahead
        self._entries: dict[tuple[int, int], _Entry] = {}
        self._unasked: set[tuple[int, int]] = set()
        self._reserved = 0
        self._resident = 0
        self._closed = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
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
            if visit.key in self._unasked:
                self._unasked.remove(visit.key)
                self._changed.notify_all()
        return entry.data.result()

    def release(self, visit: Visit) -> None:
        """Give back a visit's bytes: its last frames are decoded."""
        with self._changed:
            if self._closed:  # nothing is held any more
                return
            entry = self._entries.pop(visit.key)
            self._reserved -= entry.visit.size
            self._resident -= entry.resident
            self._changed.notify_all()

    def close(self) -> None:
        """Reserve no more and forget everything held."""
        with self._changed:
            self._closed = True
            for entry in self._entries.values():
                entry.data.cancel()
            self._changed.notify_all()
        self._reserver.join()
        with self._changed:
            self._entries.clear()
            self._unasked.clear()
            self._reserved = self._resident = 0

    def _reserve_all(self) -> None:
        try:
            waiting = next(self._visits, None)
            while waiting is not None:
                with self._changed:
                    self._changed.wait_for(partial(self._room_or_closed, waiting))
                group: list[Visit] = []
                # Asking for the next visit may plan an epoch, so it must not keep the lock.
                while waiting is not None and self._reserve(waiting):
                    group.append(waiting)
                    waiting = next(self._visits, None)
                if self._closed:
                    return
                self._start(group)
        except BaseException as error:  # noqa: BLE001 - raised by the next get
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _room_or_closed(self, visit: Visit) -> bool:
        few = len(self._unasked) < self._ahead
        return (few and self._reserved + visit.size <= self._budget) or self._closed

    def _reserve(self, visit: Visit) -> bool:
        with self._changed:
            if self._closed or not self._room_or_closed(visit):
                return False
            self._reserved += visit.size
            self._unasked.add(visit.key)
            return True

    def _start(self, group: Sequence[Visit]) -> None:
        for visit, data in zip(group, self._fetch(group), strict=True):
            entry = _Entry(visit, data)
            with self._changed:
                self._entries[visit.key] = entry
                self._changed.notify_all()
                if self._closed:
                    data.cancel()
            data.add_done_callback(partial(self._arrived, entry))

    def _arrived(self, entry: _Entry, done: Future[EpisodeData]) -> None:
        with self._changed:
            if done.cancelled() or done.exception() or entry.visit.key not in self._entries:
                return
            entry.resident = entry.visit.size
            self._resident += entry.resident
