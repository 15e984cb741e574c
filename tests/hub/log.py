"""What the loopback Hub has been asked."""

from __future__ import annotations

import fnmatch
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from tests.hub.exchange import Asked, Origin

_OWN_BUSINESS = "/api/agent-harnesses"
"""A look-up that the client makes once a day for itself; it counts for nothing."""


@dataclass(slots=True, eq=False)
class Logged:
    """One request and how it was answered."""

    method: str
    """``GET``, ``HEAD``, …"""
    origin: Origin
    """Which host was asked."""
    path: str
    """Path, unquoted."""
    query: Mapping[str, str]
    """Query parameters."""
    headers: Mapping[str, str]
    """Request headers by lower-case name."""
    body: bytes
    """What was sent along."""
    status: int = 0
    """HTTP status of the answer; 0 while there is none."""
    sent: int = 0
    """Bytes of body sent."""

    @property
    def range(self) -> str | None:
        """The range asked for, as it was written: ``bytes=0-99``."""
        return self.headers.get("range")

    @property
    def authorized(self) -> bool:
        """Whether a token came along."""
        return "authorization" in self.headers


class Gauge:
    """How many requests are being answered, and how many were at most. A context manager."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.now = 0
        self.most = 0

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1


class RequestLog:
    """All requests in the order they arrived. Safe from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[Logged] = []

    def add(self, asked: Asked) -> Logged:
        """Note a request; the entry is completed by whoever answers it."""
        entry = Logged(
            asked.method, asked.origin, asked.path, asked.query, asked.headers, asked.body
        )
        with self._lock:
            self._entries.append(entry)
        return entry

    def find(
        self, path: str = "*", *, method: str | None = None, origin: Origin | None = None
    ) -> list[Logged]:
        """List requests, oldest first.

        Args:
            path: Pattern of the unquoted path, as in a shell.
            method: Only this method.
            origin: Only this host.
        """
        with self._lock:
            entries = list(self._entries)
        return [
            entry
            for entry in entries
            if entry.path != _OWN_BUSINESS
            and fnmatch.fnmatchcase(entry.path, path)
            and method in (None, entry.method)
            and origin in (None, entry.origin)
        ]

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._entries.clear()
