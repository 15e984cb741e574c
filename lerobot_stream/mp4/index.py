"""The sample table of one video track, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Movie:
    """What a mini-MP4 needs of a file besides its samples (the sidecar's ``mp4`` record)."""

    file_size: int
    """Bytes of the whole file."""
    ftyp: bytes
    """The ``ftyp`` box with its header."""
    moov_offset: int
    """Byte at which the movie box starts."""
    mdat_offset: int
    """Byte at which the media data box starts."""
    mdat_payload_offset: int
    """First byte after the header of the media data box."""
    mdat_payload_size: int
    """Bytes of media data."""
    faststart: bool
    """True where the movie box lies before the media data."""
    codec: str
    """Four-character code of the sample entry, e.g. ``av01``."""
    timescale: int
    """Track ticks per second."""
    duration: int
    """Track ticks (``mdhd``)."""
    track_id: int
    """``tkhd`` track number."""
    width: int
    """Pixels."""
    height: int
    """Pixels."""
    stsd_body: bytes
    """Sample descriptions: the ``stsd`` box after its 8-byte header."""


@dataclass(frozen=True, slots=True, eq=False)
class Mp4Index:
    """The sample table of one video track, a column per array, in decoding order."""

    movie: Movie
    """The file's own record."""
    pts_s: NDArray[np.float64]
    """``(n,)`` Presentation time in seconds, composition offset and edit list applied."""
    duration: NDArray[np.int64]
    """``(n,)`` Decoding duration, in track ticks (``stts``)."""
    composition_offset: NDArray[np.int64]
    """``(n,)`` Signed track ticks (``ctts``)."""
    size: NDArray[np.int64]
    """``(n,)`` Bytes of each sample."""
    offset: NDArray[np.int64]
    """``(n,)`` First byte of each sample, counted from the start of the file."""
    sync: NDArray[np.int64]
    """``(m,)`` Numbers of the sync samples, rising."""

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.size)
