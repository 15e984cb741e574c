"""How long a call waits and how often it is made again."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_RESET = re.compile(r";\s*t\s*=\s*(\d+)")
_system = random.SystemRandom()


def _draw() -> float:
    return _system.random()  # its state is not copied into workers, so that they differ


@dataclass(frozen=True, slots=True)
class Clock:
    """Where time and chance come from, so that tests need not wait."""

    now: Callable[[], float] = time.monotonic
    """Seconds since any fixed moment."""
    wall: Callable[[], float] = time.time
    """Seconds since 1970."""
    sleep: Callable[[float], None] = time.sleep
    """Waits so many seconds."""
    draw: Callable[[], float] = _draw
    """A number in ``[0, 1)``."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Deadlines of a call and the waits between its tries."""

    connect_s: float = 10.0
    """Longest wait for a connection."""
    silence_s: float = 30.0
    """Longest wait for the next bytes."""
    try_s: float = 60.0
    """Longest that one try may take, beside what its bytes take at the slowest rate."""
    slowest_rate: float = 128 << 10
    """Bytes a second below which a try counts as stuck."""
    call_s: float = 600.0
    """Longest that all tries of a call and the waits between them may take."""
    tries: int = 8
    """Tries before a call fails."""
    first_wait_s: float = 0.5
    """Wait after the first try; it doubles from try to try."""
    longest_wait_s: float = 30.0
    """Longest wait that doubling leads to."""
    longest_retry_after_s: float = 300.0
    """Longest wait that a server may ask for."""

    def try_deadline_s(self, num_bytes: int) -> float:
        """Return how long one try for so many bytes may take, in seconds."""
        return self.try_s + num_bytes / self.slowest_rate

    def wait_s(self, tries: int, *, draw: float, asked_s: float | None = None) -> float:
        """Return how long to wait before the next try, in seconds.

        Args:
            tries: Tries made so far.
            draw: A number in ``[0, 1)``, so that many workers do not come back at once.
            asked_s: What the server asked for; it is waited for at least, up to the limit.
        """
        doubled = min(self.longest_wait_s, self.first_wait_s * 2.0 ** (tries - 1))
        if asked_s is None:
            return doubled * (0.5 + 0.5 * draw)
        return min(asked_s, self.longest_retry_after_s) + self.first_wait_s * draw


def asked_wait_s(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Read how long a server wants to be left alone, in seconds.

    Args:
        headers: Of the reply, by lower-case name: ``retry-after`` in seconds or as a date, or
            the Hub's ``ratelimit`` with the seconds until its window ends.
        now: The time a date is compared with.

    Returns:
        Seconds, never negative; ``None`` where nothing readable is said.
    """
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return float(text)
    if text:
        try:
            until = parsedate_to_datetime(text)
        except ValueError:
            return None
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        return max(0.0, (until - (now or datetime.now(UTC))).total_seconds())
    match = _RESET.search(headers.get("ratelimit", ""))
    return float(match.group(1)) if match else None
