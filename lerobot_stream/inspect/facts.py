"""What the metadata of a dataset says, as far as each of its files can be read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from numpy import float64
from numpy.typing import NDArray

from lerobot_stream.dataset.episode_faults import FOLDER
from lerobot_stream.dataset.episodes import EpisodeScan, EpisodeTable, scan_episodes
from lerobot_stream.dataset.info import Info, fetch_info, parse_info
from lerobot_stream.dataset.stats import PATH as STATS_PATH
from lerobot_stream.dataset.stats import read_stats
from lerobot_stream.dataset.tasks import PATH as TASKS_PATH
from lerobot_stream.dataset.tasks import read_tasks
from lerobot_stream.dataset.version import INFO_PATH
from lerobot_stream.errors import DatasetError, FormatError
from lerobot_stream.inspect.finding import Finding, file_fault
from lerobot_stream.inspect.kinds import METADATA_FILE
from lerobot_stream.source.base import FileInfo, Source
from lerobot_stream.span import Span

CARD_PATH = "README.md"
_CARD_BYTES = 1 << 20
_CARD_BLOCK = re.compile(r"```json\s*\n(.*?)```", re.DOTALL)

Stats = Mapping[str, Mapping[str, NDArray[float64]]]


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """The metadata of a dataset; what could not be read is empty, with a finding."""

    files: Mapping[str, FileInfo]
    """Every file of the dataset, by path."""
    info: Info
    """What info.json says."""
    scan: EpisodeScan
    """The episode table."""
    tasks: Mapping[int, str] | None
    """Task texts by ``task_index``; None where the file cannot be read."""
    stats: Stats | None
    """Statistics by feature and name; None where the file cannot be read."""
    card: Mapping[str, object]
    """What the dataset card says that info.json says; empty without a card."""
    faults: tuple[Finding, ...]
    """Files that cannot be read, but for those of the episode table."""

    @property
    def table(self) -> EpisodeTable:
        """The episodes that are listed in files that can be read."""
        return self.scan.table


def read_facts(source: Source) -> Facts:
    """Read the metadata of a dataset, a fault of one file hiding no other.

    Args:
        source: Where the dataset is.

    Raises:
        StreamError: info.json does not say how to read the rest, or the source fails.
    """
    info = read_info(source)
    faults = []
    tasks, stats = None, None
    try:
        tasks = read_tasks(source)
    except (FormatError, DatasetError) as error:
        faults.append(file_fault(METADATA_FILE, error, TASKS_PATH))
    try:
        stats = read_stats(source)
    except FormatError as error:
        faults.append(file_fault(METADATA_FILE, error, STATS_PATH))
    return Facts(
        files=source.list_files(),
        info=info,
        scan=scan_episodes(source, info),
        tasks=tasks,
        stats=stats,
        card=_read_card(source),
        faults=tuple(faults),
    )


def read_info(source: Source) -> Info:
    """Read info.json, and say so where only the version it names is wrong.

    Raises:
        StreamError: It cannot be read, or is of another version.
    """
    data = fetch_info(source)
    try:
        return parse_info(data)
    except DatasetError as error:
        paths = source.list_files()
        is_v3 = any(path.startswith(FOLDER) and path.endswith(".parquet") for path in paths)
        if error.where == "codebase_version" and is_v3:
            error.hint = (
                f"the episode table is that of v3: if only the label is wrong, correct "
                f"codebase_version in {INFO_PATH}; otherwise {error.hint}"
            )
        raise


def _read_card(source: Source) -> Mapping[str, object]:
    """The copy of info.json that LeRobot writes into the dataset card."""
    listed = source.list_files().get(CARD_PATH)
    if listed is None:
        return {}
    data = source.read(CARD_PATH, Span(0, min(listed.size, _CARD_BYTES)))
    for block in _CARD_BLOCK.findall(data.decode("utf-8", "replace")):
        try:
            said = json.loads(block)
        except (ValueError, RecursionError):
            continue
        if isinstance(said, dict) and "total_episodes" in said:
            return said
    return {}
