"""Whether the files that the metadata names are there, by the listing alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.dataset.episode_faults import FOLDER
from lerobot_stream.dataset.episodes import EpisodeTable
from lerobot_stream.dataset.holders import Holders
from lerobot_stream.inspect.facts import Facts
from lerobot_stream.inspect.finding import Finding
from lerobot_stream.inspect.kinds import (
    FILE_DAMAGED,
    FILE_MISSING,
    FILE_UNUSED,
    LAYOUT_MIXED,
    POINTER_NULL,
)

_PAYLOAD = (".parquet", ".mp4")
_V2_FILES = ("meta/episodes.jsonl", "meta/tasks.jsonl", "meta/episodes_stats.jsonl")


def check_files(facts: Facts) -> Iterator[Finding]:
    """Check pointers and listing against each other."""
    yield from check_pointers(facts.table)
    unused = _unused_files(facts)
    alike = {tail: path for path in unused for tail in _tails(path)}
    holders = Holders(facts.table)
    for path in absent_files(facts):
        yield _absent(facts, path, holders, alike)
    for path in unused:
        yield Finding(FILE_UNUSED, "no episode points to it", "file", path)
    left = [path for path in _V2_FILES if path in facts.files]
    if left and facts.scan.columns:
        message = f"{', '.join(left)} beside {FOLDER}, which is read"
        yield Finding(LAYOUT_MIXED, message, "file", left[0])


def named_files(table: EpisodeTable) -> set[str]:
    """The data and video files that episodes point to."""
    pointed = [(table.data_paths, table.data_file)]
    pointed += [(table.video_paths[key], table.video_file[key]) for key in table.video_paths]
    return {
        paths[number]
        for paths, file in pointed
        for number in np.unique(file).tolist()
        if number >= 0
    }


def absent_files(facts: Facts) -> list[str]:
    """The files among them that are not there or empty, sorted."""
    return sorted(
        path
        for path in named_files(facts.table)
        if path not in facts.files or not facts.files[path].size
    )


def check_pointers(table: EpisodeTable) -> Iterator[Finding]:
    """Find episodes whose rows or frames the metadata places nowhere."""
    pointers: list[tuple[str | None, NDArray[np.int64]]] = [(None, table.data_file)]
    pointers += table.video_file.items()
    for key, file in pointers:
        what = "a video file" if key else "the data file"
        columns = "chunk_index, file_index" + (", from_timestamp" if key else "")
        for number in np.flatnonzero(file < 0).tolist():
            yield Finding(
                POINTER_NULL,
                f"one of {columns} of {what} is null",
                "episode",
                FOLDER,
                (int(table.episode_index[number]),),
                key,
                expected=f"the place of {what}",
                found="null",
            )


def _absent(facts: Facts, path: str, holders: Holders, alike: Mapping[str, str]) -> Finding:
    holds, episodes = holders.describe(path), tuple(holders.episodes(path))
    if path in facts.files:
        return Finding(FILE_DAMAGED, f"is empty ({holds})", "file", path, episodes, found="0 bytes")
    like = next((alike[tail] for tail in _tails(path) if tail in alike), "")
    elsewhere = f"; there is {like}" if like else ""
    advice = "move it to where data_path or video_path say" if like else None
    message = f"there is no such file{elsewhere} ({holds})"
    return Finding(FILE_MISSING, message, "file", path, episodes, found=like, advice=advice)


def _tails(path: str) -> list[str]:
    """The path without its first folder, without its first two, and so on; the longest first."""
    parts = path.split("/")
    return ["/".join(parts[start:]) for start in range(1, len(parts) - 1)]


def _unused_files(facts: Facts) -> list[str]:
    named = named_files(facts.table)
    payload = (path for path in facts.files if path.endswith(_PAYLOAD))
    return [path for path in payload if not path.startswith("meta/") and path not in named]
