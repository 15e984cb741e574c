"""Whether each episode's rows can lie in the file that the metadata names, by footers alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.dataset.episodes import EpisodeTable
from lerobot_stream.dataset.holders import describe_holders
from lerobot_stream.dataset.info import Info
from lerobot_stream.dataset.metadata import read_row_count
from lerobot_stream.dataset.presence import check_presence
from lerobot_stream.dataset.rows import RowReader
from lerobot_stream.errors import StreamError
from lerobot_stream.inspect.finding import Finding, file_fault
from lerobot_stream.source.base import Source

_THREADS = 8


@dataclass(frozen=True, slots=True, eq=False)
class RowFiles:
    """What the footers of all data files say."""

    num_rows: int | None
    """Rows of all files; None where one could not be read."""
    episode_bytes: NDArray[np.int64]
    """``(E,)`` Bytes that reading each episode's rows takes; -1 where unknown."""
    findings: tuple[Finding, ...]
    """Torn files, and episodes whose rows are not where the metadata says."""


def read_row_files(source: Source, info: Info, table: EpisodeTable) -> RowFiles:
    """Read the footer of every data file that the metadata names.

    Args:
        source: Where the files are.
        info: What info.json says.
        table: The dataset's episodes.

    Returns:
        What they say; a fault of one file is a finding and hides no other.
    """
    reader = RowReader(source, info)
    episode_bytes = np.full(len(table), -1, np.int64)

    def measure(file: int) -> Finding | None:
        path, numbers = table.data_paths[file], np.flatnonzero(table.data_file == file)
        try:
            for number in numbers.tolist():
                episode = int(table.episode_index[number])
                episode_bytes[number] = reader.row_group_bytes(path, episode)
        except StreamError as error:
            return file_fault(error, path, holds=describe_holders(table, path))
        return None

    with ThreadPoolExecutor(_THREADS) as threads:
        torn = [fault for fault in threads.map(measure, range(len(table.data_paths))) if fault]
    readable = np.flatnonzero(episode_bytes >= 0)
    misplaced = [
        Finding(
            "error",
            problem.message,
            problem.path,
            episode=problem.episode,
            hint="correct data/chunk_index and data/file_index in meta/episodes"
            if problem.found_in
            else "exclude the episode",
        )
        for problem in check_presence(reader, table, readable)
    ]
    unnamed = [
        Finding("error", "the metadata names no data file", "meta/episodes", episode=episode)
        for episode in table.episode_index[table.data_file < 0].tolist()
    ]
    return RowFiles(
        num_rows=None if torn else read_row_count(source, table),
        episode_bytes=episode_bytes,
        findings=(*torn, *misplaced, *unnamed),
    )
