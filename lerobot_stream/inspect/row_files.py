"""How many rows of which episode each data file holds, and what reading them costs."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.dataset.columns import column_dtype, number_array, placed
from lerobot_stream.dataset.episodes import EpisodeTable
from lerobot_stream.dataset.footers import FooterCache
from lerobot_stream.dataset.groups import EPISODE
from lerobot_stream.dataset.holders import Holders
from lerobot_stream.dataset.info import Feature, Info
from lerobot_stream.dataset.parquet import Footer, read_columns
from lerobot_stream.errors import FormatError, MissingFileError
from lerobot_stream.inspect.finding import Finding, file_fault
from lerobot_stream.inspect.kinds import FILE_DAMAGED, FILE_MISSING, FILE_UNUSED
from lerobot_stream.source.base import Source
from lerobot_stream.source.ranges import SourceFile

_THREADS = 16
ROW_PLACES = (EPISODE, "index", "frame_index")
"""Columns without which rows cannot be read, whether info.json names them or not."""


@dataclass(frozen=True, slots=True, eq=False)
class RowGroups:
    """The row groups of all data files, a column per array, file after file."""

    file: NDArray[np.int64]
    """``(g,)`` Position of the file in ``RowFiles.paths``."""
    number: NDArray[np.int64]
    """``(g,)`` Number of the row group in its file."""
    rows: NDArray[np.int64]
    """``(g,)`` Rows."""
    size: NDArray[np.int64]
    """``(g,)`` Bytes of all features."""
    number_size: NDArray[np.int64]
    """``(g,)`` Bytes of the columns of numbers alone."""
    silent: NDArray[np.bool_]
    """``(g,)`` True where it has no statistics of ``episode_index``."""


@dataclass(frozen=True, slots=True, eq=False)
class RowFiles:
    """What the data files hold, by footers and, in shared row groups, ``episode_index``."""

    paths: tuple[str, ...]
    """The data files that can be read, sorted."""
    groups: RowGroups
    """Their row groups."""
    held_group: NDArray[np.int64]
    """``(k,)`` Position in ``groups``: one entry for each episode of each row group."""
    held_episode: NDArray[np.int64]
    """``(k,)`` ``episode_index``."""
    held_rows: NDArray[np.int64]
    """``(k,)`` Rows of it."""
    episode_bytes: NDArray[np.int64]
    """``(E,)`` Bytes that reading each episode's rows takes; -1 where unknown."""
    faults: tuple[Finding, ...]
    """Files that cannot be read; information where no episode points to them."""
    footers: FooterCache
    """Footers of these files."""

    @property
    def held_file(self) -> NDArray[np.int64]:
        """``(k,)`` Position of the file in ``paths``."""
        return self.groups.file[self.held_group]


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """One file's share of all this."""

    rows: list[int]
    size: list[int]
    number_size: list[int]
    silent: list[bool]
    held: list[tuple[NDArray[np.int64], NDArray[np.int64]]]
    """Episodes, and rows of each, of each row group."""


def read_row_files(
    source: Source, info: Info, table: EpisodeTable, *, besides: Sequence[str] = ()
) -> RowFiles:
    """Read the footer of every data file.

    Args:
        source: Where the files are.
        info: What info.json says.
        table: The dataset's episodes.
        besides: Files known to be missing or empty, which are passed over.

    Returns:
        What they hold; a fault of one file is a finding and hides no other.
    """
    listed = [path for path in source.list_files() if info.is_data_file(path)]
    wanted = sorted({*listed, *table.data_paths} - set(besides))
    footers, holders, pointed = FooterCache(source), Holders(table), set(table.data_paths)

    def read(path: str) -> _Part | FormatError | MissingFileError:
        try:
            return _read_file(source, footers, path, info)
        except (FormatError, MissingFileError) as error:
            return error

    paths, parts, faults = [], [], []
    with ThreadPoolExecutor(_THREADS) as threads:
        for path, part in zip(wanted, threads.map(read, wanted), strict=True):
            if isinstance(part, _Part):
                paths.append(path)
                parts.append(part)
                continue
            kind = FILE_DAMAGED if isinstance(part, FormatError) else FILE_MISSING
            if path not in pointed and len(table) >= info.total_episodes:
                kind = FILE_UNUSED  # else it may hold what the table lacks
            lost, holds = holders.episodes(path), holders.describe(path)
            faults.append(file_fault(kind, part, path, episodes=lost, holds=holds))
    return _join(tuple(paths), parts, table, tuple(faults), footers)


def number_columns(info: Info) -> list[str]:
    """The features that are columns of numbers."""
    return [key for key in info.column_keys if is_number(info.features[key])]


def is_number(feature: Feature) -> bool:
    """True for a column of numbers."""
    return column_dtype(feature.dtype).kind in "biuf"


