"""All metadata of a dataset, and the choice of its episodes."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.dataset.episodes import EpisodeTable, read_episodes
from lerobot_stream.dataset.info import Info, parse_info
from lerobot_stream.dataset.parquet import read_footer
from lerobot_stream.dataset.stats import read_stats
from lerobot_stream.dataset.tasks import read_tasks
from lerobot_stream.dataset.version import INFO_PATH
from lerobot_stream.source.base import Source
from lerobot_stream.source.ranges import SourceFile, read_file

logger = logging.getLogger(__name__)

_THREADS = 8


@dataclass(frozen=True, slots=True, eq=False)
class DatasetMetadata:
    """What a dataset says about itself, apart from its rows and videos."""

    info: Info
    """Version, rate, features, templates."""
    episodes: EpisodeTable
    """The episodes."""
    tasks: Mapping[int, str]
    """Task texts by ``task_index``."""
    stats: Mapping[str, Mapping[str, NDArray[np.float64]]]
    """Statistics by feature and name."""


def read_metadata(source: Source, *, count_rows: bool = False) -> DatasetMetadata:
    """Read all metadata; counts that disagree are logged as warnings.

    Args:
        source: Where the dataset is read from.
        count_rows: Also read the footer of each data file, to count rows.

    Raises:
        MissingFileError: There is no dataset here.
        FormatError: A file is torn or not of its format.
        DatasetError: The dataset is not a v3 one, or contradicts itself.
    """
    info = parse_info(read_file(source, INFO_PATH))
    episodes = read_episodes(source, info)
    data_rows = read_row_count(source, episodes) if count_rows else None
    for difference in count_differences(info, episodes, data_rows):
        logger.warning("%s", difference)
    return DatasetMetadata(info, episodes, read_tasks(source), read_stats(source))


def read_row_count(source: Source, episodes: EpisodeTable) -> int:
    """Count the rows of all data files that the episode table points to.

    Args:
        source: Where the dataset is read from.
        episodes: The episodes.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        return sum(pool.map(_count_rows, repeat(source), episodes.data_paths))


def _count_rows(source: Source, path: str) -> int:
    with SourceFile(source, path) as file:
        return read_footer(file).num_rows


def count_differences(info: Info, episodes: EpisodeTable, data_rows: int | None) -> list[str]:
    """Compare what info.json, the episode table and the data files count.

    Args:
        info: What info.json says.
        episodes: The episodes.
        data_rows: Rows of the data files; None where they were not counted.

    Returns:
        One sentence for each difference.
    """
    num_frames = int(episodes.length.sum())
    differences = []
    if info.total_episodes != len(episodes):
        differences.append(
            f"{INFO_PATH} promises {info.total_episodes} episodes, "
            f"the episode table has {len(episodes)}"
        )
    if info.total_frames != num_frames:
        differences.append(
            f"{INFO_PATH} promises {info.total_frames} frames, "
            f"the episodes of the table have {num_frames}"
        )
    if data_rows is not None and data_rows != num_frames:
        differences.append(
            f"the data files have {data_rows} rows, the episodes of the table {num_frames}"
        )
    return differences


def select_episodes(
    table: EpisodeTable, episodes: Sequence[int] | None, exclude: Sequence[int] | None
) -> NDArray[np.int64]:
    """Choose episodes by ``episode_index``.

    Args:
        table: All episodes.
        episodes: The ones to keep; None keeps all.
        exclude: The ones to leave out afterwards.

    Returns:
        Their numbers (positions in the table), ascending, each once.

    Raises:
        ValueError: One is not in the table.
    """
    kept = np.ones(len(table), bool)
    if episodes is not None:
        kept[:] = False
        kept[_numbers(table, episodes)] = True
    kept[_numbers(table, exclude or ())] = False
    return np.flatnonzero(kept).astype(np.int64)


def _numbers(table: EpisodeTable, episodes: Sequence[int]) -> NDArray[np.int64]:
    wanted = np.asarray(episodes, np.int64)
    unknown = wanted[~np.isin(wanted, table.episode_index)]
    if len(unknown):
        extent = "no episodes"
        if len(table):
            extent = f"episodes {table.episode_index[0]} to {table.episode_index[-1]}"
        raise ValueError(f"episode {unknown[0]} is not in the dataset, which has {extent}")
    return np.searchsorted(table.episode_index, wanted).astype(np.int64)
