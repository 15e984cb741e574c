"""Whether from_timestamp and to_timestamp make sense, by the episode table alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lerobot_stream.counted import counted
from lerobot_stream.dataset.episodes import EpisodeTable
from lerobot_stream.inspect.finding import Finding
from lerobot_stream.inspect.kinds import SPAN_LENGTH, SPAN_OVERLAP, SPAN_SHORT

_ONE_SHORT = 0.25
"""Frames that the span of an episode may be off one frame less than its length."""
_OFF = 0.5
"""Frames from which on a span is of another length."""


def check_span_lengths(table: EpisodeTable, fps: float) -> Iterator[Finding]:
    """Compare the seconds that the table gives an episode with its frames."""
    for key in table.video_file:
        seconds = table.to_timestamp[key] - table.from_timestamp[key]
        frames = seconds * fps
        off = frames - table.length
        known = np.isfinite(off) & (table.video_file[key] >= 0) & (table.length > 0)
        short = known & (np.abs(off + 1) <= _ONE_SHORT)
        wrong = known & ~short & (np.abs(off) > _OFF)
        for number in np.flatnonzero(short | wrong).tolist():
            path = table.video_paths[key][int(table.video_file[key][number])]
            length = int(table.length[number])
            said = counted(f"{frames[number]:.6g}", "frame")
            yield Finding(
                SPAN_SHORT if short[number] else SPAN_LENGTH,
                f"from_timestamp to to_timestamp are {said}, its length is {length} "
                f"({off[number]:+.3g})",
                "episode",
                path,
                (int(table.episode_index[number]),),
                key,
                expected=f"{length / fps:.6g} s",
                found=f"{seconds[number]:.6g} s",
            )


def check_overlaps(table: EpisodeTable, fps: float) -> Iterator[Finding]:
    """Find episodes of one file that start before the one before them ends.

    Episodes with equal start and length may share their frames.
    """
    for key, file in table.video_file.items():
        start = table.from_timestamp[key]
        order = np.lexsort((start, file))
        order = order[(file[order] >= 0) & (table.length[order] > 0)]
        this, after = order[:-1], order[1:]
        stop = start[this] + table.length[this] / fps
        same = (start[this] == start[after]) & (table.length[this] == table.length[after])
        overlap = (file[this] == file[after]) & ~same & (start[after] < stop - _OFF / fps)
        for pair in np.flatnonzero(overlap).tolist():
            number, other = int(this[pair]), int(after[pair])
            frames = counted(f"{(stop[pair] - start[other]) * fps:.3g}", "frame")
            yield Finding(
                SPAN_OVERLAP,
                f"it ends {frames} behind the start of episode {table.episode_index[other]}",
                "episode",
                table.video_paths[key][int(file[number])],
                (int(table.episode_index[number]),),
                key,
                expected=f"an end at or before {start[other]:.6g} s",
                found=f"{stop[pair]:.6g} s",
            )
