"""Everything but pictures of the items in the making."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.stream.episode import EpisodeData
from lerobot_stream.stream.layout import Layout


class OpenColumns:
    """Columns and pad masks by place in the stream, in a ring of rows that is used again.

    One thread puts, another takes. A ring takes the items of a task in one step a column; batches
    of their own would take one for each batch that the task touches.
    """

    def __init__(self, layout: Layout, rows: int) -> None:
        """Make room for ``rows`` items; more is made when they come."""
        self._layout = layout
        self._taken = 0
        self._lock = threading.Lock()
        self._ring = self._room(rows)
        self._rows = rows

    def put(
        self, positions: NDArray[np.int64], frames: NDArray[np.int64], data: EpisodeData
    ) -> None:
        """Gather the columns of some items.

        Args:
            positions: ``(m,)`` Their places in the stream.
            frames: ``(m,)`` Frame of each.
            data: The episode they are from.
        """
        windows, columns = self._layout.windows, data.rows.columns
        shown = {key: windows[key].numbers(frames, data.length) for key in windows}
        with self._lock:
            self._reach(int(positions.max()) + 1)
            rows = positions % self._rows
            for key in self._layout.columns:
                self._ring[key][rows] = columns[key][shown.get(key, frames)]
            for key, window in windows.items():
                self._ring[f"{key}_is_pad"][rows] = window.is_pad(frames, data.length)

    def take(self, start: int, stop: int) -> dict[str, NDArray[Any]]:
        """The columns of the items ``[start, stop)``, whose rows may now be used again."""
        with self._lock:
            rows = np.arange(start, stop) % self._rows
            self._taken = stop
            return {key: column[rows] for key, column in self._ring.items()}

    def _reach(self, stop: int) -> None:
        """Have rows for every item not taken yet that lies before ``stop``."""
        if stop - self._taken <= self._rows:
            return
        rows = max(2 * self._rows, stop - self._taken)
        held = np.arange(self._taken, self._taken + self._rows)
        ring = self._room(rows)
        for key, column in self._ring.items():
            ring[key][held % rows] = column[held % self._rows]
        self._ring, self._rows = ring, rows

    def _room(self, rows: int) -> dict[str, NDArray[Any]]:
        layout = self._layout
        ring: dict[str, NDArray[Any]] = {
            key: np.empty((rows, *layout.steps(key), *shape), dtype=dtype)
            for key, (dtype, shape) in layout.columns.items()
        }
        for key in layout.windows:
            ring[f"{key}_is_pad"] = np.empty((rows, *layout.steps(key)), dtype=np.bool_)
        return ring
