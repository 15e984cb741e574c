"""Sample tables held in memory, and such as drawn inputs make them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.source.base import Identity
from tests.sidecar.memory import PINNED
from tests.sidecar.synthetic import make_index

BORDERS = (0, 1 << 7, 1 << 15, 1 << 31, 1 << 40)
"""Where a smaller type ends."""


@dataclass
class Tables:
    """Sample tables by path."""

    indexes: Mapping[str, Mp4Index]
    identity: Identity = PINNED
    subset: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(sorted(self.indexes))

    def index(self, path: str) -> Mp4Index:
        return self.indexes[path]

    def close(self) -> None:
        pass


@st.composite
def indexes(draw: st.DrawFn) -> Mp4Index:
    """A sample table whose numbers lie near the ends of the types that hold them."""
    count = draw(st.integers(1, 200))
    gop = draw(st.integers(1, 130))
    random = np.random.default_rng(draw(st.integers(0, 1 << 16)))
    plain = make_index(count, gop=gop)
    size = np.full(count, draw(st.integers(1, 300)))
    if draw(st.booleans()):
        size = random.integers(1, 300, count)
    stop = np.cumsum(size)
    start = max(40, draw(st.sampled_from(BORDERS)) - draw(st.integers(0, int(stop[-1]))))
    order = np.arange(count)
    if draw(st.booleans()):  # two pictures change places in each pair, as B-frames do
        order = np.where(order % 2, order - 1, np.minimum(order + 1, count - 1))
    file_size = int(start + stop[-1])
    movie = dataclasses.replace(
        plain.movie, file_size=file_size, mdat_payload_size=file_size - 40, timescale=90_000
    )
    ticks = order * draw(st.sampled_from([1, 100, 512, 3000, 100_000]))
    hidden = int(np.sort(ticks)[count // 4]) if draw(st.booleans()) else 0
    duration = np.full(count, draw(st.sampled_from([0, 1, 127, 128, 3000, 1 << 30])))
    if draw(st.booleans()):
        duration = duration + random.integers(0, 3, count)
    return dataclasses.replace(
        plain,
        movie=movie,
        pts_s=(ticks - hidden) / 90_000,
        duration=duration,
        composition_offset=ticks - order.min() - np.cumsum(duration) + duration,
        size=size,
        offset=start + stop - size,
    )
