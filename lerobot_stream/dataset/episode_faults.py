"""What keeps an episode table from being whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.dataset.episode_files import Numbers
from lerobot_stream.errors import DatasetError, StreamError

FaultKind = Literal["absent", "file", "column", "duplicate", "negative", "missing", "length"]

FOLDER = "meta/episodes/"
MAX_LENGTH = 1 << 40
"""Frames above which a length is taken for damage."""
_NAMED = 100_000
"""Missing episodes that are listed one by one."""


@dataclass(frozen=True, slots=True)
class TableFault:
    """One fault of the episode table."""

    kind: FaultKind
    """What is wrong, as a word."""
    error: StreamError
    """The same as an error to raise."""
    episodes: tuple[int, ...] = ()
    """``episode_index`` of the episodes it is about, where they are known."""


def sound_rows(
    episode: Numbers, length: Numbers, path: NDArray[np.object_]
) -> tuple[NDArray[np.int64], list[TableFault]]:
    """Choose the rows of the table that stand for an episode.

    Args:
        episode: ``(n,)`` ``episode_index`` of every row.
        length: ``(n,)`` Its frames.
        path: ``(n,)`` The file it lies in.

    Returns:
        The rows by rising ``episode_index``, the first of each episode; and what is wrong with
        them all.
    """
    order = np.argsort(episode, kind="stable").astype(np.int64)
    faults = _duplicates(episode, order, path)
    ranked = episode[order]
    order = order[np.append(np.ones(min(1, len(order)), bool), ranked[1:] != ranked[:-1])]
    negative = order[episode[order] < 0]
    if len(negative):
        found = tuple(int(e) for e in episode[negative])
        error = DatasetError(f"found an episode {found[0]}", path=FOLDER)
        faults.append(TableFault("negative", error, found))
    order = order[len(negative) :]
    faults += _gaps(episode[order])
    faults += _lengths(episode, length, order, path)
    return order, faults


def _duplicates(
    episode: Numbers, order: NDArray[np.int64], path: NDArray[np.object_]
) -> list[TableFault]:
    again = np.flatnonzero(np.diff(episode[order]) == 0)
    if not len(again):
        return []
    found = tuple(dict.fromkeys(int(e) for e in episode[order[again]]))
    pair = order[again[0]], order[again[0] + 1]
    others = len(again) - 1
    also = f", and so are {others} others" if others else ""
    message = f"episode {found[0]} is listed twice{also}"
    paths = " and ".join(sorted({str(path[row]) for row in pair}))
    return [TableFault("duplicate", DatasetError(message, path=paths), found)]


def _gaps(ranked: Numbers) -> list[TableFault]:
    if not len(ranked) or ranked[-1] == len(ranked) - 1:
        return []
    extent = min(int(ranked[-1]), len(ranked) + _NAMED)
    missing = np.setdiff1d(np.arange(extent), ranked)
    message = f"wanted {int(ranked[-1]) + 1} episodes, found {len(ranked)}"
    error = DatasetError(f"{message}; episode {missing[0]} is missing", path=FOLDER)
    return [TableFault("missing", error, tuple(int(e) for e in missing))]


def _lengths(
    episode: Numbers, length: Numbers, order: NDArray[np.int64], path: NDArray[np.object_]
) -> list[TableFault]:
    bad = order[(length[order] < 1) | (length[order] > MAX_LENGTH)]
    if not len(bad):
        return []
    found = tuple(int(e) for e in episode[bad])
    message = f"wanted at least one frame, found length {int(length[bad[0]])}"
    error = DatasetError(message, path=str(path[bad[0]]), where=f"episode {found[0]}")
    return [TableFault("length", error, found)]
