"""Where a picture is shown: places in the picture memory of batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.errors import DecodeError

if TYPE_CHECKING:
    import torch

Cell = tuple["torch.Tensor", int]
"""Pictures ``(N, H, W, C)`` of a batch, and the slot of one of them."""


def write_picture(picture: NDArray[np.uint8], cells: Sequence[Cell], *, place: str) -> None:
    """Copy a picture to everywhere that it is shown.

    Args:
        picture: ``(H, W, C)``
        cells: Where it goes.
        place: Where it is from, for messages.

    Raises:
        DecodeError: It has another shape than they.
    """
    found = picture.shape
    for pictures, slot in cells:
        cell = pictures.numpy()[slot]
        if cell.shape != found:
            raise DecodeError(
                f"pictures are {found[1]}x{found[0]} with {found[2]} channels, other files of this "
                f"camera have {cell.shape[1]}x{cell.shape[0]} with {cell.shape[2]}",
                where=place,
                hint="leave these episodes out with --dataset.exclude_episodes",
            )
        cell[:] = picture
