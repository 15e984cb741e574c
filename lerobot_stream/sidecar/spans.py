"""Where each episode's frames lie in each camera's file, as dense arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.dataset.episodes import EpisodeTable
from lerobot_stream.errors import FormatError, MissingFileError
from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.mp4.mux import mini_mp4_sizes
from lerobot_stream.mp4.select import Presentation, byte_spans, present, select_samples
from lerobot_stream.sidecar.choices import FramesBy
from lerobot_stream.sidecar.frames import Finding, Severity, place_episodes

_REPOINT = "exclude the episode, or repair meta/episodes"
_REPAIR = "exclude the episode, or repair the file"
_NO_SYNC = "its first frames cannot be decoded: no sync sample comes before them"


@dataclass(frozen=True, slots=True)
class SpanProblem:
    """What is wrong or odd about one episode on one camera."""

    severity: Severity
    """An ``error`` leaves the episode without frames on this camera."""
    episode: int
    """``episode_index``."""
    video_key: str
    """The camera."""
    path: str
    """Its file; empty where the metadata name none."""
    message: str
    """What is wrong, with numbers."""
    expected: str
    """What the metadata promise."""
    found: str
    """What the file holds."""
    hint: str
    """What to do about it."""

    def __str__(self) -> str:
        """File, episode, camera, and what is wrong."""
        place = f"episode {self.episode}, {self.video_key}"
        return ": ".join(part for part in (self.path, place, self.message) if part)


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Where the frames of each episode lie; ``E`` episode numbers, ``C`` cameras.

    A cell without frames has ``first_frame`` -1 and zeros: its file was not wanted, the
    metadata name none, or there is an error among the problems.
    """

    video_keys: tuple[str, ...]
    """The cameras."""
    paths: tuple[str, ...]
    """The files, sorted."""
    file: NDArray[np.int64]
    """``(E, C)`` Position in ``paths``; -1 where the file was not wanted or there is none."""
    first_frame: NDArray[np.int64]
    """``(E, C)`` Frame number, in the file, of the episode's first frame."""
    start_sample: NDArray[np.int64]
    """``(E, C)`` First sample needed."""
    stop_sample: NDArray[np.int64]
    """``(E, C)`` One past the last sample needed."""
    start_byte: NDArray[np.int64]
    """``(E, C)`` First byte of those samples."""
    stop_byte: NDArray[np.int64]
    """``(E, C)`` One past their last byte."""
    mini_bytes: NDArray[np.int64]
    """``(E, C)`` Bytes of the episode's mini-MP4."""
    drift_s: NDArray[np.float64]
    """``(E, C)`` Most seconds between a frame's time and that of an even rate from the start."""
    entry_start: NDArray[np.int64]
    """``(E*C + 1,)`` Where each cell's entries lie in ``entry_frame``, cameras fastest."""
    entry_frame: NDArray[np.int32]
    """``(k,)`` Frames of the episode at which decoding can start clean, rising; 0 always counts."""
    problems: tuple[SpanProblem, ...]
    """Errors and warnings, by episode and camera."""

    @property
    def placed(self) -> NDArray[np.bool_]:
        """``(E, C)`` True where the episode has frames."""
        return self.first_frame >= 0

    def bytes_of_episode(self) -> NDArray[np.int64]:
        """``(E,)`` Bytes of each episode's mini-MP4s, all cameras together."""
        total: NDArray[np.int64] = self.mini_bytes.sum(axis=1, dtype=np.int64)
        return total

    def entries(self, number: int, camera: int) -> NDArray[np.int32]:
        """Frames of one episode at which one camera can start clean."""
        cell = number * len(self.video_keys) + camera
        return self.entry_frame[self.entry_start[cell] : self.entry_start[cell + 1]]


