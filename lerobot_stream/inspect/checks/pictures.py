"""Whether cameras are black or frozen, by pictures spread over the episodes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.errors import DecodeError, FormatError
from lerobot_stream.inspect.facts import Facts
from lerobot_stream.inspect.finding import Finding
from lerobot_stream.inspect.kinds import PICTURES_BLACK, PICTURES_DAMAGED, PICTURES_FROZEN
from lerobot_stream.inspect.pictures import Picture, Pictures
from lerobot_stream.inspect.row_files import RowFiles
from lerobot_stream.inspect.spread import spread
from lerobot_stream.inspect.video_files import VideoFiles
from lerobot_stream.source.base import Source
from lerobot_stream.source.ranges import MAX_GAP_BYTES

EPISODES = 1000
"""Most episodes that are looked at, spread over the dataset."""
FRAMES = 12
"""Pictures of each episode and camera."""
_THREADS = 4
_TILES = 16
"""Pictures are compared by the mean levels of so many tiles a side."""
_SAME_LEVELS = 0.2
"""Most that a tile of a frozen picture differs, in levels of 256."""
_BLACK_LEVEL, _BLACK_SPREAD = 12, 4
_LONG = 4
"""Neighbouring samples that must be alike, at least, and a third of the episode's."""


@dataclass(frozen=True, slots=True)
class Look:
    """What the sampled pictures of one episode and camera look like."""

    black: tuple[int, int] | None
    """First and last frame of the longest black stretch; None if there is no long one."""
    frozen: tuple[int, int] | None
    """First and last frame of the longest frozen stretch that is not black."""


def check_pictures(
    source: Source, facts: Facts, rows: RowFiles, videos: VideoFiles
) -> Iterator[Finding]:
    """Decode some pictures of every episode and camera, or of many if there are very many.

    Args:
        source: Where the files are.
        facts: The dataset's metadata.
        rows: Its data files.
        videos: Its videos.
    """
    pictures = Pictures(source, facts.info, facts.table, rows, videos)
    numbers = spread(len(facts.table), EPISODES).tolist()
    cells = [(n, key) for n in numbers for key in facts.info.camera_keys if pictures.has(n, key)]

    def look(cell: tuple[int, str]) -> Finding | None:
        number, key = cell
        frames = spread(int(facts.table.length[number]), FRAMES)
        episode = int(facts.table.episode_index[number])
        try:
            shown = pictures.frames(number, key, frames, max_gap=MAX_GAP_BYTES)
        except (DecodeError, FormatError) as error:
            return Finding(
                PICTURES_DAMAGED,
                error.message,
                "episode",
                episodes=(episode,),
                video_key=key,
                advice=error.hint,
            )
        return _report(judge(shown, frames), episode, key, int(facts.table.length[number]))

    with ThreadPoolExecutor(_THREADS, thread_name_prefix="look") as threads:
        yield from filter(None, threads.map(look, cells))


def judge(shown: list[Picture], frames: NDArray[np.int64]) -> Look:
    """Find stretches in which a camera shows nothing, or nothing new.

    Args:
        shown: ``(H, W, C)`` each.
        frames: ``(m,)`` Frame number of each, rising.
    """
    tiles = [_tiles(picture) for picture in shown]
    black = np.array([t.mean() < _BLACK_LEVEL and t.std() < _BLACK_SPREAD for t in tiles], bool)
    same = np.array(
        [
            bool(np.abs(tiles[i] - tiles[i + 1]).max() <= _SAME_LEVELS) and not black[i]
            for i in range(len(tiles) - 1)
        ],
        bool,
    )
    enough = max(_LONG, len(shown) // 3)
    dark = _longest(black)
    still = _longest(same)
    return Look(
        black=_frames(frames, dark[0], dark[1]) if dark[1] - dark[0] >= enough else None,
        frozen=_frames(frames, still[0], still[1] + 1) if still[1] - still[0] >= enough else None,
    )


def _report(look: Look, episode: int, key: str, length: int) -> Finding | None:
    found = (PICTURES_BLACK, look.black) if look.black else (PICTURES_FROZEN, look.frozen)
    kind, stretch = found
    if stretch is None:
        return None
    what = "black" if kind is PICTURES_BLACK else "the same"
    message = f"pictures sampled from frame {stretch[0]} to {stretch[1]} of {length} are {what}"
    return Finding(kind, message, "episode", episodes=(episode,), video_key=key)


def _tiles(picture: Picture) -> NDArray[np.float64]:
    """Mean levels of a coarse grid, ``(_TILES, _TILES)`` or less for a small picture."""
    grey = picture.mean(axis=2)
    height, width = (max(1, size // _TILES) for size in grey.shape)
    rows, columns = grey.shape[0] // height, grey.shape[1] // width
    cut = grey[: rows * height, : columns * width]
    tiles: NDArray[np.float64] = cut.reshape(rows, height, columns, width).mean(axis=(1, 3))
    return tiles


def _longest(flags: NDArray[np.bool_]) -> tuple[int, int]:
    """The longest run of True, half-open."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    starts, stops = edges[::2], edges[1::2]
    if not len(starts):
        return 0, 0
    best = int(np.argmax(stops - starts))
    return int(starts[best]), int(stops[best])


def _frames(frames: NDArray[np.int64], start: int, stop: int) -> tuple[int, int]:
    return int(frames[start]), int(frames[stop - 1])
