"""Files that someone has published beside a dataset, for everyone who reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO, Protocol, runtime_checkable

from lerobot_stream.source.base import Source
from lerobot_stream.span import Span

BRANCH = "lerobot-sidecars"
"""The branch of a dataset repository that holds published files."""
FOLDER = "meta/mp4-sidecars"
"""Where they lie on that branch, or in a bucket."""
_PIECE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """A published file as it was when it was looked for."""

    source: Source
    """What reads it."""
    path: str
    """Its path there."""
    size: int
    """Bytes."""


@runtime_checkable
class Publishes(Protocol):
    """A source beside which files can be published."""

    def find_published(self, name: str) -> PublishedFile | None:
        """Look for a published file by name; see :func:`find_published`."""
        ...


def published_path(name: str) -> str:
    """Return the path at which a file of this name is published."""
    return f"{FOLDER}/{name}"


def find_published(source: Source, name: str) -> PublishedFile | None:
    """Look for a published file.

    Args:
        source: The dataset. Folders, and addresses that are not on the Hub, are not asked.
        name: The file's name.

    Returns:
        The file; None where there is none, or no place for one.

    Raises:
        SourceError: The Hub did not say whether there is one.
    """
    return source.find_published(name) if isinstance(source, Publishes) else None


def fetch_published(file: PublishedFile, stream: BinaryIO) -> None:
    """Write a published file's bytes to a stream, a piece at a time.

    Raises:
        SourceError: They are not all there.
    """
    for start in range(0, file.size, _PIECE_BYTES):
        span = Span(start, min(start + _PIECE_BYTES, file.size))
        stream.write(file.source.read(file.path, span))
