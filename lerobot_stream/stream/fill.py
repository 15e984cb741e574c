"""One camera's pictures of some items: decoded once each, written to every row that shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.stream.batch import OpenBatch
from lerobot_stream.stream.cells import Cell, write_picture
from lerobot_stream.stream.decode import MiniDecoder
from lerobot_stream.stream.episode import EpisodeData
from lerobot_stream.stream.images import decode_image
from lerobot_stream.stream.visit import Visit
from lerobot_stream.stream.window import Window


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One camera's pictures of a task."""

    visit: Visit
    """Where they are from."""
    key: str
    """The camera."""
    frames: NDArray[np.int64]
    """``(m,)`` Frame of each item."""
    rows: Sequence[tuple[OpenBatch, int]]
    """``m`` Batch and row of each item."""
    data: EpisodeData
    """The coded bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class Filled:
    """What is left when a job's pictures are written."""

    decoder: MiniDecoder | None
    """The open decoder, for the next job of the visit."""
    kept: dict[int, NDArray[np.uint8]]
    """Pictures from ``keep_from`` on, by frame."""
    pictures: int
    """Wanted frames decoded."""
    decoded: int
    """Frames decoded, those before the wanted ones included."""


def fill_pictures(
    job: Job,
    window: Window | None,
    *,
    decoder: MiniDecoder | None = None,
    held: Mapping[int, NDArray[np.uint8]] | None = None,
    keep_from: int,
) -> Filled:
    """Decode what a job's items show, each frame once, and write it to their rows.

    Args:
        job: Items of one episode and camera.
        window: Steps that each item shows; None for its own frame alone.
        decoder: An open one on the same pictures.
        held: Pictures that need not be decoded again.
        keep_from: First frame whose picture is kept for a later job.

    Returns:
        What is left when they are written.

    Raises:
        DecodeError: A picture is missing, another one, or of another shape.
    """
    held = held or {}
    cells = _cells(job, window)
    kept = {number: held[number] for number in held if number >= keep_from}
    place = f"episode {job.data.episode_index}, {job.key}"
    for number in cells.keys() & held.keys():
        write_picture(held[number], cells.pop(number), place=place)
    if not cells:
        return Filled(decoder, kept, 0, 0)
    if job.key in job.data.rows.images:
        for number, shown in cells.items():
            picture = decode_image(
                job.data.rows.images[job.key][number], place=f"{place}, frame {number}"
            )
            write_picture(picture, shown, place=place)
            if number >= keep_from:
                kept[number] = picture
        return Filled(None, kept, len(cells), len(cells))
    camera = job.data.cameras[job.key]
    decoder = decoder or MiniDecoder(camera.mini, rank=camera.rank, place=camera.place)
    before = decoder.decoded
    kept |= decoder.write(cells, keep_from=keep_from)
    return Filled(decoder, kept, len(cells), decoder.decoded - before)


def first_needed_later(job: Job, window: Window | None) -> int:
    """First frame that items behind this job's can still show."""
    if window is None:
        return job.data.length
    return int(job.frames.max()) + 1 + min(0, int(window.offset.min()))


def _cells(job: Job, window: Window | None) -> dict[int, list[Cell]]:
    """Where each frame is written: every item and step that shows it."""
    frames = job.frames[:, None]
    shown = frames if window is None else window.numbers(job.frames, job.data.length)
    cells: dict[int, list[Cell]] = {}
    for (batch, row), numbers in zip(job.rows, shown.tolist(), strict=True):
        pictures, first = batch.pictures(job.key), row * len(numbers)
        for step, number in enumerate(numbers):
            cells.setdefault(number, []).append((pictures, first + step))
    return cells
