"""What an open dataset says of itself, under the names that LeRobot has for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lerobot_stream.dataset.info import Feature
from lerobot_stream.dataset.metadata import DatasetMetadata
from lerobot_stream.source.local import LocalSource
from lerobot_stream.stream.opened import OpenedDataset


class DescribedDataset:
    """The attributes that streamed datasets and those read by item number share."""

    opened: OpenedDataset
    """The open dataset."""

    @property
    def meta(self) -> DatasetMetadata:
        """Info, episodes, tasks and statistics."""
        return self.opened.meta

    @property
    def repo_id(self) -> str:
        """The dataset's name, as it was asked for."""
        return self.opened.config.repo_id

    @property
    def root(self) -> Path | str:
        """The folder with the files; the address where they are somewhere else."""
        source = self.opened.source
        return source.root if isinstance(source, LocalSource) else source.identity.data_root

    @property
    def episodes(self) -> list[int] | None:
        """``episode_index`` of each selected episode, ascending; None for all."""
        numbers, table = self.opened.numbers, self.meta.episodes
        if len(numbers) == len(table):
            return None
        indices: list[int] = table.episode_index[numbers].tolist()
        return indices

    @property
    def num_episodes(self) -> int:
        """Selected episodes, of all ranks."""
        return len(self.opened.numbers)

    @property
    def num_frames(self) -> int:
        """Frames of the selected episodes, of all ranks."""
        return int(self.opened.lengths.sum())

    @property
    def fps(self) -> float:
        """Frames per second."""
        return self.meta.fps

    @property
    def features(self) -> Mapping[str, Feature]:
        """The dataset's features."""
        return self.meta.features
