"""What the values of the rows say, summed up as they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.dataset.episodes import EpisodeTable
from lerobot_stream.dataset.groups import EPISODE
from lerobot_stream.dataset.holders import format_numbers
from lerobot_stream.dataset.info import Info
from lerobot_stream.errors import FormatError
from lerobot_stream.inspect.finding import Finding, file_fault
from lerobot_stream.inspect.kinds import ROWS_DAMAGED
from lerobot_stream.inspect.moments import Moments
from lerobot_stream.inspect.row_files import RowFiles, numbers_of, own_files
from lerobot_stream.inspect.row_scan import RowBatch, plan_groups, scan_rows
from lerobot_stream.inspect.sketches import Sketches
from lerobot_stream.source.base import Source

READ_BYTES = 32 << 20
"""Rows that are read without being asked for; of larger datasets as many, spread over them."""


@dataclass(slots=True, eq=False)
class RowValues:
    """What the rows that were read say."""

    num_rows: int
    """Rows read."""
    complete: bool
    """True where these are as many rows as the episodes have frames: all of them."""
    moments: dict[str, Moments]
    """Sums over each column of numbers."""
    frame_start: NDArray[np.int64]
    """``(E + 1,)`` Where the frames of each episode start in ``timestamp``; last, their end."""
    timestamp: NDArray[np.float64]
    """``(F,)`` Of each frame; NaN where its row was not read or has none."""
    seen: NDArray[np.bool_]
    """``(F,)`` True where the row of a frame was read."""
    whole: NDArray[np.bool_]
    """``(E,)`` True where all rows of the episode were read."""
    not_numbers: dict[str, set[int]]
    """Episodes with values that are no numbers, by column."""
    unknown_tasks: dict[int, set[int]]
    """Episodes by ``task_index``, where that has no text."""
    sketches: Sketches
    """Values of some episodes, thinned out."""
    faults: tuple[Finding, ...]
    """Row groups that cannot be decoded."""


def read_row_values(
    source: Source,
    info: Info,
    table: EpisodeTable,
    files: RowFiles,
    *,
    max_bytes: int | None,
    tasks: Mapping[int, str] | None,
    sketches: Sketches,
) -> RowValues:
    """Read columns of numbers, all of them or row groups spread over the dataset.

    Args:
        source: Where the files are.
        info: What info.json says.
        table: The dataset's episodes.
        files: What the data files hold.
        max_bytes: Most bytes of column chunks to read; None for no bound.
        tasks: Task texts by number; None where they are not known.
        sketches: Takes values of the episodes it wants.
    """
    used = np.flatnonzero(np.isin(files.groups.file, own_files(files.paths, table)))
    chosen = used[plan_groups(files.groups.number_size[used], max_bytes)]
    gathering = _Gathering(table, files, chosen, sketches, tasks)
    for batch in scan_rows(source, info, files, chosen):
        if batch.fault is not None:
            gathering.note_fault(batch, batch.fault)
        else:
            gathering.take(batch)
    return gathering.values


class _Gathering:
    """Sums while batches come in."""

    def __init__(
        self,
        table: EpisodeTable,
        files: RowFiles,
        chosen: NDArray[np.int64],
        sketches: Sketches,
        tasks: Mapping[int, str] | None,
    ) -> None:
        self._table = table
        self._files = files
        self._tasks = None if tasks is None else np.array(sorted(tasks), np.int64)
        self._expected = int(files.groups.rows[chosen].sum())
        # A length may be absurd: no more frames are kept than there are rows.
        number = numbers_of(table, files.held_episode)
        known = number >= 0
        held = np.zeros(len(table), np.int64)
        np.add.at(held, number[known], files.held_rows[known])
        start = np.append(0, np.cumsum(np.minimum(table.length, held)))
        is_read = np.zeros(len(files.groups.rows), bool)
        is_read[chosen] = True
        whole = np.ones(len(table), bool)
        whole[number[known & ~is_read[files.held_group]]] = False
        self.values = RowValues(
            num_rows=0,
            complete=self._expected == int(table.length.sum()),
            moments={},
            frame_start=start,
            timestamp=np.full(int(start[-1]), np.nan),
            seen=np.zeros(int(start[-1]), bool),
            whole=whole,
            not_numbers={},
            unknown_tasks={},
            sketches=sketches,
            faults=(),
        )

    def note_fault(self, batch: RowBatch, error: FormatError) -> None:
        """Note row groups that cannot be decoded, and whose rows are lost with them."""
        inside = np.isin(self._files.held_group, batch.groups)
        lost = np.unique(self._files.held_episode[inside]).tolist()
        plural = "s" if len(lost) > 1 else ""
        holds = f"they hold rows of episode{plural} {format_numbers(lost)}"
        fault = file_fault(ROWS_DAMAGED, error, batch.path, episodes=lost, holds=holds)
        self.values.faults += (fault,)
        self.values.complete = False
        number = numbers_of(self._table, np.array(lost, np.int64))
        self.values.whole[number[number >= 0]] = False

    def take(self, batch: RowBatch) -> None:
        """Take in the rows of a batch."""
        values = self.values
        episode = batch.places[EPISODE].astype(np.int64)
        number = numbers_of(self._table, episode)
        frame = batch.places["frame_index"]
        values.num_rows += len(episode)
        for key, rows in batch.columns.items():
            if key not in values.moments:
                size = rows.shape[1]
                values.moments[key] = Moments.of(size, expected_rows=self._expected)
            values.moments[key].add(rows)
            odd = ~np.isfinite(rows).all(axis=1)
            if odd.any():
                found = values.not_numbers.setdefault(key, set())
                found |= set(np.unique(episode[odd]).tolist())
        self._note_tasks(batch, episode)
        start = values.frame_start
        held = np.append(np.diff(start), 0)[number]
        fits = (frame >= 0) & (frame < held) & (frame % 1 == 0)
        place = start[number[fits]] + frame[fits].astype(np.int64)
        values.seen[place] = True
        if "timestamp" in batch.columns:
            values.timestamp[place] = batch.columns["timestamp"][fits, 0]
        for key in values.sketches.keys:
            if key in batch.columns:
                whole_frame = frame[fits].astype(np.int64)
                values.sketches.take(key, number[fits], whole_frame, batch.columns[key][fits])

    def _note_tasks(self, batch: RowBatch, episode: NDArray[np.int64]) -> None:
        if self._tasks is None or "task_index" not in batch.columns:
            return
        task = batch.columns["task_index"][:, 0]
        strange = ~np.isin(task, self._tasks)
        for number in np.unique(task[strange]).tolist():
            found = self.values.unknown_tasks.setdefault(int(number), set())
            found |= set(np.unique(episode[task == number]).tolist())
