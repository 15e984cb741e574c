"""The files of the episode table, each read by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lerobot_stream.dataset.columns import column_values, number_array, placed, whole_array
from lerobot_stream.dataset.parquet import read_columns, read_footer
from lerobot_stream.errors import FormatError
from lerobot_stream.source.base import Source
from lerobot_stream.source.ranges import SourceFile

REQUIRED = ("episode_index", "length")
"""Columns without which a file says nothing."""
_MAX_GAP_BYTES = 16 << 10  # between the few columns needed lie statistics, most of the bytes

Numbers = NDArray[np.float64 | np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class EpisodeFile:
    """The rows of one file of the episode table."""

    path: str
    """The file."""
    numbers: Mapping[str, Numbers]
    """The columns of numbers that were wanted and are there."""
    tasks: list[tuple[str, ...]]
    """Task texts of each row."""
    columns: tuple[str, ...]
    """Names of all columns in the order of the file, also those not read."""

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.tasks)


def read_episode_file(source: Source, path: str, columns: Sequence[str]) -> EpisodeFile:
    """Read one file of the episode table.

    Args:
        source: Where the dataset is read from.
        path: The file.
        columns: Columns of numbers to read where they are there.

    Raises:
        FormatError: The file is torn, or a column missing or of another type.
    """
    with SourceFile(source, path) as file:
        footer = read_footer(file)
        wanted = [name for name in columns if name in footer.leaves or name in REQUIRED]
        with_tasks = [*wanted, "tasks"] if "tasks" in footer.leaves else wanted
        groups = range(footer.num_groups)
        table = read_columns(file, footer, groups, with_tasks, max_gap=_MAX_GAP_BYTES)
    numbers = {}
    for name in wanted:
        with placed(path, name):
            convert = whole_array if name in REQUIRED else number_array
            numbers[name] = convert(table.column(name))
    tasks: list[tuple[str, ...]] = [()] * len(table)
    if "tasks" in footer.leaves:
        with placed(path, "tasks"):
            tasks = _texts(table.column("tasks"))
    return EpisodeFile(path, numbers, tasks, footer.columns)


def _texts(column: pa.ChunkedArray) -> list[tuple[str, ...]]:
    """Return the texts of each row; equal rows share one tuple."""
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    texts = []
    for value in column_values(column):
        row: tuple[Any, ...] = (value,) if isinstance(value, str) else tuple(value or ())
        if not all(isinstance(text, str) for text in row):
            raise FormatError(f"wanted texts, found {column.type}")
        texts.append(shared.setdefault(row, row))
    return texts