def plan_spans(
    index_of: Callable[[str], Mp4Index],
    table: EpisodeTable,
    video_keys: Sequence[str],
    *,
    paths: Collection[str] | None,
    fps: float,
    tolerance_s: float,
    frames_by: FramesBy | None = None,
) -> Spans:
    """Find each episode's frames, samples and bytes on each camera.

    Args:
        index_of: Gives a file's sample table; called once a file, which is let go at once.
        table: **All** episodes of the dataset: neighbours decide, whether selected or not.
        video_keys: The cameras.
        paths: The files wanted; None for all.
        fps: Frames a second.
        tolerance_s: Distance of a start from its frame that is not worth a warning.
        frames_by: Which reading to use where count and time are both or neither plausible.

    Returns:
        Spans of all episodes of the wanted files. A file that is damaged or missing is an error
        of each of its episodes.

    Raises:
        StreamError: ``index_of`` could not tell, for another reason.
    """
    wanted = None if paths is None else frozenset(paths)
    work: dict[str, list[tuple[int, NDArray[np.int64]]]] = {}
    for camera, key in enumerate(video_keys):
        for path, numbers in _by_file(table, key):
            if wanted is None or path in wanted:
                work.setdefault(path, []).append((camera, numbers))
    draft = _Draft(table, tuple(video_keys), tuple(sorted(work)), fps, tolerance_s, frames_by)
    for file, path in enumerate(draft.paths):
        draft.add_file(file, index_of, work[path])
    return draft.finish()


