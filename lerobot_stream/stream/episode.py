"""One episode's bytes: its rows, and a mini-MP4 for each camera."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.dataset.rows import RowReader, Rows
from lerobot_stream.errors import DatasetError, StreamError
from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.mp4.mux import MiniMp4, build_mini_mp4, mini_mp4_size
from lerobot_stream.mp4.select import Presentation, byte_span, present, select_samples
from lerobot_stream.span import Span
from lerobot_stream.stream.opened import OpenedDataset
from lerobot_stream.stream.visit import Visit

_KEPT_TABLES = 64
"""Files whose sample tables stay in memory."""

Payload = tuple[int, memoryview]
"""Bytes of a file that hold a camera's samples, and where in the file they begin."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class CameraData:
    """One camera's coded pictures of an episode."""

    mini: MiniMp4
    """The samples around the episode's frames."""
    rank: NDArray[np.int64]
    """``(n,)`` Position of each frame among all of ``mini``'s pictures."""
    place: str
    """Episode, camera and file, for messages."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class EpisodeData:
    """All that items of one episode are made of."""

    episode_index: int
    """The episode."""
    length: int
    """Frames."""
    rows: Rows
    """Numeric and text columns, and images kept in Parquet."""
    cameras: Mapping[str, CameraData]
    """Coded pictures, per video key."""

    @property
    def num_bytes(self) -> int:
        """Bytes of mini-MP4s, columns and stored images."""
        pictures = sum(len(camera.mini.data) for camera in self.cameras.values())
        columns = sum(column.nbytes for column in self.rows.columns.values())
        return pictures + columns + sum(map(len, chain(*self.rows.images.values())))


@contextmanager
def reading(episode: int, video_key: str | None = None) -> Iterator[None]:
    """Note on any error from inside which episode and camera it was about."""
    try:
        yield
    except StreamError as error:
        error.add_note(f"in episode {episode}" + (f", {video_key}" if video_key else ""))
        raise


class EpisodeReader:
    """Reads episodes of an open dataset, from any thread."""

    def __init__(self, opened: OpenedDataset) -> None:
        """Read what ``opened`` describes."""
        self._opened = opened
        self._rows = RowReader(opened.source, opened.meta.info)
        self._drift_told = False
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[Mp4Index, Presentation]] = {}

    def visit_bytes(self, number: int, start: int, stop: int) -> int:
        """Bytes of the mini-MP4s of frames ``[start, stop)`` of an episode, known beforehand."""
        if start == 0 and stop == int(self._opened.meta.episodes.length[number]):
            return int(self._opened.spans.mini_bytes[number].sum())
        total = 0
        for camera in range(self.num_cameras):
            index, first, last = self._samples(number, camera, start, stop)
            total += mini_mp4_size(index, first, last)
        return total

    def read(self, visit: Visit) -> EpisodeData:
        """Fetch a visit, one span after another.

        Raises:
            StreamError: Rows or samples cannot be read, or contradict the metadata.
        """
        rows = self.read_rows(visit)
        payloads = {}
        for camera, (path, span) in enumerate(self.camera_spans(visit)):
            with reading(*self.name(visit, camera)):
                payloads[camera] = span.start, memoryview(self.read_bytes(path, span))
        return self.assemble(visit, rows, payloads)

    @property
    def num_cameras(self) -> int:
        """Cameras stored as video."""
        return len(self._opened.spans.video_keys)

    def name(self, visit: Visit, camera: int) -> tuple[int, str]:
        """Episode and camera, for messages."""
        table = self._opened.meta.episodes
        return int(table.episode_index[visit.episode]), self._opened.spans.video_keys[camera]

    def camera_spans(self, visit: Visit) -> list[tuple[str, Span]]:
        """File and bytes that a visit needs of each camera."""
        spans = self._opened.spans
        wanted = []
        for camera in range(self.num_cameras):
            index, first, last = self._samples(visit.episode, camera, visit.start, visit.stop)
            path = spans.paths[int(spans.file[visit.episode, camera])]
            wanted.append((path, byte_span(index, first, last)))
        return wanted

    def read_bytes(self, path: str, span: Span) -> bytes:
        """Read a span with one request."""
        return self._opened.source.read(path, span)

    def read_rows(self, visit: Visit) -> Rows:
        """Read all rows of a visit's episode.

        Raises:
            StreamError: They cannot be read, or contradict the metadata.
        """
        table, number = self._opened.meta.episodes, visit.episode
        episode, length = int(table.episode_index[number]), int(table.length[number])
        path = self._opened.row_paths.get(number) or table.data_paths[int(table.data_file[number])]
        with reading(episode):
            rows = self._rows.read(episode, length, path)
            self._check_tasks(rows)
        return rows

    def assemble(self, visit: Visit, rows: Rows, payloads: Mapping[int, Payload]) -> EpisodeData:
        """Make a visit's data from its rows and each camera's bytes."""
        cameras = {}
        for camera, key in enumerate(self._opened.spans.video_keys):
            with reading(*self.name(visit, camera)):
                cameras[key] = self._camera(visit, camera, payloads[camera], rows)
        episode = int(self._opened.meta.episodes.episode_index[visit.episode])
        return EpisodeData(episode, len(rows), rows, cameras)

    def _camera(self, visit: Visit, camera: int, payload: Payload, rows: Rows) -> CameraData:
        spans, number = self._opened.spans, visit.episode
        path = spans.paths[int(spans.file[number, camera])]
        index, first, last = self._samples(number, camera, visit.start, visit.stop)
        offset, data = payload
        mini = build_mini_mp4(index, first, last, data, payload_offset=offset)
        origin = int(spans.first_frame[number, camera])
        samples = self._tables(path)[1].order[origin : origin + len(rows)]
        rank = np.full(len(rows), -1, dtype=np.int64)
        rank[visit.start : visit.stop] = frame_ranks(mini, samples[visit.start : visit.stop])
        self._check_times(index, samples, rows, number, camera)
        episode, key = self.name(visit, camera)
        return CameraData(mini, rank, f"episode {episode}, {key}, {path}")

    def _check_tasks(self, rows: Rows) -> None:
        tasks = self._opened.meta.tasks
        unknown = set(np.unique(rows.columns["task_index"]).tolist()) - tasks.keys()
        if unknown:
            raise DatasetError(
                f"task_index {min(unknown)} is not in meta/tasks.parquet, which has {len(tasks)}"
            )

    def _samples(
        self, number: int, camera: int, start: int, stop: int
    ) -> tuple[Mp4Index, int, int]:
        """The samples that frames ``[start, stop)`` need."""
        spans = self._opened.spans
        index, presentation = self._tables(spans.paths[int(spans.file[number, camera])])
        if start == 0 and stop == int(self._opened.meta.episodes.length[number]):
            first, last = spans.start_sample[number, camera], spans.stop_sample[number, camera]
            return index, int(first), int(last)
        origin = np.array([spans.first_frame[number, camera] + start])
        firsts, lasts = select_samples(index, presentation, origin, np.array([stop - start]))
        return index, int(firsts[0]), int(lasts[0])

    def _tables(self, path: str) -> tuple[Mp4Index, Presentation]:
        """A file's sample table and its presentation order; those of the last files are kept."""
        with self._lock:
            tables = self._kept.pop(path, None)
        if tables is None:
            if self._opened.sidecar is None:
                raise TypeError("a dataset with video needs a sidecar")
            index = self._opened.sidecar.index(path)
            tables = index, present(index)
        with self._lock:
            self._kept[path] = tables
            while len(self._kept) > _KEPT_TABLES:
                del self._kept[next(iter(self._kept))]
        return tables

    def _check_times(
        self, index: Mp4Index, samples: NDArray[np.int64], rows: Rows, number: int, camera: int
    ) -> None:
        """Warn, once a dataset, where rows and pictures disagree about the time."""
        stamps = rows.columns.get("timestamp")
        if stamps is None or self._drift_told:
            return
        key = self._opened.spans.video_keys[camera]
        wanted = self._opened.meta.episodes.from_timestamp[key][number] + stamps.astype(np.float64)
        drift = np.abs(index.pts_s[samples] - wanted)
        worst = int(np.argmax(drift))
        # A float32 timestamp of a long episode is itself only exact to its last digit.
        if drift[worst] <= self._opened.config.tolerance_s + np.spacing(np.float32(stamps[worst])):
            return
        self._drift_told = True
        logger.warning(
            "timestamps drift from the video: in episode %d, %s, frame %d is %.3f s away from its "
            "picture (tolerance_s is %g); frames are matched by counting, so pictures stay right; "
            "inspect-episodes shows every episode's drift",
            int(self._opened.meta.episodes.episode_index[number]),
            key,
            worst,
            drift[worst],
            self._opened.config.tolerance_s,
        )


def frame_ranks(mini: MiniMp4, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where samples lie among a mini-MP4's pictures.

    Args:
        mini: The mini-MP4 around the episode.
        wanted: ``(n,)`` Sample numbers of the episode's frames.

    Returns:
        ``(n,)`` Positions in ``mini.samples``.

    Raises:
        ValueError: A sample is not in the mini-MP4.
    """
    by_number = np.argsort(mini.samples)
    place = np.searchsorted(mini.samples, wanted, sorter=by_number)
    ranks: NDArray[np.int64] = by_number[np.minimum(place, len(by_number) - 1)]
    if not np.array_equal(mini.samples[ranks], wanted):
        raise ValueError("the mini-MP4 does not hold all frames of the episode")
    return ranks
