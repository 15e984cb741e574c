"""When the batches of a stream came, and what can be read from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_STRETCHES = 10
"""Stretches of batches that a rate is taken from; its spread is theirs."""


@dataclass(frozen=True, slots=True)
class Spread:
    """One number, and how much it varies."""

    median: float
    """Half of the values are above."""
    low: float
    """A tenth of the values is below."""
    high: float
    """A tenth of the values is above."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds that a batch was waited for."""

    p50: float
    """Half of the batches took longer."""
    p95: float
    """One batch in twenty took longer."""
    p99: float
    """One batch in a hundred took longer."""


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """A column for each thing noted at each batch; row 0 is the first batch."""

    came_s: NDArray[np.float64]
    """``(b,)`` Seconds from the start of the stream to the moment that the batch was there."""
    wait_s: NDArray[np.float64]
    """``(b,)`` Seconds for which it was waited for."""
    items: NDArray[np.int64]
    """``(b,)`` Items handed out so far."""
    pictures: NDArray[np.int64]
    """``(b,)`` Wanted pictures decoded so far."""

    def waits(self) -> Waits:
        """Waits behind the first batch."""
        waits = self.wait_s[1:] if len(self.wait_s) > 1 else self.wait_s
        return Waits(*(float(value) for value in np.percentile(waits, [50, 95, 99])))

    def items_per_s(self) -> Spread:
        """Items a second behind the first batch."""
        return spread(self.rates(self.items))

    def pictures_per_s(self) -> Spread:
        """Pictures decoded a second behind the first batch."""
        return spread(self.rates(self.pictures))

    def rates(self, count: NDArray[np.int64]) -> NDArray[np.float64]:
        """``(s,)`` Rise of a count a second, over stretches of equally many batches."""
        borders = np.linspace(0, len(count) - 1, min(_STRETCHES, len(count) - 1) + 1)
        borders = borders.round().astype(np.int64)
        rates: NDArray[np.float64] = np.diff(count[borders]) / np.diff(self.came_s[borders])
        return rates

    def overall(self, count: NDArray[np.int64]) -> float:
        """Rise of a count a second from the first batch to the last."""
        if len(count) < 2:
            return 0.0
        return float((count[-1] - count[0]) / (self.came_s[-1] - self.came_s[0]))


def spread(values: NDArray[np.float64] | Sequence[float]) -> Spread:
    """Median and tenths of some values; zeros where there are none."""
    if not len(values):
        return Spread(0.0, 0.0, 0.0)
    low, median, high = (float(value) for value in np.percentile(values, [10, 50, 90]))
    return Spread(median, low, high)
