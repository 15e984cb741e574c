"""Sample tables without files, as encoders order their pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from lerobot_stream.mp4.index import Movie, Mp4Index

MOVIE = Movie(
    file_size=1 << 40,
    ftyp=b"\0\0\0\x14ftypisom\0\0\0\0isom",
    moov_offset=1 << 39,
    mdat_offset=20,
    mdat_payload_offset=28,
    mdat_payload_size=1 << 38,
    faststart=False,
    codec="hvc1",
    timescale=1000,
    duration=0,
    track_id=1,
    width=96,
    height=64,
    stsd_body=bytes(100),
)


def stream(
    times: Sequence[float],
    sync: Sequence[int],
    *,
    codec: str = "hvc1",
    sizes: Sequence[int] | None = None,
    gaps: Sequence[int] | None = None,
) -> Mp4Index:
    """Make an index of samples in decoding order from their presentation times."""
    n = len(times)
    size = np.array(sizes if sizes is not None else [10] * n, dtype=np.int64)
    gap = np.array(gaps if gaps is not None else [0] * n, dtype=np.int64)
    return Mp4Index(
        movie=replace(MOVIE, codec=codec),
        pts_s=np.array(times, dtype=np.float64),
        duration=np.full(n, 100, dtype=np.int64),
        composition_offset=np.zeros(n, dtype=np.int64),
        size=size,
        offset=28 + np.cumsum(size + gap) - size,
        sync=np.array(sync, dtype=np.int64),
    )


@st.composite
def streams(draw: st.DrawFn, *, codec: str = "hvc1") -> Mp4Index:
    """Draw GOPs as encoders make them: a sync sample, pictures before it (open), pictures after.

    Some of the first pictures may be hidden by an edit list.
    """
    times: list[float] = []
    sync: list[int] = []
    shown = 0
    for _ in range(draw(st.integers(1, 6))):
        leading = draw(st.integers(0, 3))
        trailing = draw(st.permutations(range(draw(st.integers(0, 5)))))
        early = draw(st.permutations(range(leading)))
        sync.append(len(times))
        times.append(shown + leading)
        times.extend(shown + k for k in early)
        times.extend(shown + leading + 1 + k for k in trailing)
        shown = len(times)
    hidden = draw(st.integers(0, len(times) - 1))
    n = len(times)
    sizes = draw(st.lists(st.integers(1, 99), min_size=n, max_size=n))
    gaps = draw(st.lists(st.sampled_from([0, 0, 5]), min_size=n, max_size=n))
    return stream([(t - hidden) / 10 for t in times], sync, codec=codec, sizes=sizes, gaps=gaps)
