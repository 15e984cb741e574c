"""Which files hold which episodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.dataset.episodes import EpisodeTable

_WRITTEN_OUT = 60
"""Most episodes that a flag names one by one."""


def video_paths(
    table: EpisodeTable, video_keys: Sequence[str], numbers: NDArray[np.int64]
) -> list[str]:
    """List the video files that hold the chosen episodes, sorted.

    Args:
        table: The dataset's episodes.
        video_keys: The cameras.
        numbers: ``(e,)`` Rows of ``table``.
    """
    return sorted(
        {
            table.video_paths[key][file]
            for key in video_keys
            for file in np.unique(table.video_file[key][numbers]).tolist()
            if file >= 0
        }
    )


def data_paths(table: EpisodeTable, numbers: NDArray[np.int64]) -> list[str]:
    """List the data files that the metadata names for the chosen episodes, sorted."""
    files = np.unique(table.data_file[numbers]).tolist()
    return sorted(table.data_paths[file] for file in files if file >= 0)


def held_episodes(table: EpisodeTable, path: str) -> list[int]:
    """List the episodes of which a data or video file holds something, rising."""
    held = [
        table.episode_index[file == paths.index(path)]
        for _, paths, file in _columns(table)
        if path in paths
    ]
    return sorted({int(number) for numbers in held for number in numbers})


def describe_holders(table: EpisodeTable, path: str) -> str:
    """Say what a data or video file holds.

    Args:
        table: The dataset's episodes.
        path: The file.

    Returns:
        For example ``it holds observation.images.top of episodes 2, 3, 7-9``; empty where no
        episode points to it.
    """
    parts = [
        f"{key} of {_episodes(table.episode_index[file == paths.index(path)].tolist())}"
        for key, paths, file in _columns(table)
        if path in paths
    ]
    return f"it holds {' and '.join(parts)}" if parts else ""


def _columns(table: EpisodeTable) -> list[tuple[str, tuple[str, ...], NDArray[np.int64]]]:
    videos = [(key, table.video_paths[key], table.video_file[key]) for key in table.video_paths]
    return [("the rows", table.data_paths, table.data_file), *videos]


def _episodes(numbers: list[int]) -> str:
    return f"episode{'s' if len(numbers) > 1 else ''} {format_numbers(numbers)}"


def excluding(episodes: Sequence[int]) -> str:
    """Write the flag that leaves episodes out; by way of a file where they are many."""
    many = len(episodes) > _WRITTEN_OUT
    named = "@episodes.json" if many else f"[{','.join(map(str, episodes))}]"
    return f"--dataset.exclude_episodes={named}"


def format_numbers(numbers: list[int]) -> str:
    """Write rising numbers with runs joined, ``0, 4, 7-9``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
