"""Single pictures of episodes, out of nothing but the GOPs or row groups that hold them."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.dataset.columns import number_array, picture_bytes
from lerobot_stream.dataset.episodes import EpisodeTable
from lerobot_stream.dataset.groups import EPISODE
from lerobot_stream.dataset.info import Info
from lerobot_stream.dataset.parquet import read_columns
from lerobot_stream.errors import DecodeError
from lerobot_stream.inspect.row_files import RowFiles, own_files
from lerobot_stream.inspect.video_files import VideoFiles
from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.mp4.mux import build_mini_mp4
from lerobot_stream.mp4.select import Presentation, byte_span, present, select_samples
from lerobot_stream.source.base import Source
from lerobot_stream.source.ranges import SourceFile, read_spans
from lerobot_stream.stream.decode import MiniDecoder
from lerobot_stream.stream.episode import frame_ranks
from lerobot_stream.stream.images import decode_image

_KEPT_TABLES = 16
Picture = NDArray[np.uint8]


class Pictures:
    """Fetches and decodes single pictures, from any thread.

    Args:
        source: Where the files are.
        info: What info.json says.
        table: The dataset's episodes.
        rows: Its data files.
        videos: Its videos.
        max_row_bytes: Most bytes of row groups to fetch for pictures inside Parquet; None for
            no bound.
    """

    def __init__(
        self,
        source: Source,
        info: Info,
        table: EpisodeTable,
        rows: RowFiles,
        videos: VideoFiles,
        *,
        max_row_bytes: int | None = None,
    ) -> None:
        self._source = source
        self._info = info
        self._table = table
        self._rows = rows
        self._videos = videos
        self._max_row_bytes = max_row_bytes
        self._pointed = own_files(rows.paths, table)
        self._order = np.argsort(rows.held_episode, kind="stable")
        self._held = rows.held_episode[self._order]
        self._kept: dict[str, tuple[Mp4Index, Presentation]] = {}
        self._lock = threading.Lock()

    def has(self, number: int, key: str) -> bool:
        """True where an episode's pictures of a camera can be asked for."""
        if not self._table.length[number]:
            return False
        if key in self._info.image_keys:
            groups = self._groups(number)
            size = int(self._rows.groups.size[groups].sum())
            return bool(len(groups)) and size <= (self._max_row_bytes or size)
        camera = self._videos.spans.video_keys.index(key)
        return bool(self._videos.spans.placed[number, camera])

    def frames(
        self, number: int, key: str, frames: NDArray[np.int64], *, max_gap: int = 0
    ) -> list[Picture]:
        """Decode some frames of an episode.

        Args:
            number: Row of the episode table, of which :meth:`has` is true.
            key: The camera.
            frames: Frame numbers, rising.
            max_gap: Bytes worth fetching for nothing to save a request.

        Returns:
            ``(H, W, C)`` each.

        Raises:
            StreamError: They cannot be fetched or decoded.
        """
        place = f"episode {self._table.episode_index[number]}, {key}"
        if key in self._info.image_keys:
            return self._from_rows(number, key, frames, place)
        return self._from_video(number, key, frames, place, max_gap)

    def _from_video(
        self, number: int, key: str, frames: NDArray[np.int64], place: str, max_gap: int
    ) -> list[Picture]:
        spans = self._videos.spans
        camera = spans.video_keys.index(key)
        path = spans.paths[int(spans.file[number, camera])]
        index, presentation = self._tables(path)
        wanted = int(spans.first_frame[number, camera]) + frames
        start, stop = select_samples(index, presentation, wanted, np.ones_like(wanted))
        runs = _joined(start.tolist(), stop.tolist())
        bytes_of = [byte_span(index, first, last) for first, last, _ in runs]
        payloads = read_spans(self._source, path, bytes_of, max_gap=max_gap)
        pictures: list[Picture] = []
        for (first, last, members), span, payload in zip(runs, bytes_of, payloads, strict=True):
            mini = build_mini_mp4(index, first, last, payload, span.start)
            rank = frame_ranks(mini, presentation.order[wanted[members]])
            decoder = MiniDecoder(mini, rank=rank, place=f"{place}, {path}")
            pictures += [picture for _, picture in decoder.frames(range(len(members)))]
        return pictures

    def _from_rows(
        self, number: int, key: str, frames: NDArray[np.int64], place: str
    ) -> list[Picture]:
        groups = self._groups(number)
        path = self._table.data_paths[int(self._table.data_file[number])]
        footer = self._rows.footers.get(path).footer
        numbers = self._rows.groups.number[groups].tolist()
        with SourceFile(self._source, path) as file:
            rows = read_columns(file, footer, numbers, [EPISODE, "frame_index", key])
        own = number_array(rows.column(EPISODE)) == self._table.episode_index[number]
        frame_index = np.where(own, number_array(rows.column("frame_index")), -1)
        pictures = []
        for frame in frames.tolist():
            found = np.flatnonzero(frame_index == frame)
            if not len(found):
                raise DecodeError(f"there is no row of frame {frame}", where=place)
            [data] = picture_bytes(rows.column(key).slice(int(found[0]), 1))
            pictures.append(decode_image(data, place=f"{place}, frame {frame}"))
        return pictures

    def _groups(self, number: int) -> NDArray[np.int64]:
        """Row groups of an episode in the file that the metadata names."""
        rows, table = self._rows, self._table
        if self._pointed[number] < 0:
            return np.zeros(0, np.int64)
        episode = table.episode_index[number]
        start, stop = np.searchsorted(self._held, [episode, episode + 1])
        groups = rows.held_group[self._order[start:stop]]
        here: NDArray[np.int64] = groups[rows.groups.file[groups] == self._pointed[number]]
        return here

    def _tables(self, path: str) -> tuple[Mp4Index, Presentation]:
        """A file's sample table and order of presentation; those of the last files are kept."""
        with self._lock:
            tables = self._kept.pop(path, None)
        if tables is None:
            if self._videos.sidecar is None:
                raise ValueError(f"{path} has no sample table")
            index = self._videos.sidecar.index(path)
            tables = index, present(index)
        with self._lock:
            self._kept[path] = tables
            while len(self._kept) > _KEPT_TABLES:
                del self._kept[next(iter(self._kept))]
        return tables


def _joined(start: Sequence[int], stop: Sequence[int]) -> list[tuple[int, int, list[int]]]:
    """Join runs of samples that touch or overlap: first, one past the last, members."""
    runs: list[tuple[int, int, list[int]]] = []
    for member, (first, last) in enumerate(zip(start, stop, strict=True)):
        if runs and first <= runs[-1][1]:
            low, high, members = runs[-1]
            runs[-1] = (low, max(high, last), [*members, member])
        else:
            runs.append((first, last, [member]))
    return runs
