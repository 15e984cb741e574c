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


class Holders:
    """What each data and video file holds.

    Args:
        table: The dataset's episodes.
    """

    def __init__(self, table: EpisodeTable) -> None:
        self._held: dict[str, dict[str, list[int]]] = {}
        self._note("the rows", table.data_paths, table.data_file, table)
        for key, paths in table.video_paths.items():
            self._note(key, paths, table.video_file[key], table)

    def episodes(self, path: str) -> list[int]:
        """List the episodes of which a file holds something, rising."""
        return sorted({number for held in self._held.get(path, {}).values() for number in held})

    def describe(self, path: str) -> str:
        """Say what a file holds.

        Returns:
            For example ``it holds observation.images.top of episodes 2, 3, 7-9``; empty where no
            episode points to it.
        """
        parts = [f"{key} of {_episodes(held)}" for key, held in self._held.get(path, {}).items()]
        return f"it holds {' and '.join(parts)}" if parts else ""

    def _note(
        self, key: str, paths: Sequence[str], file: NDArray[np.int64], table: EpisodeTable
    ) -> None:
        order = np.argsort(file, kind="stable")
        order = order[file[order] >= 0]
        found, start = np.unique(file[order], return_index=True)
        parts = np.split(table.episode_index[order], start[1:])
        for number, episodes in zip(found.tolist(), parts, strict=False):
            self._held.setdefault(paths[number], {})[key] = episodes.tolist()


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
