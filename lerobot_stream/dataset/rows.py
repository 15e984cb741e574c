"""The rows of one episode, read from the row groups that hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lerobot_stream.dataset.columns import feature_array, number_array, picture_bytes, placed
from lerobot_stream.dataset.footers import DataFile, FooterCache
from lerobot_stream.dataset.groups import EPISODE
from lerobot_stream.dataset.info import Info
from lerobot_stream.dataset.parquet import read_columns
from lerobot_stream.errors import DatasetError, FormatError
from lerobot_stream.source.base import Source
from lerobot_stream.source.ranges import SourceFile

_PLACES = (EPISODE, "index", "frame_index")


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows of one episode, by rising ``index``."""

    length: int
    """Rows, one a frame."""
    columns: Mapping[str, NDArray[Any]]
    """``(n,)`` or ``(n, *shape)`` for each feature that is no camera."""
    images: Mapping[str, list[bytes]]
    """``n`` encoded pictures for each camera stored as images."""

    def __len__(self) -> int:
        """Count the rows."""
        return self.length


class RowReader:
    """Reads the rows of episodes from many threads; a copy in another process reopens.

    Of what it reads it keeps footers only.

    Args:
        source: Where the dataset is read from.
        info: What its info.json says.
    """

    def __init__(self, source: Source, info: Info) -> None:
        self._source = source
        self._info = info
        self._footers = FooterCache(source)
        self._features = {key: info.features[key] for key in info.column_keys}
        self._image_keys = info.image_keys
        self._columns = tuple(dict.fromkeys([*_PLACES, *self._features, *self._image_keys]))

    def read(self, episode_index: int, length: int, path: str) -> Rows:
        """Read the rows of an episode.

        Args:
            episode_index: The episode.
            length: Frames that the episode table promises.
            path: The data file that the episode table points to.

        Raises:
            MissingFileError: There is no such file.
            FormatError: The file is torn, or a column is missing or of another type or shape.
            DatasetError: The rows are in another file, or not as many as promised, or their
                ``frame_index`` does not count from 0.
        """
        table = self._read_rows(episode_index, path)
        if len(table) != length:
            self._refuse_count(len(table), episode_index, length, path)
        with placed(path, "frame_index"):
            frames = number_array(table.column("frame_index"))
        wrong = np.flatnonzero(frames != np.arange(length))
        if len(wrong):
            message = f"wanted frame_index {wrong[0]}, found {frames[wrong[0]]:g}"
            raise DatasetError(message, path=path, where=f"episode {episode_index}")
        columns, images = {}, {}
        for key, feature in self._features.items():
            with placed(path, key):
                columns[key] = feature_array(table.column(key), feature)
        for key in self._image_keys:
            with placed(path, key):
                images[key] = picture_bytes(table.column(key))
        return Rows(length, columns, images)

    def find(self, episode_index: int) -> str | None:
        """Search all data files for the rows of an episode.

        Args:
            episode_index: The episode.

        Returns:
            The first file with rows of it; None if no readable file has any.
        """
        return self._search(episode_index, "")[0]

    def row_group_bytes(self, path: str, episode_index: int) -> int:
        """Return the bytes of the column chunks that reading an episode takes.

        Args:
            path: A data file.
            episode_index: The episode.
        """
        file = self._footers.get(path)
        groups = file.groups.holding(episode_index)
        return sum(len(span) for span in file.footer.chunk_spans(groups, self._columns))

    def row_bounds(self, path: str, episode_index: int) -> tuple[int, int]:
        """Fewest and most rows of an episode that a data file can hold, by its footer.

        Args:
            path: A data file.
            episode_index: The episode.
        """
        file = self._footers.get(path)
        least = most = 0
        for group in file.groups.holding(episode_index):
            rows = file.footer.metadata.row_group(group).num_rows
            most += rows
            if file.groups.low[group] == file.groups.high[group]:
                least += rows
        return least, most

    def __getstate__(self) -> dict[str, Any]:
        """Leave the footers behind."""
        return {"source": self._source, "info": self._info}

    def __setstate__(self, state: dict[str, Any]) -> None:
        RowReader.__init__(self, state["source"], state["info"])

    def _read_rows(self, episode_index: int, path: str) -> pa.Table:
        """Read the rows of an episode that a file has, by rising index."""
        known = self._footers.get(path)
        groups = known.groups.holding(episode_index)
        with SourceFile(self._source, path) as file:
            table = read_columns(file, known.footer, groups, self._columns)
        with placed(path, EPISODE):
            rows = np.flatnonzero(number_array(table.column(EPISODE)) == episode_index)
        with placed(path, "index"):
            index = number_array(table.column("index"))[rows]
        if (np.diff(index) < 0).any():
            rows = rows[np.argsort(index, kind="stable")]
        if len(rows) and (np.diff(rows) == 1).all():
            return table.slice(int(rows[0]), len(rows))
        return table.take(rows)

    def _refuse_count(self, found: int, episode_index: int, length: int, path: str) -> None:
        """Say where the rows of an episode are, or that they are nowhere."""
        other, unread = self._search(episode_index, path)
        hint = "exclude the episode, or correct the episode table"
        if other and not found:
            message = f"metadata says its rows are here, but they are in {other}"
        elif other:
            message = f"{found} of {length} rows are here, others are in {other}"
        elif found > length:
            message = f"the episode table says {length} rows, found {found}"
        else:
            message = f"{length - found} rows are missing: wanted {length}, found {found}"
            hint = "exclude the episode, or fetch the data files again"
        if unread and not other:
            message = f"{message}; {unread} other data files can't be read"
        raise DatasetError(message, path=path, where=f"episode {episode_index}", hint=hint)

    def _search(self, episode_index: int, near: str) -> tuple[str | None, int]:
        """Return a data file with rows of an episode, and how many files could not be read.

        The file ``near`` is left out, and its neighbours come first.
        """
        paths = [path for path in self._source.list_files() if self._info.is_data_file(path)]
        centre = paths.index(near) if near in paths else 0
        unread = 0
        for number in sorted(range(len(paths)), key=lambda i: abs(i - centre)):
            if paths[number] == near:
                continue
            try:
                if self._has_rows(episode_index, self._footers.get(paths[number])):
                    return paths[number], unread
            except FormatError:
                unread += 1
        return None, unread

    def _has_rows(self, episode_index: int, known: DataFile) -> bool:
        groups = known.groups.holding(episode_index)
        if any(known.groups.low[group] == known.groups.high[group] for group in groups):
            return True
        path = known.footer.path
        with SourceFile(self._source, path) as file:
            table = read_columns(file, known.footer, groups, [EPISODE])
        return bool((number_array(table.column(EPISODE)) == episode_index).any())
