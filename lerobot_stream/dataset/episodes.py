"""The episode table: how long each episode is and where its rows and frames lie."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lerobot_stream.dataset.columns import number_array, placed
from lerobot_stream.dataset.info import Info
from lerobot_stream.dataset.parquet import read_columns, read_footer
from lerobot_stream.dataset.version import CONVERT_HINT
from lerobot_stream.errors import DatasetError, FormatError, MissingFileError
from lerobot_stream.source.base import Source
from lerobot_stream.source.ranges import SourceFile

logger = logging.getLogger(__name__)

FOLDER = "meta/episodes/"
_MAX_GAP_BYTES = 16 << 10  # between the few columns needed lie statistics, most of the bytes
_THREADS = 8
_REQUIRED = ("episode_index", "length")
_MAX_LENGTH = 1 << 40

Numbers = NDArray[np.float64 | np.int64]


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
class _Part:
    """The rows of one file."""

    path: str
    numbers: Mapping[str, Numbers]
    tasks: list[tuple[str, ...]]

    def __len__(self) -> int:
        return len(self.tasks)


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
    paths = [path for path in source.list_files() if path.startswith(FOLDER)]
    paths = sorted(path for path in paths if path.endswith(".parquet"))
    if not paths and info.total_episodes:
        _refuse_absence(source)
    with ThreadPoolExecutor(_THREADS) as pool:
        parts = list(pool.map(_read_part, repeat(source), paths, repeat(info)))
    columns = [*_REQUIRED, "dataset_from_index", "dataset_to_index", *_pointers(info)]
    joined = {name: _join(parts, name) for name in columns}
    order = np.argsort(joined["episode_index"], kind="stable")
    _check_episodes(joined["episode_index"], joined["length"], order, parts)
    table = {name: values[order] for name, values in joined.items()}
    length = table["length"].astype(np.int64)
    start = _starts(table, length)
    tasks = [texts for part in parts for texts in part.tasks]
    data_paths, data_file = _files(table, "data/", info.data_file)
    videos = {key: _videos(table, key, info) for key in info.video_keys}
    times = {
        side: {key: table[f"videos/{key}/{side}_timestamp"].astype(float) for key in videos}
        for side in ("from", "to")
    }
    return EpisodeTable(
        episode_index=table["episode_index"].astype(np.int64),
        length=length,
        dataset_from_index=start,
        dataset_to_index=start + length,
        data_paths=data_paths,
        data_file=data_file,
        video_paths={key: paths for key, (paths, _) in videos.items()},
        video_file={key: file for key, (_, file) in videos.items()},
        from_timestamp=times["from"],
        to_timestamp=times["to"],
        tasks=tuple(tasks[row] for row in order),
    )


def _pointers(info: Info) -> list[str]:
    """Name the columns that say where rows and frames lie."""
    names = ["data/chunk_index", "data/file_index"]
    for key in info.video_keys:
        parts = ("chunk_index", "file_index", "from_timestamp", "to_timestamp")
        names += [f"videos/{key}/{part}" for part in parts]
    return names


def _read_part(source: Source, path: str, info: Info) -> _Part:
    wanted = [*_REQUIRED, "dataset_from_index", "dataset_to_index", *_pointers(info)]
    with SourceFile(source, path) as file:
        footer = read_footer(file)
        wanted = [name for name in wanted if name in footer.leaves or name in _REQUIRED]
        with_tasks = [*wanted, "tasks"] if "tasks" in footer.leaves else wanted
        groups = range(footer.num_groups)
        table = read_columns(file, footer, groups, with_tasks, max_gap=_MAX_GAP_BYTES)
    numbers = {}
    for name in wanted:
        with placed(path, name):
            numbers[name] = number_array(table.column(name))
            if name in _REQUIRED:
                _check_whole(numbers[name])
    tasks: list[tuple[str, ...]] = [()] * len(table)
    if "tasks" in footer.leaves:
        with placed(path, "tasks"):
            tasks = _texts(table.column("tasks"))
    return _Part(path, numbers, tasks)


def _check_whole(values: Numbers) -> None:
    if not np.isfinite(values).all() or (values != np.floor(values)).any():
        raise FormatError("wanted a whole number in every row")


def _texts(column: pa.ChunkedArray) -> list[tuple[str, ...]]:
    """Return the texts of each row; equal rows share one tuple."""
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    texts = []
    for value in column.to_pylist():
        row: tuple[Any, ...] = (value,) if isinstance(value, str) else tuple(value or ())
        if not all(isinstance(text, str) for text in row):
            raise FormatError(f"wanted texts, found {column.type}")
        texts.append(shared.setdefault(row, row))
    return texts


def _join(parts: Sequence[_Part], name: str) -> Numbers:
    """Put a column of all files together; NaN where a file lacks it.

    Raises:
        DatasetError: No file has it, though the dataset needs it.
    """
    if not parts:
        return np.zeros(0, np.int64)
    optional = name.startswith("dataset_")
    if not optional and not any(name in part.numbers for part in parts):
        raise DatasetError(f"no file of the episode table has a column {name}", path=FOLDER)
    gaps = (np.full(len(part), np.nan) for part in parts)
    values = [part.numbers.get(name, gap) for part, gap in zip(parts, gaps, strict=True)]
    return np.concatenate(values)


def _check_episodes(
    episode: Numbers, length: Numbers, order: NDArray[np.intp], parts: Sequence[_Part]
) -> None:
    """Refuse episodes that are there twice, missing or without frames."""
    if not len(episode):
        return
    ranked = episode[order]
    owner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    steps = np.diff(ranked)
    if (steps == 0).any():
        first, second = order[np.argmax(steps == 0) :][:2]
        paths = sorted({parts[owner[row]].path for row in (first, second)})
        others = int((steps == 0).sum()) - 1
        also = f", and so are {others} others" if others else ""
        message = f"episode {int(episode[first])} is listed twice{also}"
        raise DatasetError(message, path=" and ".join(paths))
    if ranked[0] < 0:
        raise DatasetError(f"found an episode {int(ranked[0])}", path=FOLDER)
    gap = np.flatnonzero(ranked != np.arange(len(ranked)))
    if len(gap):
        message = f"wanted {int(ranked[-1]) + 1} episodes, found {len(ranked)}"
        raise DatasetError(f"{message}; episode {gap[0]} is missing", path=FOLDER)
    bad = np.flatnonzero((length < 1) | (length > _MAX_LENGTH))
    if len(bad):
        message = f"wanted at least one frame, found length {int(length[bad[0]])}"
        where = f"episode {int(episode[bad[0]])}"
        raise DatasetError(message, path=parts[owner[bad[0]]].path, where=where)


def _starts(table: Mapping[str, Numbers], length: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each episode starts in the dataset, by its own column if that makes sense."""
    start = np.cumsum(length) - length
    said = (table["dataset_from_index"], table["dataset_to_index"])
    for values, counted, side in zip(said, (start, start + length), ("from", "to"), strict=True):
        wrong = np.flatnonzero((values != counted) & ~np.isnan(values))
        if len(wrong):
            name = f"dataset_{side}_index"
            logger.warning(
                "%s: episode %d: %s is %d, the lengths before it sum to %d; "
                "counting by length (%d episodes differ)",
                *(FOLDER, table["episode_index"][wrong[0]], name, values[wrong[0]]),
                *(counted[wrong[0]], len(wrong)),
            )
    return start


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
    known = (np.isfinite(pointer) & (pointer >= 0)).all(1)
    pairs, inverse = np.unique(pointer[known].astype(np.int64), axis=0, return_inverse=True)
    file = np.full(len(pointer), -1, np.int64)
    file[known] = inverse.reshape(-1)
    return tuple(path_of(int(chunk), int(number)) for chunk, number in pairs), file


def _refuse_absence(source: Source) -> None:
    """Say why there is no episode table."""
    if "meta/episodes.jsonl" in source.list_files():
        raise DatasetError(
            "info.json says v3, but the episodes are listed in the file of v2",
            path="meta/episodes.jsonl",
            hint=CONVERT_HINT,
        )
    raise MissingFileError(
        f"there is no episode table in {source.identity.data_root}",
        path=f"{FOLDER}chunk-000/file-000.parquet",
    )
