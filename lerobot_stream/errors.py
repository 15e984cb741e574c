"""The error tree: every fault of the world that this package reports.

A caller's mistakes stay ``ValueError``, ``TypeError`` and ``KeyError``.

    StreamError
    ├── FormatError         bytes are not what their format says
    ├── SourceError         bytes could not be read
    │   ├── MissingFileError    the file, dataset or revision is not there
    │   └── AccessError         the server wants a token, or another one
    ├── DatasetError        metadata, rows and videos contradict each other
    ├── SidecarError        a sidecar cannot be built, stored or published
    │   └── LockTimeoutError    another process kept the lock too long
    ├── PlanError           the episodes do not fit the ranks, workers or budget
    ├── DecodeError         the decoder gave no picture, or another one
    └── CheckpointError     a checkpoint cannot be written, read or continued
"""

from __future__ import annotations


class StreamError(Exception):
    """A fault of the world, named by place, with what to do about it."""

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        where: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Say what was wanted and what was found.

        Args:
            message: What was wanted and found, with numbers, without a full stop.
            path: The file it is about.
            where: The place inside that file.
            hint: What to do about it.
        """
        super().__init__(message)
        self.message = message
        self.path = path
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        """Place first, then the message."""
        return ": ".join(part for part in (self.path, self.where, self.message) if part)

    def __reduce__(self) -> tuple[object, ...]:
        """Keep place, hint and notes when the error crosses a process border."""
        state = {**self.__dict__}
        return type(self), (self.message,), state


class FormatError(StreamError):
    """Bytes are not what their format says."""


class SourceError(StreamError):
    """Bytes could not be read."""


class MissingFileError(SourceError):
    """The file, dataset or revision is not there."""


class AccessError(SourceError):
    """The server wants a token, or another one."""


class DatasetError(StreamError):
    """Metadata, rows and videos contradict each other."""


class SidecarError(StreamError):
    """A sidecar cannot be built, stored or published."""


class LockTimeoutError(SidecarError):
    """Another process kept the lock too long."""


class PlanError(StreamError):
    """The episodes do not fit the ranks, workers or budget."""


class DecodeError(StreamError):
    """The decoder gave no picture, or another one than asked for."""


class CheckpointError(StreamError):
    """A checkpoint cannot be written, read or continued."""
