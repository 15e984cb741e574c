"""What every place that holds a dataset can do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from lerobot_stream.span import Span


@dataclass(frozen=True, slots=True)
class FileInfo:
    """What a listing says about one file."""

    size: int
    """Bytes."""
    fingerprint: str = ""
    """Text that changes with the content; empty where the revision pins it already."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a sidecar is filed under."""

    repo_id: str
    """The dataset's name, ``OWNER/NAME``."""
    revision: str
    """The commit; where a root has none, the text given or ``v3.0``."""
    data_root: str
    """The address of the dataset's files, without credentials."""


@dataclass(slots=True)
class RequestCount:
    """What a source has been asked for since it was opened."""

    requests: int = 0
    """Range requests made, repeats after a fault included."""
    bytes: int = 0
    """Bytes received."""
    lookups: int = 0
    """Listings, revisions and addresses asked for, repeats after a fault included."""


class Source(Protocol):
    """Where a dataset's files are read from.

    Paths are relative to the dataset's root and ``/``-separated. A source may be used from
    many threads, and pickled to another process, where it opens its own connections and
    keeps the listing it has. Every failure is a ``SourceError``.
    """

    identity: Identity
    count: RequestCount

    def list_files(self) -> Mapping[str, FileInfo]:
        """List every file under the root, once; the same mapping is returned again."""
        ...

    def read(self, path: str, span: Span) -> bytes:
        """Read exactly ``len(span)`` bytes with one request.

        Raises:
            MissingFileError: There is no such file.
            SourceError: The bytes are not all there, or the file has changed since the listing.
        """
        ...

    def resolve(self, paths: Iterable[str]) -> None:
        """Look up now what reading these files takes, so that pickled copies need not.

        Raises:
            SourceError: A file is not there, or cannot be looked up.
        """
        ...

    def close(self) -> None:
        """Give back connections and descriptors; reading again reopens them."""
        ...