def _by_file(table: EpisodeTable, key: str) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Each file of a camera with its episode numbers, rising."""
    files = table.video_file[key]
    order = np.argsort(files, kind="stable")
    order = order[(files[order] >= 0) & (table.length[order] > 0)]
    found, starts = np.unique(files[order], return_index=True)
    parts = np.split(order, starts[1:]) if len(found) else []
    for file, numbers in zip(found.tolist(), parts, strict=True):
        yield table.video_paths[key][file], numbers


class _Draft:
    """Spans while files are added."""

    def __init__(
        self,
        table: EpisodeTable,
        video_keys: tuple[str, ...],
        paths: tuple[str, ...],
        fps: float,
        tolerance_s: float,
        frames_by: FramesBy | None,
    ) -> None:
        self.table = table
        self.video_keys = video_keys
        self.paths = paths
        self.fps = fps
        self.tolerance_s = tolerance_s
        self.frames_by = frames_by
        shape = (len(table), len(video_keys))
        self.file = np.full(shape, -1, np.int64)
        self.first_frame = np.full(shape, -1, np.int64)
        self.samples = np.zeros((2, *shape), np.int64)
        self.bytes = np.zeros((2, *shape), np.int64)
        self.mini_bytes = np.zeros(shape, np.int64)
        self.drift_s = np.zeros(shape)
        self.num_entries = np.zeros(shape, np.int64)
        self.entries: list[tuple[NDArray[np.int64], NDArray[np.int32]]] = []
        self.problems: list[SpanProblem] = []
        for camera, key in enumerate(video_keys):
            lost = np.flatnonzero((table.video_file[key] < 0) & (table.length > 0))
            self._report_all(camera, lost, "", "the metadata name no video file", "none", _REPOINT)

    def add_file(
        self,
        file: int,
        index_of: Callable[[str], Mp4Index],
        episodes: Iterable[tuple[int, NDArray[np.int64]]],
    ) -> None:
        """Place the episodes of one file: per camera, their numbers."""
        path = self.paths[file]
        for camera, numbers in episodes:
            self.file[numbers, camera] = file
        try:
            index = index_of(path)
            presentation = present(index)
        except (FormatError, MissingFileError) as error:
            reason = str(error).removeprefix(f"{path}: ")
            for camera, numbers in episodes:
                hint = error.hint or _REPAIR
                self._report_all(camera, numbers, path, reason, "an unreadable file", hint)
            return
        order = presentation.order
        sync = np.zeros(len(index), np.bool_)
        sync[index.sync] = True
        for camera, numbers in episodes:
            placement = place_episodes(
                index.pts_s[order],
                sync[order],
                self.table.from_timestamp[self.video_keys[camera]][numbers],
                self.table.length[numbers],
                fps=self.fps,
                tolerance_s=self.tolerance_s,
                frames_by=self.frames_by,
            )
            for finding in placement.findings:
                self._report(finding, camera, numbers, path)
            good = placement.start >= 0
            if good.any():
                starts = placement.start[good]
                self._place(camera, numbers[good], path, starts, index, presentation)

    def _place(
        self,
        camera: int,
        numbers: NDArray[np.int64],
        path: str,
        first: NDArray[np.int64],
        index: Mp4Index,
        presentation: Presentation,
    ) -> None:
        """Fill in the cells of episodes whose first frames are known."""
        start, stop = select_samples(index, presentation, first, self.table.length[numbers])
        good = start >= 0
        if not good.all():
            self._report_all(camera, numbers[~good], path, _NO_SYNC, "no sync sample", _REPAIR)
            numbers, first, start, stop = numbers[good], first[good], start[good], stop[good]
        length = self.table.length[numbers]
        self.first_frame[numbers, camera] = first
        self.samples[:, numbers, camera] = start, stop
        self.bytes[:, numbers, camera] = byte_spans(index, start, stop)
        self.mini_bytes[numbers, camera] = mini_mp4_sizes(index, start, stop)
        from_s = self.table.from_timestamp[self.video_keys[camera]][numbers]
        time_s = index.pts_s[presentation.order]
        self.drift_s[numbers, camera] = _drift(time_s, first, length, from_s, self.fps)
        count, entry = _entries(presentation.entry, first, length)
        self.num_entries[numbers, camera] = count
        self.entries.append((numbers * len(self.video_keys) + camera, entry))

    def finish(self) -> Spans:
        """The finished arrays."""
        count = self.num_entries.reshape(-1)
        entry_start = np.concatenate([[0], np.cumsum(count)])
        entry_frame = np.zeros(int(entry_start[-1]), np.int32)
        for cells, entry in self.entries:
            entry_frame[_ranges(entry_start[cells], count[cells])] = entry
        camera_of = {key: camera for camera, key in enumerate(self.video_keys)}
        problems = sorted(self.problems, key=lambda p: (p.episode, camera_of[p.video_key]))
        return Spans(
            video_keys=self.video_keys,
            paths=self.paths,
            file=self.file,
            first_frame=self.first_frame,
            start_sample=self.samples[0],
            stop_sample=self.samples[1],
            start_byte=self.bytes[0],
            stop_byte=self.bytes[1],
            mini_bytes=self.mini_bytes,
            drift_s=self.drift_s,
            entry_start=entry_start,
            entry_frame=entry_frame,
            problems=tuple(problems),
        )

    def _report(self, finding: Finding, camera: int, numbers: NDArray[np.int64], path: str) -> None:
        """Note a finding about one of the episodes of a file."""
        episode = int(self.table.episode_index[numbers[finding.number]])
        self.problems.append(
            SpanProblem(
                finding.severity,
                episode,
                self.video_keys[camera],
                path,
                finding.message,
                finding.expected,
                finding.found,
                finding.hint,
            )
        )

    def _report_all(
        self,
        camera: int,
        numbers: NDArray[np.int64],
        path: str,
        message: str,
        found: str,
        hint: str,
    ) -> None:
        """Note one and the same error of many episodes."""
        key = self.video_keys[camera]
        for number in numbers:
            episode = int(self.table.episode_index[number])
            expected = f"{self.table.length[number]} frames"
            self.problems.append(
                SpanProblem("error", episode, key, path, message, expected, found, hint)
            )


def _ranges(start: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """All numbers of ``[start, start + count)``, range after range."""
    before = np.cumsum(count) - count
    return np.repeat(start - before, count) + np.arange(int(count.sum()))


def _drift(
    time_s: NDArray[np.float64],
    first: NDArray[np.int64],
    length: NDArray[np.int64],
    from_s: NDArray[np.float64],
    fps: float,
) -> NDArray[np.float64]:
    """Largest distance of an episode's frames from an even rate."""
    frame = _ranges(np.zeros_like(length), length)
    found = time_s[_ranges(first, length)] - np.repeat(from_s, length)
    if not len(frame):
        return np.zeros(0)
    worst = np.maximum.reduceat(np.abs(found - frame / fps), np.cumsum(length) - length)
    return worst.astype(np.float64, copy=False)


def _entries(
    entry: NDArray[np.int64], first: NDArray[np.int64], length: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Entries inside each episode, counted from its first frame, which is one always.

    Args:
        entry: ``(k,)`` Frame numbers of the file at which decoding can start clean, rising.
        first: ``(n,)`` First frame of each episode.
        length: ``(n,)`` Its frames.

    Returns:
        ``(n,)`` How many each episode has, and all of them, episode after episode.
    """
    low = np.searchsorted(entry, first, side="right")
    count = np.searchsorted(entry, first + length) - low
    inside = entry[_ranges(low, count)] - np.repeat(first, count)
    every = np.zeros(len(inside) + len(first), np.int32)
    every[_ranges(np.cumsum(count + 1) - count, count)] = inside
    return count + 1, every
