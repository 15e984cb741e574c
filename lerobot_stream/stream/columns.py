"""Everything but pictures of the items in the making."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.stream.episode import EpisodeData
from lerobot_stream.stream.layout import Layout


class OpenColumns:
    """Columns and pad masks by place in the stream, in a ring of rows that is used again.

    One thread puts, another takes. Columns of numbers that show an item's own frame lie side by
    side in records, so that one step gathers all of them for all items of a task.
    """

    def __init__(self, layout: Layout, rows: int) -> None:
        """Make room for ``rows`` items; more is made when they come."""
        self._layout = layout
        plain = [
            key
            for key, (dtype, _) in layout.columns.items()
            if key not in layout.windows and dtype.kind != "O"
        ]
        self._record = np.dtype([("", *layout.columns[key]) for key in plain])
        self._field = dict(zip(plain, self._record.names or (), strict=True))
        self._apart = [key for key in layout.columns if key not in self._field]
        self._packed = weakref.WeakKeyDictionary[EpisodeData, NDArray[np.void]]()
        self._taken = 0
        self._lock = threading.Lock()
        self._rows = rows
        self._records, self._ring = self._room(rows)

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
            self._records[rows] = self._pack(data)[frames]
            for key in self._apart:
                self._ring[key][rows] = columns[key][shown.get(key, frames)]
            for key, window in windows.items():
                self._ring[f"{key}_is_pad"][rows] = window.is_pad(frames, data.length)

    def take(self, start: int, stop: int) -> dict[str, NDArray[Any]]:
        """The columns of the items ``[start, stop)``, whose rows may now be used again."""
        with self._lock:
            rows = np.arange(start, stop) % self._rows
            self._taken = stop
            records = self._records[rows].view(self._record)
            taken = {key: column[rows] for key, column in self._ring.items()}
        return {key: records[field].copy() for key, field in self._field.items()} | taken

    def _pack(self, data: EpisodeData) -> NDArray[np.void]:
        """``(n,)`` Records of an episode, made when first asked for."""
        packed = self._packed.get(data)
        if packed is None:
            records = np.empty(data.length, self._record)
            for key, field in self._field.items():
                records[field] = data.rows.columns[key]
            packed = self._packed[data] = records.view(self._records.dtype)
        return packed

    def _reach(self, stop: int) -> None:
        """Have rows for every item not taken yet that lies before ``stop``."""
        if stop - self._taken <= self._rows:
            return
        rows = max(2 * self._rows, stop - self._taken)
        held = np.arange(self._taken, self._taken + self._rows)
        records, ring = self._room(rows)
        records[held % rows] = self._records[held % self._rows]
        for key, column in self._ring.items():
            ring[key][held % rows] = column[held % self._rows]
        self._records, self._ring, self._rows = records, ring, rows

    def _room(self, rows: int) -> tuple[NDArray[np.void], dict[str, NDArray[Any]]]:
        layout = self._layout
        ring: dict[str, NDArray[Any]] = {
            key: np.empty((rows, *layout.steps(key), *shape), dtype=dtype)
            for key, (dtype, shape) in layout.columns.items()
            if key not in self._field
        }
        for key in layout.windows:
            ring[f"{key}_is_pad"] = np.empty((rows, *layout.steps(key)), dtype=np.bool_)
        # NumPy copies what it takes for plain bytes in one piece, fields one by one.
        records: NDArray[np.void] = np.empty(rows, np.dtype((np.void, self._record.itemsize)))
        return records, ring
