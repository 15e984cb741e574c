"""Sums over a column, from which its statistics follow, and a sample for its quantiles."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

SAMPLE_ROWS = 100_000
"""Rows kept for quantiles, at most about twice as many."""


@dataclass(slots=True, eq=False)
class Moments:
    """Sums over the finite values of a column of ``D`` numbers a row."""

    low: NDArray[np.float64]
    """``(D,)`` Smallest."""
    high: NDArray[np.float64]
    """``(D,)`` Largest."""
    count: NDArray[np.int64]
    """``(D,)`` Values."""
    mean: NDArray[np.float64]
    """``(D,)`` Mean."""
    spread: NDArray[np.float64]
    """``(D,)`` Sum of squared distances from the mean."""
    step: int
    """Every so many rows one is kept."""
    kept: list[NDArray[np.float64]] = field(default_factory=list)
    """``(m, D)`` each: the rows kept."""
    rows: int = 0
    """Rows so far."""

    @classmethod
    def of(cls, size: int, *, expected_rows: int) -> Moments:
        """Start without a row.

        Args:
            size: ``D``.
            expected_rows: Rows that will come.
        """
        return cls(
            low=np.full(size, np.inf),
            high=np.full(size, -np.inf),
            count=np.zeros(size, np.int64),
            mean=np.zeros(size),
            spread=np.zeros(size),
            step=max(1, expected_rows // SAMPLE_ROWS),
        )

    def add(self, rows: NDArray[np.float64]) -> None:
        """Take in ``(n, D)`` rows."""
        if not len(rows):
            return
        finite = np.isfinite(rows)
        count = finite.sum(axis=0)
        some = np.maximum(count, 1)
        mean = np.where(finite, rows, 0.0).sum(axis=0) / some
        spread = (np.where(finite, rows - mean, 0.0) ** 2).sum(axis=0)
        total = np.maximum(self.count + count, 1)
        off = mean - self.mean
        # Chan, Golub and LeVeque: two sets joined without losing digits
        self.spread += spread + off**2 * self.count * count / total
        self.mean += off * count / total
        self.count += count
        self.low = np.minimum(self.low, np.where(finite, rows, np.inf).min(axis=0))
        self.high = np.maximum(self.high, np.where(finite, rows, -np.inf).max(axis=0))
        self.kept.append(rows[-self.rows % self.step :: self.step].copy())
        self.rows += len(rows)

    @property
    def std(self) -> NDArray[np.float64]:
        """``(D,)`` Standard deviation of the whole."""
        deviation: NDArray[np.float64] = np.sqrt(self.spread / np.maximum(self.count, 1))
        return deviation

    def share_below(self, value: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """Share of the kept rows below, and at or below, ``(D,)`` values."""
        kept = np.concatenate(self.kept) if self.kept else np.zeros((0, len(value)))
        count = max(1, len(kept))
        return (kept < value).sum(axis=0) / count, (kept <= value).sum(axis=0) / count
