"""What was found wrong or odd about a dataset, by place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lerobot_stream.errors import StreamError

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of one episode or file."""

    severity: Severity
    """An ``error`` keeps the episodes from being read."""
    message: str
    """What is wrong, with numbers."""
    path: str
    """The file it is about."""
    episode: int | None = None
    """``episode_index`` of the episode; None where the whole file is meant."""
    video_key: str | None = None
    """The camera; None where rows are meant."""
    hint: str | None = None
    """What to do about it."""

    def __str__(self) -> str:
        """Place first, then the message."""
        episode = None if self.episode is None else f"episode {self.episode}"
        place = ", ".join(part for part in (episode, self.video_key, self.path) if part)
        return f"{place}: {self.message}"


def file_fault(error: StreamError, path: str, *, holds: str) -> Finding:
    """Turn the fault of a whole file into a finding.

    Args:
        error: The fault.
        path: The file.
        holds: What is lost with it, as text; may be empty.

    Returns:
        An error-level finding without an episode.
    """
    parts = (error.path if error.path != path else None, error.where, error.message)
    reason = ": ".join(part for part in parts if part)
    return Finding("error", f"{reason} ({holds})" if holds else reason, path, hint=error.hint)
