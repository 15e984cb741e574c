"""What an item consists of, and in which shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lerobot_stream.stream.window import Window


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """What an item consists of, and in which shape."""

    columns: Mapping[str, tuple[np.dtype[np.generic], tuple[int, ...]]]
    """Type and shape of each column; ``object`` for text. One-element features have shape ()."""
    cameras: Mapping[str, tuple[int, int, int]]
    """``(H, W, C)`` of each camera, video or image."""
    windows: Mapping[str, Window]
    """Frames that an item shows of a feature, where that is not just its own."""
    tasks: Mapping[int, str]
    """Text of each ``task_index``."""

    def steps(self, key: str) -> tuple[int, ...]:
        """``(T,)`` for a windowed feature, else ``()``."""
        return (len(self.windows[key].offset),) if key in self.windows else ()

    @property
    def picture_bytes(self) -> int:
        """Bytes of an item's pictures."""
        return sum(int(np.prod((*self.steps(key), *shape))) for key, shape in self.cameras.items())

    @property
    def item_bytes(self) -> int:
        """Bytes of an item's pictures; of its columns where there are none."""
        return self.picture_bytes or sum(
            dtype.itemsize * int(np.prod((*self.steps(key), *shape)))
            for key, (dtype, shape) in self.columns.items()
        )
