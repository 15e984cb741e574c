"""The episode table: how long each episode is and where its rows and frames lie."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.dataset.episode_faults import FOLDER, MAX_LENGTH, TableFault, sound_rows
from lerobot_stream.dataset.episode_files import (
    REQUIRED,
    EpisodeFile,
    Numbers,
    read_episode_file,
)
from lerobot_stream.dataset.info import Info
from lerobot_stream.dataset.version import CONVERT_HINT
from lerobot_stream.errors import DatasetError, FormatError, MissingFileError, StreamError
from lerobot_stream.source.base import Source

logger = logging.getLogger(__name__)

_PLACES = ("dataset_from_index", "dataset_to_index")
_MAX_NUMBER = 1 << 40  # of a file or a chunk; anything above is damage
_THREADS = 8


@dataclass(frozen=True, slots=True, eq=False)
class EpisodeTable:
    """The episodes of a dataset, a column per array, by rising ``episode_index``.

    The position of an episode in these arrays is its *number*.
    """

    episode_index: NDArray[np.int64]
    """``(E,)`` LeRobot's name of each episode."""
    length: NDArray[np.int64]
    """``(E,)`` Frames."""
    dataset_from_index: NDArray[np.int64]
    """``(E,)`` Dataset index of the first frame."""
    dataset_to_index: NDArray[np.int64]
    """``(E,)`` One past the dataset index of the last frame."""
    data_paths: tuple[str, ...]
    """Data files, each once."""
    data_file: NDArray[np.int64]
    """``(E,)`` Position in ``data_paths``; -1 where the table does not say."""
    video_paths: Mapping[str, tuple[str, ...]]
    """Video files of each camera, each once, by video key."""
    video_file: Mapping[str, NDArray[np.int64]]
    """``(E,)`` Position in ``video_paths[key]``; -1 where the table does not say."""
    from_timestamp: Mapping[str, NDArray[np.float64]]
    """``(E,)`` Seconds of the video file at which the episode starts; NaN where unknown."""
    to_timestamp: Mapping[str, NDArray[np.float64]]
    """``(E,)`` Seconds of the video file at which the episode ends; NaN where unknown."""
    tasks: tuple[tuple[str, ...], ...]
    """Task texts of each episode."""

    def __len__(self) -> int:
        """Count the episodes."""
        return len(self.episode_index)


@dataclass(frozen=True, slots=True, eq=False)
class EpisodeScan:
    """As much of an episode table as can be read, and what is wrong with it."""

    table: EpisodeTable
    """The episodes that are listed in files that can be read, each once; a length that makes
    no sense is 0."""
    faults: tuple[TableFault, ...]
    """What keeps the table from being whole, the gravest first."""
    said_from: NDArray[np.float64]
    """``(E,)`` ``dataset_from_index`` as written; NaN where it is not."""
    said_to: NDArray[np.float64]
    """``(E,)`` ``dataset_to_index`` as written; NaN where it is not."""
    columns: Mapping[str, tuple[str, ...]]
    """Names of the columns of each file that can be read, in its order, by path."""


def read_episodes(source: Source, info: Info) -> EpisodeTable:
    """Read the episode table from all its files.

    Only the columns named in :class:`EpisodeTable` are fetched, not the per-episode statistics
    beside them. Places in the dataset are counted anew where they contradict the lengths.

    Args:
        source: Where the dataset is read from.
        info: What its info.json says.

    Returns:
        All episodes; none where info.json promises none and there is no table.

    Raises:
        MissingFileError: There is no episode table.
        FormatError: A file is torn, or a column missing or of another type.
        DatasetError: Episodes are there twice or missing, or have no frames.
    """
    scan = scan_episodes(source, info)
    for fault in scan.faults:
        raise fault.error
    _warn_of_places(scan)
    return scan.table


def scan_episodes(source: Source, info: Info) -> EpisodeScan:
    """Read as much of the episode table as can be read; see :func:`read_episodes`.

    Raises:
        SourceError: A file that is there could not be fetched.
    """
    paths = [path for path in source.list_files() if path.startswith(FOLDER)]
    paths = sorted(path for path in paths if path.endswith(".parquet"))
    faults = []
    if not paths and info.total_episodes:
        faults.append(TableFault("absent", _absence(source)))
    columns = [*REQUIRED, *_PLACES, *_pointers(info)]
    parts = []
    for path, read in zip(paths, _read_files(source, paths, columns), strict=True):
        if isinstance(read, EpisodeFile):
            parts.append(read)
        else:
            read.path = read.path or path
            faults.append(TableFault("file", read))
    for name in columns:
        if parts and name not in _PLACES and not any(name in part.numbers for part in parts):
            message = f"no file of the episode table has a column {name}"
            faults.append(TableFault("column", DatasetError(message, path=FOLDER)))
    joined = {name: _join(parts, name) for name in columns}
    path_of = np.repeat(
        np.array([part.path for part in parts], object), [len(part) for part in parts]
    )
    order, unsound = sound_rows(joined["episode_index"], joined["length"], path_of)
    tasks = [texts for part in parts for texts in part.tasks]
    kept = {name: values[order] for name, values in joined.items()}
    return EpisodeScan(
        table=_table(kept, tuple(tasks[row] for row in order), info),
        faults=(*faults, *unsound),
        said_from=kept["dataset_from_index"].astype(np.float64),
        said_to=kept["dataset_to_index"].astype(np.float64),
        columns={part.path: part.columns for part in parts},
    )


