"""Batches while they are being filled, and as they are handed out."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from lerobot_stream.stream.episode import EpisodeData
from lerobot_stream.stream.layout import Layout
from lerobot_stream.stream.memory import BatchMemory

Batch = dict[str, torch.Tensor | list[str]]
"""What training sees: tensors by feature, text as lists, all with ``B`` first."""


class OpenBatch:
    """Memory of one batch. Rows are filled in any order, by several threads."""

    def __init__(self, layout: Layout, rows: int, memory: BatchMemory) -> None:
        """Take memory for ``rows`` items."""
        self._layout = layout
        self.rows = rows
        self.missing = rows * (1 + len(layout.cameras))
        """Parts (columns, or one camera, of one row) still to be filled; the pipeline counts."""
        self._columns = {
            key: np.empty((rows, *layout.steps(key), *shape), dtype=dtype)
            for key, (dtype, shape) in layout.columns.items()
        }
        self._is_pad = {
            key: np.empty((rows, *layout.steps(key)), dtype=np.bool_) for key in layout.windows
        }
        self._tasks = [""] * rows
        self._lent = {
            key: memory.lend((rows, *(layout.steps(key) or (1,)), *shape))
            for key, shape in layout.cameras.items()
        }

    def pictures(self, key: str) -> NDArray[np.uint8]:
        """``(B, T, H, W, C)`` Where a camera's pictures go; ``T`` is 1 without a window."""
        return self._lent[key][0]

    def fill_columns(
        self, rows: NDArray[np.int64], frame: NDArray[np.int64], data: EpisodeData
    ) -> None:
        """Gather everything but pictures.

        Args:
            rows: ``(m,)`` Rows to fill.
            frame: ``(m,)`` Frame of each.
            data: The episode they are from.
        """
        windows = self._layout.windows
        for key, into in self._columns.items():
            column = data.rows.columns[key]
            numbers = windows[key].numbers(frame, data.length) if key in windows else frame
            into[rows] = column[numbers]
        for key, is_pad in self._is_pad.items():
            is_pad[rows] = windows[key].is_pad(frame, data.length)
        for row, task in zip(rows, data.rows.columns["task_index"][frame], strict=True):
            self._tasks[row] = self._layout.tasks[int(task)]

    def finish(self, *, as_uint8: bool) -> Batch:
        """Hand out the batch; the memory now belongs to its tensors.

        Args:
            as_uint8: Pictures stay uint8; otherwise they become float32 in [0, 1].

        Returns:
            Pictures as ``(B, C, H, W)``, windowed ``(B, T, C, H, W)``, in NHWC memory.
        """
        batch: Batch = {}
        for key, (_, tensor) in self._lent.items():
            pictures = tensor if key in self._layout.windows else tensor[:, 0]
            pictures = pictures.movedim(-1, -3)
            batch[key] = pictures if as_uint8 else pictures.to(torch.float32).div_(255)
        for key, column in self._columns.items():
            batch[key] = column.tolist() if column.dtype == object else torch.from_numpy(column)
        for key, is_pad in self._is_pad.items():
            batch[f"{key}_is_pad"] = torch.from_numpy(is_pad)
        batch["task"] = self._tasks
        return batch


def single_items(batch: Batch) -> list[dict[str, torch.Tensor | str]]:
    """The items of a batch, as views on it."""
    return [
        {key: column[row] for key, column in batch.items()} for row in range(len(batch["task"]))
    ]
