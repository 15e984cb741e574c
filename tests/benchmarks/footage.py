"""Frames to encode: real ones where they are at hand, drawn ones otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray

REAL = Path(__file__).parents[2] / "../shared/data/g1_inspire"
CAMERA = "observation.images.cam_high"
WIDTH, HEIGHT, FPS = 640, 480, 30
LENGTHS = ((221, 277, 280), (267, 260, 278), (265, 290))
"""Frames of the episodes of each file, of the real footage and of the drawn one."""


@dataclass(frozen=True, slots=True)
class Footage:
    """Some files of frames, one episode after another."""

    name: str
    """Where the frames are from."""
    folder: Path | None
    """Folder of the files; None where frames are drawn."""

    def path(self, file: int) -> Path | None:
        """The file as it was recorded, AV1 with a key frame at every second picture."""
        if self.folder is None:
            return None
        return self.folder / f"videos/{CAMERA}/chunk-000/file-{file:03d}.mp4"

    def frames(self, file: int) -> Iterator[VideoFrame]:
        """Every frame of a file in order."""
        path = self.path(file)
        if path is not None:
            with av.open(str(path)) as container:
                yield from container.decode(video=0)
            return
        for number in range(sum(LENGTHS[file])):
            yield VideoFrame.from_ndarray(_drawn(number + 1000 * file), format="rgb24")


def find_footage() -> Footage:
    """Real footage where its folder is there."""
    if REAL.is_dir():
        return Footage("g1_inspire (8 real episodes, 640×480)", REAL)
    return Footage("drawn pictures (640×480)", None)


def episode_starts(file: int) -> set[int]:
    """Numbers of the frames with which the episodes of a file begin."""
    return {0, *(stop for stop, _ in pairwise(np.cumsum(LENGTHS[file]).tolist()))}


def _scene() -> NDArray[np.float32]:
    """A room's worth of texture, twice as large as a picture."""
    rng = np.random.default_rng(7)
    scene = np.zeros((2 * HEIGHT, 2 * WIDTH, 3), np.float32)
    for step in (120, 40, 8):
        small = rng.random((2 * HEIGHT // step + 1, 2 * WIDTH // step + 1, 3), np.float32)
        scene += (
            step**0.5
            * np.kron(small, np.ones((step, step, 1), np.float32))[: 2 * HEIGHT, : 2 * WIDTH]
        )
    scene -= scene.min()
    scene *= 215 / float(scene.max())
    return scene


_SCENE: list[NDArray[np.float32]] = []


def _drawn(number: int) -> NDArray[np.uint8]:
    """A camera that sways over the scene, a box that moves across it, and its sensor's noise."""
    if not _SCENE:
        _SCENE.append(_scene())
    left = int(WIDTH / 2 * (1 + np.sin(number / 90)))
    top = int(HEIGHT / 2 * (1 + np.sin(number / 140)))
    picture = _SCENE[0][top : top + HEIGHT, left : left + WIDTH].copy()
    x, y = 3 * number % (WIDTH - 80), 2 * number % (HEIGHT - 80)
    picture[y : y + 80, x : x + 80] = (200, 180, 40)
    noise = np.random.default_rng(number).normal(0, 2, (HEIGHT, WIDTH, 1))
    return np.clip(picture + noise, 0, 255).astype(np.uint8)
