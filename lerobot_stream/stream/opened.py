"""An open dataset: metadata, sidecar, and which samples are whose frames."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.counted import counted
from lerobot_stream.dataset.columns import column_dtype
from lerobot_stream.dataset.episodes import EpisodeTable
from lerobot_stream.dataset.holders import data_paths, excluding, video_paths
from lerobot_stream.dataset.metadata import DatasetMetadata, read_metadata, select_episodes
from lerobot_stream.dataset.presence import check_presence
from lerobot_stream.dataset.rows import RowReader
from lerobot_stream.dataset.version import INFO_PATH
from lerobot_stream.errors import DatasetError
from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.sidecar.losses import losses_noted
from lerobot_stream.sidecar.mapped_store import map_sidecar
from lerobot_stream.sidecar.sample_tables import SampleTables
from lerobot_stream.sidecar.spans import Spans, plan_spans
from lerobot_stream.sidecar.store import open_sidecar
from lerobot_stream.source.base import Source
from lerobot_stream.source.download import download_files
from lerobot_stream.source.open import open_source
from lerobot_stream.stream.codec_library import load_video_decoder
from lerobot_stream.stream.config import ReadConfig
from lerobot_stream.stream.layout import Layout
from lerobot_stream.stream.window import Window, plan_windows

logger = logging.getLogger(__name__)

_SHOWN_FAULTS = 5
"""Faults named in one error; inspect-episodes shows them all."""


@dataclass(frozen=True, slots=True, eq=False)
class OpenedDataset:
    """What reading episodes needs. It can be pickled to worker processes."""

    config: ReadConfig
    """What was asked for."""
    source: Source
    """Where the files are."""
    meta: DatasetMetadata
    """The dataset's metadata."""
    sidecar: SampleTables | None
    """Sample tables; None for a dataset without video."""
    spans: Spans
    """Which samples are whose frames, for every episode of the files that are read."""
    numbers: NDArray[np.int64]
    """``(e,)`` Selected episodes, as rows of the episode table."""
    row_paths: dict[int, str]
    """Data files of the episodes whose metadata names another, by row of the episode table."""
    windows: dict[str, Window]
    """Frames that an item shows of a feature, where that is not just its own."""
    layout: Layout
    """What an item consists of."""

    @property
    def lengths(self) -> NDArray[np.int64]:
        """``(e,)`` Frames of each selected episode."""
        return self.meta.episodes.length[self.numbers]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """``(e,)`` Bytes of each selected episode's mini-MP4s."""
        return self.spans.bytes_of_episode()[self.numbers]


def open_dataset(config: ReadConfig) -> OpenedDataset:
    """Open a dataset and check that every selected episode can be read.

    Args:
        config: Which dataset, which episodes, which windows.

    Returns:
        The open dataset.

    Raises:
        StreamError: The dataset cannot be read, or a selected episode contradicts its files.
        ValueError: An episode or a window that the dataset does not have was asked for.
    """
    started = time.monotonic()
    source = open_source(
        config.repo_id,
        root=config.root,
        revision=config.revision,
        repo_type=config.repo_type,
        connections=config.native_http_connections,
        subranges=config.native_http_subranges,
    )
    meta = read_metadata(source)
    info = meta.info
    if "task_index" not in info.features:
        message = f"wanted task_index among the features, found {len(info.features)} others"
        raise DatasetError(message, path=INFO_PATH, where="features")
    windows = plan_windows(
        config.delta_timestamps,
        keys=list(info.features),
        fps=info.fps,
        tolerance_s=config.tolerance_s,
    )
    numbers = _select(meta.episodes, config, place=source.identity.data_root)
    check_pointers(meta.episodes, numbers)
    paths = video_paths(meta.episodes, info.video_keys, numbers)
    if config.download:
        metadata = [path for path in source.list_files() if path.startswith("meta/")]
        rows = data_paths(meta.episodes, numbers)
        source = download_files(source, [*metadata, *rows, *paths])
    row_paths = check_rows(source, meta, numbers, find=config.find_rows)
    if paths:  # takes a second, or fails: rather here than at the first batch
        load_video_decoder()
    sidecar = _open_tables(source, meta, paths, config) if paths else None
    spans = plan_spans(
        sidecar.index if sidecar is not None else _no_index,
        meta.episodes,
        info.video_keys,
        paths=paths,
        fps=info.fps,
        tolerance_s=config.tolerance_s,
        frames_by=config.frames_by,
    )
    check_spans(spans, meta.episodes, numbers)
    layout = _plan_layout(meta, sidecar, spans, numbers, windows)
    logger.info(
        "%s checked in %.1f s, %s, %.1f MB read",
        counted(len(numbers), "episode"),
        time.monotonic() - started,
        counted(source.count.requests, "request"),
        source.count.bytes / 1e6,
    )
    return OpenedDataset(config, source, meta, sidecar, spans, numbers, row_paths, windows, layout)


def _select(table: EpisodeTable, config: ReadConfig, *, place: str) -> NDArray[np.int64]:
    numbers = select_episodes(table, config.episodes, config.exclude_episodes)
    if not len(numbers):
        raise DatasetError(
            f"no episodes to read: the dataset has {len(table)}",
            path=place,
            hint="select others with --dataset.episodes and --dataset.exclude_episodes"
            if len(table)
            else "record episodes first",
        )
    return numbers


