"""All metadata of a dataset, and the choice of its episodes."""

from __future__ import annotations

import logging
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.dataset.episodes import EpisodeTable, read_episodes
from lerobot_stream.dataset.info import Feature, Info, fetch_info, parse_info
from lerobot_stream.dataset.stats import read_stats
from lerobot_stream.dataset.tasks import read_tasks
from lerobot_stream.dataset.version import INFO_PATH
from lerobot_stream.source.base import Source

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class DatasetMetadata:
    """What a dataset says about itself, apart from its rows and videos.

    Much of ``info`` can be read here as well, under the names that LeRobot has for it.
    """

    info: Info
    """Version, rate, features, templates."""
    episodes: EpisodeTable
    """The episodes."""
    tasks: Mapping[int, str]
    """Task texts by ``task_index``."""
    stats: Mapping[str, Mapping[str, NDArray[np.float64]]]
    """Statistics by feature and name."""

    @property
    def fps(self) -> float:
        """Frames a second."""
        return self.info.fps

    @property
    def robot_type(self) -> str | None:
        """What was recorded, where the writer said it."""
        return self.info.robot_type

    @property
    def total_episodes(self) -> int:
        """Episodes that info.json promises."""
        return self.info.total_episodes

    @property
    def total_frames(self) -> int:
        """Frames that info.json promises."""
        return self.info.total_frames

    @property
    def features(self) -> Mapping[str, Feature]:
        """Every feature, in the order of info.json."""
        return self.info.features

    @property
    def names(self) -> dict[str, object]:
        """What each feature's axes or values are called."""
        return {key: feature.names for key, feature in self.features.items()}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of one frame's value of each feature."""
        return {key: feature.shape for key, feature in self.features.items()}

    @property
    def camera_keys(self) -> list[str]:
        """Cameras stored either way."""
        return list(self.info.camera_keys)

    @property
    def video_keys(self) -> list[str]:
        """Cameras stored as video."""
        return list(self.info.video_keys)

    @property
    def image_keys(self) -> list[str]:
        """Cameras stored as images inside Parquet."""
        return list(self.info.image_keys)


def read_metadata(source: Source) -> DatasetMetadata:
    """Read all metadata; counts that disagree are logged as warnings.

    Args:
        source: Where the dataset is read from.

    Raises:
        MissingFileError: There is no dataset here.
        FormatError: A file is torn or not of its format.
        DatasetError: The dataset is not a v3 one, or contradicts itself.
    """
    info = parse_info(fetch_info(source))
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
