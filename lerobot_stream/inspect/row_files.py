"""Whether each episode's rows can lie in the file that the metadata names, by footers alone."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.dataset.episodes import EpisodeTable
from lerobot_stream.dataset.groups import Groups, read_groups
from lerobot_stream.dataset.holders import describe_holders
from lerobot_stream.dataset.parquet import Footer, read_footer
from lerobot_stream.errors import StreamError
from lerobot_stream.inspect.finding import Finding, file_fault
from lerobot_stream.source.base import Source
from lerobot_stream.source.ranges import SourceFile

_THREADS = 8


@dataclass(frozen=True, slots=True, eq=False)
class RowFile:
    """What the footer of a data file says."""

    path: str
    """The file."""
    groups: Groups
    """The episodes that each row group ranges over."""
    group_bytes: NDArray[np.int64]
    """``(g,)`` Bytes of each row group, as stored."""
    num_rows: int
    """Rows in the file."""


@dataclass(frozen=True, slots=True, eq=False)
class RowFiles:
    """What the footers of all data files say."""

    files: Mapping[str, RowFile]
    """By path; torn files are not there."""
    episode_bytes: NDArray[np.int64]
    """``(E,)`` Bytes of the row groups that may hold each episode; -1 where unknown."""
    findings: tuple[Finding, ...]
    """Torn files, and episodes whose rows are not where the metadata says."""

    @property
    def num_rows(self) -> int | None:
        """Rows of all files; None where one could not be read."""
        torn = any(finding.episode is None for finding in self.findings)
        return None if torn else sum(file.num_rows for file in self.files.values())


def read_row_files(source: Source, table: EpisodeTable) -> RowFiles:
    """Read the footer of every data file that the metadata names.

    Args:
        source: Where the files are.
        table: The dataset's episodes.

    Returns:
        What they say; a fault of one file is a finding and hides no other.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        read = list(pool.map(lambda path: _read(source, path, table), table.data_paths))
    files = {file.path: file for file in read if isinstance(file, RowFile)}
    findings = [fault for fault in read if isinstance(fault, Finding)]
    episode_bytes = np.full(len(table), -1, np.int64)
    for number, (episode, pointer) in enumerate(
        zip(table.episode_index.tolist(), table.data_file.tolist(), strict=True)
    ):
        file = files.get(table.data_paths[pointer]) if pointer >= 0 else None
        if file is None:
            if pointer < 0:
                findings.append(_misplaced(episode, "no file", "", files))
            continue
        held = file.groups.holding(episode)
        episode_bytes[number] = file.group_bytes[held].sum()
        if not held:
            findings.append(_misplaced(episode, file.path, file.path, files))
    return RowFiles(files, episode_bytes, tuple(findings))


def _read(source: Source, path: str, table: EpisodeTable) -> RowFile | Finding:
    try:
        with SourceFile(source, path) as file:
            footer = read_footer(file)
            groups = read_groups(file, footer)
    except StreamError as error:
        return file_fault(error, path, holds=describe_holders(table, path))
    return RowFile(path, groups, _group_bytes(footer), footer.num_rows)


def _group_bytes(footer: Footer) -> NDArray[np.int64]:
    columns = range(footer.metadata.num_columns)
    groups = (footer.metadata.row_group(group) for group in range(footer.num_groups))
    sizes = [sum(group.column(i).total_compressed_size for i in columns) for group in groups]
    return np.array(sizes, np.int64)


def _misplaced(episode: int, named: str, path: str, files: Mapping[str, RowFile]) -> Finding:
    elsewhere = [file.path for file in files.values() if file.groups.holding(episode)]
    if elsewhere:
        found = f"the metadata says {named}, the rows are in {' or '.join(elsewhere)}"
        hint = "correct data/chunk_index and data/file_index in meta/episodes"
    else:
        found = f"the metadata says {named}, no data file has its rows"
        hint = "exclude the episode"
    return Finding("error", found, path or "meta/episodes", episode=episode, hint=hint)
