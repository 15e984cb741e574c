"""All metadata of a dataset, and the choice of its episodes."""

from __future__ import annotations

import logging
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.dataset.episodes import EpisodeTable, read_episodes
from lerobot_stream.dataset.info import Info, parse_info
from lerobot_stream.dataset.stats import read_stats
from lerobot_stream.dataset.tasks import read_tasks
from lerobot_stream.dataset.version import INFO_PATH
from lerobot_stream.source.base import Source
from lerobot_stream.source.ranges import read_file

logger = logging.getLogger(__name__)


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


def read_metadata(source: Source) -> DatasetMetadata:
    """Read all metadata; counts that disagree are logged as warnings.

    Args:
        source: Where the dataset is read from.

    Raises:
        MissingFileError: There is no dataset here.
        FormatError: A file is torn or not of its format.
        DatasetError: The dataset is not a v3 one, or contradicts itself.
    """
    info = parse_info(read_file(source, INFO_PATH))
    episodes = read_episodes(source, info)
    _warn_of_counts(info, episodes)
    return DatasetMetadata(info, episodes, read_tasks(source), read_stats(source))


def _warn_of_counts(info: Info, episodes: EpisodeTable) -> None:
    for what, promised, found in (
        ("episodes", info.total_episodes, len(episodes)),
        ("frames", info.total_frames, episodes.length.sum()),
    ):
        if promised != found:
            logger.warning(
                "%s promises %d %s, the episode table has %d", INFO_PATH, promised, what, found
            )


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
        TypeError: One is no whole number.
    """
    kept = np.ones(len(table), bool)
    if episodes is not None:
        kept[:] = False
        kept[_numbers(table, episodes)] = True
    kept[_numbers(table, exclude or ())] = False
    return np.flatnonzero(kept).astype(np.int64)


def _numbers(table: EpisodeTable, episodes: Sequence[int]) -> NDArray[np.int64]:
    try:
        wanted = np.array([operator.index(episode) for episode in episodes], np.int64)
    except OverflowError as error:
        raise ValueError(f"an episode of {list(episodes)} is no number of 64 bits") from error
    unknown = wanted[~np.isin(wanted, table.episode_index)]
    if len(unknown):
        extent = "no episodes"
        if len(table):
            extent = f"episodes {table.episode_index[0]} to {table.episode_index[-1]}"
        raise ValueError(f"episode {unknown[0]} is not in the dataset, which has {extent}")
    return np.searchsorted(table.episode_index, wanted).astype(np.int64)
