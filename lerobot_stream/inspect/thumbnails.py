"""Small JPEGs of the first, middle and last frame of episodes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from PIL import Image

from lerobot_stream.errors import DecodeError, FormatError
from lerobot_stream.inspect.pictures import Picture, Pictures
from lerobot_stream.inspect.spread import spread

PER_CAMERA = 3
"""Pictures of an episode on a camera: the first frame, the middle one, the last."""
WIDTH = 192
_QUALITY = 70
_THREADS = 4


@dataclass(frozen=True, slots=True)
class Thumbnails:
    """The pictures of one episode and camera."""

    number: int
    """Row of the episode table."""
    video_key: str
    """The camera."""
    frames: tuple[int, ...]
    """Frame numbers."""
    jpegs: tuple[bytes, ...]
    """A file for each; none where they cannot be decoded."""
    fault: str | None = None
    """Why not."""


def make_thumbnails(
    pictures: Pictures, cells: Sequence[tuple[int, str]], lengths: Sequence[int]
) -> list[Thumbnails]:
    """Fetch and decode the pictures of episodes and cameras.

    Args:
        pictures: Decodes them.
        cells: Row of the episode table and camera, of which ``pictures.has`` is true.
        lengths: Frames of every episode, by row of the episode table.

    Returns:
        Their pictures, in the same order.
    """

    def make(cell: tuple[int, str]) -> Thumbnails:
        number, key = cell
        frames = spread(lengths[number], PER_CAMERA)
        shown = tuple(frames.tolist())
        try:
            decoded = pictures.frames(number, key, frames)
        except (DecodeError, FormatError) as error:
            return Thumbnails(number, key, shown, (), error.message)
        return Thumbnails(number, key, shown, tuple(map(_to_jpeg, decoded)))

    with ThreadPoolExecutor(_THREADS, thread_name_prefix="thumbnail") as threads:
        return list(threads.map(make, cells))


def _to_jpeg(picture: Picture) -> bytes:
    image = Image.fromarray(np.squeeze(picture, axis=2) if picture.shape[2] == 1 else picture)
    image.thumbnail((WIDTH, 2 * WIDTH))
    file = io.BytesIO()
    image.save(file, "JPEG", quality=_QUALITY, optimize=True)
    return file.getvalue()
