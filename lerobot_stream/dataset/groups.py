"""Which row groups of a data file may hold an episode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.dataset.columns import number_array, placed
from lerobot_stream.dataset.parquet import Footer, read_columns
from lerobot_stream.errors import FormatError
from lerobot_stream.source.ranges import SourceFile

EPISODE = "episode_index"


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The range of ``episode_index`` in each row group."""

    low: NDArray[np.int64]
    """``(g,)`` Lowest; above ``high`` in a row group without rows."""
    high: NDArray[np.int64]
    """``(g,)`` Highest."""

    def holding(self, episode_index: int) -> list[int]:
        """Return the numbers of the row groups whose range includes an episode."""
        found = np.flatnonzero((self.low <= episode_index) & (episode_index <= self.high))
        return [int(group) for group in found]


def read_groups(file: SourceFile, footer: Footer) -> Groups:
    """Find the range of each row group.

    Statistics say it; where a row group has none, its ``episode_index`` column is read.

    Args:
        file: The data file.
        footer: Its footer.

    Raises:
        FormatError: There is no such column, or it holds no numbers.
    """
    if EPISODE not in footer.leaves:
        raise FormatError(f"has no column {EPISODE}", path=footer.path)
    low = np.ones(footer.num_groups, np.int64)
    high = np.zeros(footer.num_groups, np.int64)
    silent = []
    for group in range(footer.num_groups):
        row_group = footer.metadata.row_group(group)
        statistics = row_group.column(footer.leaves[EPISODE][0]).statistics
        if statistics is not None and statistics.has_min_max and isinstance(statistics.min, int):
            low[group], high[group] = statistics.min, statistics.max
        elif row_group.num_rows:
            silent.append(group)
    file.fetch(footer.chunk_spans(silent, [EPISODE]))
    for group in silent:
        table = read_columns(file, footer, [group], [EPISODE])
        with placed(footer.path, EPISODE):
            low[group], high[group] = _range(number_array(table.column(EPISODE)))
    return Groups(low, high)


def _range(values: NDArray[np.float64 | np.int64]) -> tuple[int, int]:
    if not np.isfinite(values).all():
        raise FormatError("wanted a number in every row")
    return int(np.floor(values.min())), int(np.ceil(values.max()))
