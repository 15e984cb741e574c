"""Values of some episodes, thinned out to what a small drawing shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.dataset.episodes import EpisodeTable
from lerobot_stream.dataset.info import Info
from lerobot_stream.inspect.row_files import number_columns

POINTS = 40
"""Most points of one line."""
DIMENSIONS = 12
"""Most lines of one drawing; further dimensions are left out."""


@dataclass(slots=True, eq=False)
class Sketches:
    """Takes rows as they come and keeps those that are wanted."""

    keys: tuple[str, ...]
    """Columns that are drawn."""
    step: NDArray[np.int64]
    """``(E,)`` Every so many frames one is kept; 0 for an episode that is not drawn."""
    _number: dict[str, list[NDArray[np.int64]]] = field(default_factory=dict)
    _frame: dict[str, list[NDArray[np.int64]]] = field(default_factory=dict)
    _rows: dict[str, list[NDArray[np.float64]]] = field(default_factory=dict)

    def take(
        self,
        key: str,
        number: NDArray[np.int64],
        frame: NDArray[np.int64],
        rows: NDArray[np.float64],
    ) -> None:
        """Keep some rows of a column.

        Args:
            key: The column.
            number: ``(n,)`` Row of the episode table of each.
            frame: ``(n,)`` Frame of each.
            rows: ``(n, D)`` The values.
        """
        if key not in self.keys:
            return
        step = self.step[number]
        kept = (step > 0) & (frame % np.maximum(step, 1) == 0)
        self._number.setdefault(key, []).append(number[kept])
        self._frame.setdefault(key, []).append(frame[kept])
        self._rows.setdefault(key, []).append(rows[kept, :DIMENSIONS].copy())

    def lines(self, key: str) -> dict[int, NDArray[np.float64]]:
        """What was kept of a column: ``(points, D)`` by row of the episode table."""
        number = np.concatenate([*self._number.get(key, ()), np.zeros(0, np.int64)])
        if not len(number):
            return {}
        frame, rows = np.concatenate(self._frame[key]), np.concatenate(self._rows[key])
        order = np.lexsort((frame, number))
        number, rows = number[order], rows[order]
        found, start = np.unique(number, return_index=True)
        return dict(zip(found.tolist(), np.split(rows, start[1:]), strict=True))


def plan_sketches(info: Info, table: EpisodeTable, numbers: Sequence[int]) -> Sketches:
    """Choose what is drawn: action and state, or the first columns of several numbers.

    Args:
        info: What info.json says.
        table: The dataset's episodes.
        numbers: Rows of the table to draw.
    """
    columns = number_columns(info)
    known = [key for key in ("action", "observation.state") if key in columns]
    wide = [key for key in columns if info.features[key].shape not in ((), (1,))]
    step = np.zeros(len(table), np.int64)
    chosen = np.asarray(numbers, np.int64)
    step[chosen] = np.maximum(1, -(-table.length[chosen] // POINTS))
    return Sketches(tuple(known or wide[:2]), step)