def _open_tables(
    source: Source, meta: DatasetMetadata, paths: list[str], config: ReadConfig
) -> SampleTables:
    everything = np.arange(len(meta.episodes))
    with losses_noted(meta.episodes):
        sidecar = open_sidecar(
            source,
            paths,
            dataset_paths=video_paths(meta.episodes, meta.info.video_keys, everything),
            lock_timeout_s=config.sidecar_lock_timeout_s,
        )
    return map_sidecar(sidecar, lock_timeout_s=config.sidecar_lock_timeout_s)


def check_pointers(table: EpisodeTable, numbers: NDArray[np.int64]) -> None:
    """Refuse selected episodes without frames, or whose metadata names no file.

    Raises:
        DatasetError: Naming them.
    """
    lost = {"rows": numbers[table.data_file[numbers] < 0]} | {
        key: numbers[file[numbers] < 0] for key, file in table.video_file.items()
    }
    for key, missing in lost.items():
        if len(missing):
            raise _refused(
                f"the metadata names no file for {key}", table.episode_index[missing].tolist()
            )
    empty = numbers[table.length[numbers] < 1]
    if len(empty):
        raise _refused("the metadata promises no frames", table.episode_index[empty].tolist())


def check_rows(
    source: Source, meta: DatasetMetadata, numbers: NDArray[np.int64], *, find: bool
) -> dict[int, str]:
    """Refuse selected episodes whose rows are not in the file that the metadata names.

    Args:
        source: Where the files are.
        meta: The dataset's metadata.
        numbers: ``(e,)`` Rows of the episode table to check.
        find: Take rows that are in another file from there.

    Returns:
        That other file, by row of the episode table.

    Raises:
        DatasetError: Naming episodes and files.
    """
    table = meta.episodes
    problems = check_presence(RowReader(source, meta.info), table, numbers)
    found = {problem.episode: problem.found_in for problem in problems if problem.found_in}
    lost = [problem for problem in problems if not (find and problem.found_in)]
    if lost:
        error = _refused(
            f"{lost[0].path}: {lost[0].message}",
            [problem.episode for problem in lost],
            other="; --dataset.find_rows=true reads rows where they are" if found else "",
        )
        for problem in lost[1:_SHOWN_FAULTS]:
            error.add_note(f"episode {problem.episode}: {problem.path}: {problem.message}")
        raise error
    for episode, path in found.items():
        logger.warning("episode %d: its rows are read from %s", episode, path)
    return {
        int(number): found[int(table.episode_index[number])]
        for number in numbers
        if int(table.episode_index[number]) in found
    }


def check_spans(spans: Spans, table: EpisodeTable, numbers: NDArray[np.int64]) -> None:
    """Refuse selected episodes whose frames are not in their video; log what is only odd.

    Raises:
        DatasetError: Naming episodes, cameras and files.
    """
    selected = set(table.episode_index[numbers].tolist())
    errors = [
        problem
        for problem in spans.problems
        if problem.severity == "error" and problem.episode in selected
    ]
    for problem in spans.problems:
        if problem.severity == "warning":
            logger.warning("%s, %s: %s", problem.path, problem.video_key, problem.message)
    if errors:
        first = errors[0]
        error = _refused(
            f"{first.video_key}, {first.path}: {first.message}",
            sorted({problem.episode for problem in errors}),
        )
        for problem in errors[1:_SHOWN_FAULTS]:
            error.add_note(
                f"episode {problem.episode}, {problem.video_key}, {problem.path}: {problem.message}"
            )
        raise error


def _refused(reason: str, episodes: list[int], *, other: str = "") -> DatasetError:
    named = ", ".join(map(str, episodes[:_SHOWN_FAULTS]))
    more = f" and {len(episodes) - _SHOWN_FAULTS} more" if len(episodes) > _SHOWN_FAULTS else ""
    return DatasetError(
        f"episode{'s' if len(episodes) > 1 else ''} {named}{more}: {reason}",
        hint=f"leave out what cannot be read with {excluding(episodes)}{other}; "
        "lerobot-stream inspect-episodes shows every fault",
    )


def _no_index(path: str) -> Mp4Index:
    raise KeyError(path)


def _plan_layout(
    meta: DatasetMetadata,
    sidecar: SampleTables | None,
    spans: Spans,
    numbers: NDArray[np.int64],
    windows: dict[str, Window],
) -> Layout:
    info = meta.info
    columns: dict[str, tuple[np.dtype[np.generic], tuple[int, ...]]] = {}
    for key in info.column_keys:
        feature = info.features[key]
        dtype = column_dtype(feature.dtype)
        is_scalar = dtype.kind == "O" or feature.shape in ((1,), ())
        columns[key] = dtype, () if is_scalar else feature.shape
    cameras = {}
    for key in info.camera_keys:
        feature = info.features[key]
        height, width, channels = feature.height, feature.width, feature.channels
        if key in spans.video_keys and sidecar is not None:
            file = int(spans.file[numbers[0], spans.video_keys.index(key)])
            movie = sidecar.index(spans.paths[file]).movie
            height, width = movie.height, movie.width
        cameras[key] = height, width, channels
    return Layout(columns, cameras, windows, meta.tasks)
