"""A LeRobotDataset v3 by item number, through the same mini-MP4s as the stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from lerobot_stream.sidecar.choices import FramesBy
from lerobot_stream.stream.batch import OpenBatch, single_items
from lerobot_stream.stream.columns import OpenColumns
from lerobot_stream.stream.config import ReadConfig
from lerobot_stream.stream.described import DescribedDataset
from lerobot_stream.stream.episode import EpisodeReader
from lerobot_stream.stream.fill import Job, fill_pictures
from lerobot_stream.stream.kept import KeptEpisodes
from lerobot_stream.stream.memory import RecycledMemory
from lerobot_stream.stream.opened import open_dataset
from lerobot_stream.stream.visit import Visit


class LeRobotDataset(DescribedDataset, Dataset[dict[str, Any]]):
    """Items by number, in the order of the dataset. Slow by nature: one seek an item."""

    def __init__(
        self,
        repo_id: str,
        *,
        root: str | Path | None = ReadConfig.root,
        revision: str | None = ReadConfig.revision,
        repo_type: str = ReadConfig.repo_type,
        episodes: Sequence[int] | None = ReadConfig.episodes,
        exclude_episodes: Sequence[int] | None = ReadConfig.exclude_episodes,
        delta_timestamps: Mapping[str, Sequence[float]] | None = ReadConfig.delta_timestamps,
        image_transforms: Callable[[torch.Tensor], torch.Tensor] | None = None,
        tolerance_s: float = ReadConfig.tolerance_s,
        frames_by: FramesBy | None = ReadConfig.frames_by,
        find_rows: bool = ReadConfig.find_rows,
        return_uint8: bool = False,
        sidecar_lock_timeout_s: float = ReadConfig.sidecar_lock_timeout_s,
    ) -> None:
        """Open a dataset: metadata, and the index of its videos.

        Args:
            repo_id: The dataset's name.
            root: Its folder; None for the Hub.
            revision: Branch, tag or commit.
            repo_type: ``dataset`` or ``bucket``.
            episodes: Episodes to read; None for all.
            exclude_episodes: Episodes to leave out.
            delta_timestamps: Seconds relative to the current frame, per feature.
            image_transforms: Called on each camera of each item.
            tolerance_s: Seconds that a timestamp may be off.
            frames_by: ``count`` or ``time``, where they disagree.
            find_rows: Read rows where they are, if the metadata names another file.
            return_uint8: Pictures as uint8 instead of float32 in [0, 1].
            sidecar_lock_timeout_s: Seconds to wait for another build.

        Raises:
            StreamError: The dataset cannot be read.
            ValueError: An argument means nothing.
        """
        self.opened = open_dataset(
            ReadConfig(
                repo_id=repo_id,
                root=root,
                revision=revision,
                repo_type=repo_type,
                episodes=episodes,
                exclude_episodes=exclude_episodes,
                delta_timestamps=delta_timestamps,
                tolerance_s=tolerance_s,
                frames_by=frames_by,
                find_rows=find_rows,
                download=True,
                sidecar_lock_timeout_s=sidecar_lock_timeout_s,
            )
        )
        self.image_transforms = image_transforms
        self.return_uint8 = return_uint8
        self._stops = np.cumsum(self.opened.lengths)
        self._forget()

    def __len__(self) -> int:
        """Items."""
        return int(self._stops[-1])

    def __getitem__(self, number: int) -> dict[str, Any]:
        """One item; see :class:`StreamingLeRobotDataset` for what it has.

        Args:
            number: Position among the selected episodes' frames; negative from the end.

        Raises:
            IndexError: There is no such item.
            StreamError: It cannot be read.
        """
        if not -len(self) <= number < len(self):
            raise IndexError(f"item {number} of {len(self)}")
        number %= len(self)
        place = int(np.searchsorted(self._stops, number, side="right"))
        frame = number - int(self._stops[place] - self.opened.lengths[place])
        item = self._item(int(self.opened.numbers[place]), frame)
        if self.image_transforms is not None:
            for key in self.opened.layout.cameras:
                item[key] = self.image_transforms(item[key])
        return item

    def __getstate__(self) -> dict[str, Any]:
        """Decoders and connections stay in their process."""
        return {key: value for key, value in vars(self).items() if not key.startswith("_live")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Open new ones."""
        vars(self).update(state)
        self._forget()

    def _forget(self) -> None:
        self._live_reader = EpisodeReader(self.opened)
        self._live_memory = RecycledMemory(keep=2)
        self._live_kept = KeptEpisodes()

    def _item(self, row: int, frame: int) -> dict[str, Any]:
        visit = self._visit(row)
        kept = self._live_kept.get(row, lambda: self._live_reader.read(visit))
        batch = OpenBatch(self.opened.layout, 1, self._live_memory)
        frames = np.array([frame])
        columns = OpenColumns(self.opened.layout, 1)
        columns.put(np.zeros(1, dtype=np.int64), frames, kept.data)
        with kept.lock:
            for key in self.opened.layout.cameras:
                job = Job(visit, key, frames, [(batch, 0)], kept.data)
                decoder = kept.decoders.pop(key, None)
                window = self.opened.windows.get(key)
                filled = fill_pictures(job, window, decoder=decoder, keep_from=kept.data.length)
                kept.decoders[key] = filled.decoder
        return single_items(batch.finish(columns.take(0, 1), as_uint8=self.return_uint8))[0]

    def _visit(self, row: int) -> Visit:
        return Visit((0, row), row, 0, int(self.meta.episodes.length[row]), 0)