def _read_files(
    source: Source, paths: Sequence[str], columns: Sequence[str]
) -> list[EpisodeFile | FormatError]:
    def read(path: str) -> EpisodeFile | FormatError:
        try:
            return read_episode_file(source, path, columns)
        except FormatError as error:
            return error

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(read, paths))


def _table(
    kept: Mapping[str, Numbers], tasks: tuple[tuple[str, ...], ...], info: Info
) -> EpisodeTable:
    sensible = (kept["length"] >= 1) & (kept["length"] <= MAX_LENGTH)
    length = np.where(sensible, kept["length"], 0).astype(np.int64)
    start = np.cumsum(length) - length
    data_paths, data_file = _files(kept, "data/", info.data_file)
    videos = {key: _videos(kept, key, info) for key in info.video_keys}
    times = {
        side: {key: kept[f"videos/{key}/{side}_timestamp"].astype(float) for key in videos}
        for side in ("from", "to")
    }
    return EpisodeTable(
        episode_index=kept["episode_index"].astype(np.int64),
        length=length,
        dataset_from_index=start,
        dataset_to_index=start + length,
        data_paths=data_paths,
        data_file=data_file,
        video_paths={key: paths for key, (paths, _) in videos.items()},
        video_file={key: file for key, (_, file) in videos.items()},
        from_timestamp=times["from"],
        to_timestamp=times["to"],
        tasks=tasks,
    )


def _pointers(info: Info) -> list[str]:
    """Name the columns that say where rows and frames lie."""
    names = ["data/chunk_index", "data/file_index"]
    for key in info.video_keys:
        parts = ("chunk_index", "file_index", "from_timestamp", "to_timestamp")
        names += [f"videos/{key}/{part}" for part in parts]
    return names


def _join(parts: Sequence[EpisodeFile], name: str) -> Numbers:
    """Put a column of all files together; NaN where a file lacks it."""
    if not parts:
        return np.zeros(0, np.int64)
    gaps = (np.full(len(part), np.nan) for part in parts)
    values = [part.numbers.get(name, gap) for part, gap in zip(parts, gaps, strict=True)]
    return np.concatenate(values)


def _warn_of_places(scan: EpisodeScan) -> None:
    """Warn where the columns of places contradict the lengths, which are counted instead."""
    table = scan.table
    for said, counted, side in (
        (scan.said_from, table.dataset_from_index, "from"),
        (scan.said_to, table.dataset_to_index, "to"),
    ):
        wrong = np.flatnonzero((said != counted) & ~np.isnan(said))
        if len(wrong):
            name = f"dataset_{side}_index"
            logger.warning(
                "%s: episode %d: %s is %.0f, the lengths before it sum to %d; "
                "counting by length (%d episodes differ)",
                *(FOLDER, table.episode_index[wrong[0]], name, said[wrong[0]]),
                *(counted[wrong[0]], len(wrong)),
            )


def _videos(
    table: Mapping[str, Numbers], key: str, info: Info
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    prefix = f"videos/{key}/"
    paths, file = _files(table, prefix, lambda c, f: info.video_file(key, c, f))
    known = np.isfinite(table[f"{prefix}from_timestamp"])
    return paths, np.where(known, file, -1)


def _files(
    table: Mapping[str, Numbers], prefix: str, path_of: Callable[[int, int], str]
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Return the files pointed to, and for each episode the position of its own."""
    pointer = np.stack([table[f"{prefix}chunk_index"], table[f"{prefix}file_index"]], 1)
    with np.errstate(invalid="ignore"):
        known = ((pointer >= 0) & (pointer <= _MAX_NUMBER) & (pointer % 1 == 0)).all(1)
    pairs, inverse = np.unique(pointer[known].astype(np.int64), axis=0, return_inverse=True)
    file = np.full(len(pointer), -1, np.int64)
    file[known] = inverse.reshape(-1)
    return tuple(path_of(int(chunk), int(number)) for chunk, number in pairs), file


def _absence(source: Source) -> StreamError:
    """Say why there is no episode table."""
    if "meta/episodes.jsonl" in source.list_files():
        return DatasetError(
            "info.json says v3, but the episodes are listed in the file of v2",
            path="meta/episodes.jsonl",
            hint=CONVERT_HINT,
        )
    return MissingFileError(
        f"there is no episode table in {source.identity.data_root}",
        path=f"{FOLDER}chunk-000/file-000.parquet",
    )
