"""A stretch of an episode, as it is fetched."""

from __future__ import annotations

from dataclasses import dataclass


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
