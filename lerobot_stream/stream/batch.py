"""Batches while their pictures are written, and as they are handed out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray

from lerobot_stream.stream.layout import Layout
from lerobot_stream.stream.memory import BatchMemory

Batch = dict[str, torch.Tensor | list[str]]
"""What training sees: tensors by feature, text as lists, all with ``B`` first."""


class OpenBatch:
    """Picture memory of one batch. Rows are filled in any order, by several threads."""

    def __init__(self, layout: Layout, rows: int, memory: BatchMemory) -> None:
        """Take memory for ``rows`` items."""
        self._layout = layout
        self.rows = rows
        self.missing = rows * max(1, len(layout.cameras))
        """Parts (one camera of one row; the row, where there is none) to be filled; the
        pipeline counts."""
        self._lent = {
            key: memory.lend((rows, *(layout.steps(key) or (1,)), *shape))
            for key, shape in layout.cameras.items()
        }
        self._pictures = {key: tensor.flatten(0, 1) for key, tensor in self._lent.items()}

    def pictures(self, key: str) -> torch.Tensor:
        """``(B * T, H, W, C)`` Where a camera's pictures go; ``T`` is 1 without a window."""
        return self._pictures[key]

    def finish(self, columns: Mapping[str, NDArray[Any]], *, as_uint8: bool) -> Batch:
        """Hand out the batch; the memory now belongs to its tensors.

        Args:
            columns: Everything but pictures; the batch takes it over.
            as_uint8: Pictures stay uint8; otherwise they become float32 in [0, 1].

        Returns:
            Pictures as ``(B, C, H, W)``, windowed ``(B, T, C, H, W)``, in NHWC memory.
        """
        batch: Batch = {}
        for key, tensor in self._lent.items():
            pictures = tensor if key in self._layout.windows else tensor[:, 0]
            pictures = pictures.movedim(-1, -3)
            batch[key] = pictures if as_uint8 else pictures.to(torch.float32).div_(255)
        for key, column in columns.items():
            batch[key] = column.tolist() if column.dtype == object else torch.from_numpy(column)
        batch["task"] = [self._layout.tasks[task] for task in columns["task_index"].tolist()]
        return batch


def single_items(batch: Batch) -> list[dict[str, torch.Tensor | str]]:
    """The items of a batch, as views on it."""
    return [
        {key: column[row] for key, column in batch.items()} for row in range(len(batch["task"]))
    ]
