"""What gives the sample tables of a dataset's videos, in whichever form they are kept."""

from __future__ import annotations

from typing import Protocol

from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.source.base import Identity


class SampleTables(Protocol):
    """Sample tables by video file, opened one at a time.

    May be used from many threads and after a fork, and pickled to another process, which opens
    the same file again.
    """

    @property
    def identity(self) -> Identity:
        """The dataset they are of."""
        ...

    @property
    def paths(self) -> tuple[str, ...]:
        """The video files, sorted."""
        ...

    @property
    def subset(self) -> bool:
        """True where these are not all video files of the dataset."""
        ...

    def index(self, path: str) -> Mp4Index:
        """Open the sample table of one file.

        Raises:
            SidecarError: There is none of this file.
            FormatError: It is damaged.
        """
        ...

    def close(self) -> None:
        """Give the file back; no further table can be opened."""
        ...
