"""Whether the episode table is whole and agrees with info.json and with itself."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.counted import counted
from lerobot_stream.dataset.episode_faults import FOLDER, FaultKind
from lerobot_stream.dataset.episodes import EpisodeScan
from lerobot_stream.dataset.holders import format_numbers
from lerobot_stream.dataset.version import INFO_PATH
from lerobot_stream.inspect.facts import Facts
from lerobot_stream.inspect.finding import Finding, Scope
from lerobot_stream.inspect.kinds import (
    COLUMN_ORDER,
    COLUMN_TWICE,
    COUNTS,
    DATASET_INDEX,
    EPISODE_LENGTH,
    EPISODE_MISSING,
    EPISODE_NEGATIVE,
    EPISODE_TWICE,
    EPISODES_SHORT,
    NO_EPISODES,
    SPLITS,
    TABLE_ABSENT,
    TABLE_COLUMN,
    TABLE_FILE,
    TABLE_GAP,
    Kind,
)

_KINDS: Mapping[FaultKind, Kind] = {
    "absent": TABLE_ABSENT,
    "file": TABLE_FILE,
    "column": TABLE_COLUMN,
    "duplicate": EPISODE_TWICE,
    "negative": EPISODE_NEGATIVE,
    "missing": EPISODE_MISSING,
    "length": EPISODE_LENGTH,
}
_TABLE_NAME = re.compile(r"meta/episodes/chunk-(\d+)/file-(\d+)\.parquet")
_SPLIT = re.compile(r"(\d+):(\d+)")


def check_episode_table(facts: Facts) -> Iterator[Finding]:
    """Check everything about the table that needs no other file than info.json."""
    yield from _faults(facts.scan)
    yield from _counts(facts)
    yield from _columns(facts.scan)
    yield from _numbering(list(facts.scan.columns), facts.files)
    yield from _places(facts.scan)
    yield from _splits(facts)


def _faults(scan: EpisodeScan) -> Iterator[Finding]:
    for fault in scan.faults:
        error, episodes = fault.error, fault.episodes
        message = ": ".join(part for part in (error.where, error.message) if part)
        if len(episodes) > 1:
            message += f" (episodes {format_numbers(sorted(episodes))})"
        scope: Scope = "file" if fault.kind in ("absent", "file") else "dataset"
        path = error.path or FOLDER
        yield Finding(_KINDS[fault.kind], message, scope, path, episodes, advice=error.hint)


def _counts(facts: Facts) -> Iterator[Finding]:
    info, table = facts.info, facts.table
    promised, listed = info.total_episodes, len(table)
    if promised != listed:
        yield Finding(
            EPISODES_SHORT if promised > listed else COUNTS,
            f"info.json promises {counted(promised, 'episode')}, the episode table has {listed}",
            path=INFO_PATH,
            expected=counted(promised, "episode"),
            found=counted(listed, "episode"),
        )
    frames = int(table.length.sum())
    if info.total_frames != frames:
        yield Finding(
            COUNTS,
            f"info.json promises {counted(info.total_frames, 'frame')}, the episodes of the table "
            f"have {frames}",
            path=INFO_PATH,
            expected=counted(info.total_frames, "frame"),
            found=counted(frames, "frame"),
        )
    if not promised and not listed:
        yield Finding(NO_EPISODES, "there is nothing to train on yet", path=INFO_PATH)


def _columns(scan: EpisodeScan) -> Iterator[Finding]:
    for path, columns in scan.columns.items():
        twice = sorted(name for name, count in Counter(columns).items() if count > 1)
        if twice:
            named = ", ".join(twice[:3]) + (f" and {len(twice) - 3} more" if twice[3:] else "")
            message = f"{named} {'is' if len(twice) == 1 else 'are'} there twice, with equal values"
            yield Finding(COLUMN_TWICE, message, "file", path)
    first_path, first = next(iter(scan.columns.items()), ("", ()))
    differ = [path for path, columns in scan.columns.items() if columns != first]
    if differ:
        message = f"has other columns, or another order of them, than {first_path}; joined by name"
        for path in differ:
            yield Finding(COLUMN_ORDER, message, "file", path)


def _numbering(readable: list[str], files: Mapping[str, object]) -> Iterator[Finding]:
    """Tell of file numbers that are left out, chunk by chunk."""
    listed = {path for path in files if path.startswith(FOLDER)} | set(readable)
    numbers: dict[int, set[int]] = {}
    for match in filter(None, map(_TABLE_NAME.fullmatch, listed)):
        numbers.setdefault(int(match[1]), set()).add(int(match[2]))
    for chunk, found in sorted(numbers.items()):
        gone = sorted(set(range(max(found))) - found)
        if gone:
            yield Finding(
                TABLE_GAP,
                f"file {format_numbers(gone)} is not there, though {max(found)} is",
                "file",
                f"{FOLDER}chunk-{chunk:03d}",
                expected=counted(max(found) + 1, "file"),
                found=counted(len(found), "file"),
            )
    chunks = sorted(set(range(max(numbers, default=0))) - set(numbers))
    if chunks:
        message = f"folder chunk {format_numbers(chunks)} is not there, though {max(numbers)} is"
        yield Finding(TABLE_GAP, message, "file", FOLDER)


def _places(scan: EpisodeScan) -> Iterator[Finding]:
    """Compare where each episode is said to lie with its length and with its neighbour."""
    table, said_from, said_to = scan.table, scan.said_from, scan.said_to
    if not len(table):
        return
    wanted_from = np.append(0, said_to[:-1])
    follows = np.append(table.episode_index[0] == 0, np.diff(table.episode_index) == 1)
    wanted_from = np.where(follows & np.isfinite(wanted_from), wanted_from, said_from)
    wanted_to = said_from + table.length
    for name, said, wanted in (
        ("dataset_from_index", said_from, wanted_from),
        ("dataset_to_index", said_to, wanted_to),
    ):
        for number in _differing(said, wanted):
            expected, found = f"{wanted[number]:.0f}", f"{said[number]:.0f}"
            yield Finding(
                DATASET_INDEX,
                f"{name} is {found}, wanted {expected}",
                "episode",
                FOLDER,
                (int(table.episode_index[number]),),
                expected=expected,
                found=found,
            )


def _differing(said: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.int64]:
    known = np.isfinite(said) & np.isfinite(wanted)
    return np.flatnonzero(known & (said != wanted)).astype(np.int64)


def _splits(facts: Facts) -> Iterator[Finding]:
    splits = facts.info.raw.get("splits")
    if not isinstance(splits, dict):
        return
    for name, said in splits.items():
        match = _SPLIT.fullmatch(said) if isinstance(said, str) else None
        if match and int(match[2]) > len(facts.table):
            message = (
                f"split {name} is {said}, the dataset has {counted(len(facts.table), 'episode')}"
            )
            yield Finding(SPLITS, message, path=INFO_PATH)
