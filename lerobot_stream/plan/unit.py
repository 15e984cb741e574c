"""The smallest thing that is decoded: some frames of one visit, and where they belong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """Items of one visit that are decoded together."""

    visit: int
    """Number of the visit in its order."""
    positions: NDArray[np.int64]
    """``(m,)`` Positions of the items in the stream, in the order of ``frames``."""
    frames: NDArray[np.int32]
    """``(m,)`` Their frame numbers, rising."""
    last: bool
    """True where no later unit needs the visit."""
