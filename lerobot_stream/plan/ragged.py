"""Lists of numbers of different lengths, one after another in one array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """Row ``i`` is ``value[start[i] : start[i + 1]]``."""

    start: NDArray[np.int64]
    """``(rows + 1,)`` Where each row starts in ``value``; last, where all end."""
    value: NDArray[np.int32]
    """``(k,)`` The numbers of all rows."""

    def __post_init__(self) -> None:
        """Refuse borders that do not cut ``value`` into rows."""
        if not len(self.start) or self.start[0] != 0 or self.start[-1] != len(self.value):
            raise ValueError(f"row borders do not span the {len(self.value)} values")
        if np.any(self.start[1:] < self.start[:-1]):
            raise ValueError("row borders fall")

    @classmethod
    def of(cls, rows: Sequence[Sequence[int] | NDArray[np.int32]]) -> Ragged:
        """Join separate lists."""
        start = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=start[1:])
        flat = [np.asarray(row, dtype=np.int32) for row in rows]
        return cls(start, np.concatenate(flat) if flat else np.zeros(0, dtype=np.int32))

    def __len__(self) -> int:
        """Rows."""
        return len(self.start) - 1

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        """One row."""
        return self.value[self.start[row] : self.start[row + 1]]

    @property
    def counts(self) -> NDArray[np.int64]:
        """``(rows,)`` Numbers in each row."""
        counts: NDArray[np.int64] = np.diff(self.start)
        return counts

    def select(self, rows: NDArray[np.int64]) -> Ragged:
        """The given rows, in the given order."""
        if len(rows) == len(self) and np.array_equal(rows, np.arange(len(self))):
            return self
        counts = self.counts[rows]
        start = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(counts, out=start[1:])
        where = np.repeat(self.start[rows] - start[:-1], counts)
        where += np.arange(start[-1])
        return Ragged(start, self.value[where])
