"""Whether the rows of episodes are where the metadata says, judged by footers alone."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.dataset.episodes import EpisodeTable
from lerobot_stream.dataset.rows import RowReader
from lerobot_stream.errors import FormatError, MissingFileError

_THREADS = 16


@dataclass(frozen=True, slots=True)
class RowProblem:
    """Rows of an episode that are not where its metadata points."""

    episode: int
    """``episode_index``."""
    path: str
    """The data file that the metadata names."""
    message: str
    """What is wrong."""
    found_in: str | None
    """The data file that does hold its rows, if there is one."""


def check_presence(
    reader: RowReader, table: EpisodeTable, numbers: NDArray[np.int64]
) -> list[RowProblem]:
    """Compare what row groups can hold with what the episode table promises.

    Reads one footer a data file. A row group shared by several episodes says only how many rows
    there can be at most, so that a fault inside it shows when the rows themselves are read.

    Args:
        reader: Reads the data files.
        table: The dataset's episodes.
        numbers: ``(e,)`` The episodes to check, as rows of ``table``.

    Returns:
        The faults, by episode.
    """
    by_file = [
        (path, numbers[table.data_file[numbers] == file])
        for file, path in enumerate(table.data_paths)
    ]
    with ThreadPoolExecutor(_THREADS) as threads:
        found = threads.map(
            lambda item: _check_file(reader, table, *item), (f for f in by_file if len(f[1]))
        )
        problems = [problem for part in found for problem in part]
    return sorted(problems, key=lambda problem: problem.episode)


def _check_file(
    reader: RowReader, table: EpisodeTable, path: str, numbers: NDArray[np.int64]
) -> Sequence[RowProblem]:
    episodes = table.episode_index[numbers].tolist()
    try:
        bounds = [reader.row_bounds(path, episode) for episode in episodes]
    except (FormatError, MissingFileError) as error:
        return [RowProblem(episode, path, error.message, None) for episode in episodes]
    problems = []
    for episode, length, (least, most) in zip(
        episodes, table.length[numbers].tolist(), bounds, strict=True
    ):
        if least <= length <= most:
            continue
        other = reader.find(episode) if not most else None
        if other:
            message = f"the metadata says its rows are here, they are in {other}"
        else:
            message = f"{length} rows are promised, {most if most < length else least} are here"
        problems.append(RowProblem(episode, path, message, other))
    return problems
