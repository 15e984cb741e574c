"""Whether each episode's rows are in its data file, and what finding them costs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.counted import counted
from lerobot_stream.dataset.episodes import EpisodeTable
from lerobot_stream.dataset.holders import format_numbers
from lerobot_stream.inspect.finding import Finding
from lerobot_stream.inspect.kinds import (
    COUNTS,
    EPISODES_UNLISTED,
    GROUPS_LARGE,
    GROUPS_SHARED,
    GROUPS_SILENT,
    ROWS_ELSEWHERE,
    ROWS_EXTRA,
    ROWS_MISSING,
)
from lerobot_stream.inspect.row_files import RowFiles, numbers_of, own_files

_DEAR_FACTOR, _DEAR_BYTES = 4, 8 << 20
"""Reading an episode is dear if it fetches so many times its rows, and more than so much."""


def check_row_places(files: RowFiles, table: EpisodeTable) -> Iterator[Finding]:
    """Compare the rows that were counted with what the episode table promises.

    Args:
        files: What the data files hold.
        table: The dataset's episodes.
    """
    number, pointed = numbers_of(table, files.held_episode), own_files(files.paths, table)
    known = number >= 0
    is_here = known & (files.held_file == pointed[number])
    here = np.zeros(len(table), np.int64)
    np.add.at(here, number[is_here], files.held_rows[is_here])
    astray = np.flatnonzero(known & ~is_here)
    astray = astray[np.argsort(number[astray], kind="stable")]
    wrong = np.flatnonzero((pointed[:-1] >= 0) & (here != table.length))
    start, stop = (np.searchsorted(number[astray], wrong, side) for side in ("left", "right"))
    for row, first, last in zip(wrong.tolist(), start.tolist(), stop.tolist(), strict=True):
        elsewhere = np.unique(files.held_file[astray[first:last]])
        others = [files.paths[i] for i in elsewhere.tolist()]
        yield _misplaced(files, table, row, int(here[row]), others)
    yield from _unlisted(files, known)
    total = int(files.held_rows[known].sum())
    frames = int(table.length.sum())
    if (pointed[:-1] >= 0).all() and total != frames:
        yield Finding(
            COUNTS,
            f"the data files have {counted(total, 'row')}, the episodes of the table "
            f"{counted(frames, 'frame')}",
            expected=counted(frames, "row"),
            found=counted(total, "row"),
        )


def _misplaced(
    files: RowFiles, table: EpisodeTable, row: int, here: int, others: list[str]
) -> Finding:
    length = int(table.length[row])
    path = table.data_paths[int(table.data_file[row])]
    kind = ROWS_MISSING
    if others and not here:
        kind = ROWS_ELSEWHERE
        message = f"the metadata says its rows are here, they are in {' and '.join(others)}"
    elif here > length:
        kind = ROWS_EXTRA
        message = f"the episode table says {counted(length, 'frame')}, found {counted(here, 'row')}"
    else:
        message = f"{length - here} of {counted(length, 'row')} missing"
        if others:
            message = f"{here} of {counted(length, 'row')} here, others in {' and '.join(others)}"
        elif files.faults:
            message += f"; {counted(len(files.faults), 'other data file')} cannot be read"
    return Finding(
        kind,
        message,
        "episode",
        path,
        (int(table.episode_index[row]),),
        expected=f"{counted(length, 'row')} in {path}",
        found=counted(here, "row") + (f", others in {' and '.join(others)}" if others else ""),
    )


def _unlisted(files: RowFiles, known: NDArray[np.bool_]) -> Iterator[Finding]:
    """Rows of episodes that the table lacks: what could be recovered."""
    for file in np.unique(files.held_file[~known]).tolist():
        strange = ~known & (files.held_file == file)
        episodes = np.unique(files.held_episode[strange]).tolist()
        rows = int(files.held_rows[strange].sum())
        plural = "s" if len(episodes) > 1 else ""
        message = f"holds {counted(rows, 'row')} of episode{plural} {format_numbers(episodes)}"
        path = files.paths[file]
        yield Finding(EPISODES_UNLISTED, message, "file", path, tuple(episodes), found=f"{rows}")


def check_row_groups(files: RowFiles) -> Iterator[Finding]:
    """Report row groups that make an episode's rows hard to find or dear to fetch."""
    groups = files.groups
    held = np.bincount(files.held_group, minlength=len(groups.rows))
    own = files.held_rows / np.maximum(groups.rows[files.held_group], 1)
    own_bytes = own * groups.size[files.held_group]
    for file, path in enumerate(files.paths):
        inside, entries = groups.file == file, files.held_file == file
        silent = int((groups.silent & inside).sum())
        if silent:
            message = f"{silent} of {counted(inside.sum(), 'row group')}"
            yield Finding(GROUPS_SILENT, message, "file", path, found=str(silent))
        shared = int((held[inside] > 1).sum())
        if not shared:
            continue
        episodes, inverse = np.unique(files.held_episode[entries], return_inverse=True)
        fetched = np.bincount(inverse, groups.size[files.held_group[entries]])
        needed = np.bincount(inverse, own_bytes[entries])
        dear = (fetched > _DEAR_FACTOR * needed) & (fetched > _DEAR_BYTES)
        message = (
            f"{shared} of {counted(inside.sum(), 'row group')}; reading an episode fetches "
            f"{fetched.mean() / 1e3:.4g} kB, {fetched.sum() / max(needed.sum(), 1):.3g} times "
            "its rows"
        )
        kind = GROUPS_LARGE if dear.any() else GROUPS_SHARED
        touched = tuple(episodes[dear].tolist())
        yield Finding(kind, message, "file", path, touched, found=f"{fetched.max():.0f} bytes")