def _read_file(source: Source, footers: FooterCache, path: str, info: Info) -> _Part:
    known = footers.get(path)
    footer, low, high = known.footer, known.groups.low, known.groups.high
    needed = dict.fromkeys([*ROW_PLACES, *info.column_keys, *info.image_keys])
    missing = [name for name in needed if name not in footer.leaves]
    if missing:
        raise FormatError(f"has no column {', '.join(missing)}", path=path)
    metadata = [footer.metadata.row_group(group) for group in range(footer.num_groups)]
    rows = [group.num_rows for group in metadata]
    numbers = _sizes(footer, [EPISODE, *number_columns(info)])
    size = _sizes(footer, [EPISODE, *info.column_keys, *info.image_keys])
    leaf = footer.leaves[EPISODE][0]
    silent = [n > 0 and not _has_range(g.column(leaf)) for n, g in zip(rows, metadata, strict=True)]
    held = [(low[g : g + 1], np.array(rows[g : g + 1])) for g in range(footer.num_groups)]
    shared = np.flatnonzero(low != high).tolist()
    for group, counted in zip(shared, _count(source, footer, shared), strict=True):
        held[group] = counted
    return _Part(rows, size, numbers, silent, held)


def _sizes(footer: Footer, columns: Sequence[str]) -> list[int]:
    """Bytes of some columns in each row group."""
    wanted = list(dict.fromkeys(columns))
    groups = range(footer.num_groups)
    return [sum(len(span) for span in footer.chunk_spans([group], wanted)) for group in groups]


def _has_range(column: object) -> bool:
    statistics = getattr(column, "statistics", None)
    return statistics is not None and bool(statistics.has_min_max)


def _count(
    source: Source, footer: Footer, groups: list[int]
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Count the rows of each episode in row groups that hold several."""
    counted = []
    with SourceFile(source, footer.path) as file:
        file.fetch(footer.chunk_spans(groups, [EPISODE]))
        for group in groups:
            table = read_columns(file, footer, [group], [EPISODE])
            with placed(footer.path, EPISODE):
                values = number_array(table.column(EPISODE)).astype(np.int64)
            episodes, rows = np.unique(values, return_counts=True)
            counted.append((episodes, rows.astype(np.int64)))
    return counted


def _join(
    paths: tuple[str, ...],
    parts: list[_Part],
    table: EpisodeTable,
    faults: tuple[Finding, ...],
    footers: FooterCache,
) -> RowFiles:
    count = [len(part.rows) for part in parts]
    file = np.repeat(np.arange(len(parts)), count).astype(np.int64)
    held = [pair for part in parts for pair in part.held]
    group = np.repeat(np.arange(len(held)), [len(pair[0]) for pair in held]).astype(np.int64)
    groups = RowGroups(
        file=file,
        number=_whole([np.arange(n) for n in count]),
        rows=_whole([part.rows for part in parts]),
        size=_whole([part.size for part in parts]),
        number_size=_whole([part.number_size for part in parts]),
        silent=_whole([part.silent for part in parts]).astype(bool),
    )
    episode, rows = _whole([pair[0] for pair in held]), _whole([pair[1] for pair in held])
    number = numbers_of(table, episode)
    pointed = own_files(paths, table)
    here = file[group] == pointed[number]
    size = np.zeros(len(table), np.int64)
    np.add.at(size, number[here], groups.size[group[here]])
    size[pointed[:-1] < 0] = -1
    return RowFiles(paths, groups, group, episode, rows, size, faults, footers)


def own_files(paths: Sequence[str], table: EpisodeTable) -> NDArray[np.int64]:
    """Positions, in ``paths``, of the files that the episodes point to.

    Returns:
        ``(E + 1,)`` -1 where the file is not among them or the pointer is null; -1 comes last
        too, for what :func:`numbers_of` does not find.
    """
    position = {path: i for i, path in enumerate(paths)}
    found = np.array([position.get(path, -1) for path in table.data_paths] + [-1], np.int64)
    pointed: NDArray[np.int64] = found[np.append(table.data_file, -1)]
    return pointed


def numbers_of(table: EpisodeTable, episode: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of the table of some episodes.

    Args:
        table: The dataset's episodes.
        episode: ``(k,)`` ``episode_index`` of each.

    Returns:
        ``(k,)`` The row; -1 where there is none.
    """
    if not len(table):
        return np.full(len(episode), -1)
    place = np.minimum(np.searchsorted(table.episode_index, episode), len(table) - 1)
    return np.where(table.episode_index[place] == episode, place, -1).astype(np.int64)


def _whole(
    parts: Sequence[Sequence[int] | Sequence[bool] | NDArray[np.int64]],
) -> NDArray[np.int64]:
    arrays = [np.asarray(part, np.int64) for part in parts]
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)
