"""Reading columns of numbers, row groups of one file at a time, in order, several ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.dataset.columns import feature_array, number_array, placed
from lerobot_stream.dataset.groups import EPISODE
from lerobot_stream.dataset.info import Info
from lerobot_stream.dataset.parquet import read_columns
from lerobot_stream.errors import FormatError
from lerobot_stream.inspect.row_files import RowFiles, number_columns
from lerobot_stream.source.base import Source
from lerobot_stream.source.ranges import SourceFile

_THREADS = 4
_AHEAD = 6
_BATCH_BYTES = 16 << 20
"""Column chunks read and decoded at once."""
_PLACES = (EPISODE, "frame_index")

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class RowBatch:
    """Rows of neighbouring row groups of one file."""

    path: str
    """The file."""
    groups: NDArray[np.int64]
    """Positions of the row groups in ``RowFiles.groups``."""
    places: dict[str, NDArray[np.float64 | np.int64]]
    """``(n,)`` ``episode_index`` and ``frame_index``."""
    columns: dict[str, NDArray[np.float64]]
    """``(n, D)`` Each column of numbers, whatever its shape."""
    fault: FormatError | None
    """Why there are no rows; None where there are."""


def plan_groups(size: NDArray[np.int64], max_bytes: int | None) -> NDArray[np.int64]:
    """Choose row groups: all if they fit, else some at even distances that do.

    Args:
        size: ``(g,)`` Bytes of each.
        max_bytes: Most bytes altogether; None for no bound. One is always chosen.

    Returns:
        Their positions, rising.
    """
    total = int(size.sum())
    if max_bytes is None or total <= max_bytes:
        return np.arange(len(size))
    step = -(-total // max(max_bytes, 1))
    chosen = np.arange(0, len(size), step)
    fits = np.cumsum(size[chosen]) <= max_bytes
    fits[:1] = True
    return chosen[fits]


def scan_rows(
    source: Source, info: Info, files: RowFiles, chosen: NDArray[np.int64]
) -> Iterator[RowBatch]:
    """Read row groups.

    Args:
        source: Where the files are.
        info: What info.json says.
        files: The data files.
        chosen: Positions of row groups, rising.

    Yields:
        Their rows, in that order; a row group that cannot be decoded hides no other.
    """

    def read(groups: NDArray[np.int64]) -> list[RowBatch]:
        batch = _read(source, info, files, groups)
        if batch.fault is None or len(groups) == 1:
            return [batch]
        return [_read(source, info, files, groups[i : i + 1]) for i in range(len(groups))]

    for batches in _in_order(read, _batches(files, chosen)):
        yield from batches


def _batches(files: RowFiles, chosen: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Cut at borders of files, and where a batch is large enough."""
    groups = files.groups
    border = np.flatnonzero(np.diff(groups.file[chosen])) + 1
    batches = []
    for part in np.split(chosen, border) if len(chosen) else []:
        filled = np.cumsum(groups.number_size[part]) // _BATCH_BYTES
        batches += np.split(part, np.flatnonzero(np.diff(filled)) + 1)
    return batches


def _read(source: Source, info: Info, files: RowFiles, groups: NDArray[np.int64]) -> RowBatch:
    path = files.paths[int(files.groups.file[groups[0]])]
    numbers = files.groups.number[groups].tolist()
    try:
        footer = files.footers.get(path).footer
        keys = number_columns(info)
        wanted = list(dict.fromkeys([*_PLACES, *keys]))
        with SourceFile(source, path) as file:
            table = read_columns(file, footer, numbers, wanted)
        places, columns = {}, {}
        for key in _PLACES:
            with placed(path, key):
                places[key] = number_array(table.column(key))
        for key in keys:
            with placed(path, key):
                values = feature_array(table.column(key), info.features[key])
            columns[key] = values.reshape(len(table), -1).astype(np.float64, copy=False)
    except FormatError as error:
        return RowBatch(path, groups, {}, {}, error)
    return RowBatch(path, groups, places, columns, None)


def _in_order(work: Callable[[T], R], jobs: Sequence[T]) -> Iterator[R]:
    """Results by the order of the jobs, of which only a few are ahead."""
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="rows") as threads:
        running: deque[Future[R]] = deque()
        for job in jobs:
            running.append(threads.submit(work, job))
            if len(running) > _AHEAD:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
