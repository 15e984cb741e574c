"""A run of pictures decoded and copied in one call that leaves the interpreter to others.

torchcodec lets go of the interpreter's lock for one picture at a time. Each time it is taken again,
another decode thread, or one that fetches or plans, may be holding it: on two cores that left
them idle for 2 % of the time. TorchScript runs the whole loop without the lock.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from lerobot_stream.stream.codec_library import load_video_decoder

if TYPE_CHECKING:
    import torch

DecodeRun = Callable[
    ["torch.Tensor", "list[int]", "list[torch.Tensor]", "list[int]", "list[int]", int],
    "tuple[list[float], list[torch.Tensor]]",
]
"""See :func:`load_decode_run`."""

# narrow_copy is a plain memcpy; copy_ would start threads of its own.
_SOURCE = """
def decode_run(
    decoder: Tensor,
    ranks: List[int],
    pictures: List[Tensor],
    slots: List[int],
    stops: List[int],
    kept_from: int,
) -> Tuple[List[float], List[Tensor]]:
    seconds: List[float] = []
    kept: List[Tensor] = []
    cell = 0
    for number in range(len(ranks)):
        picture, second, _ = torch.ops.torchcodec_ns.get_frame_at_index(
            decoder, frame_index=ranks[number]
        )
        fits = True
        while cell < stops[number]:
            target = pictures[cell][slots[cell]]
            fits = fits and picture.size() == target.size()
            if fits:
                torch.narrow_copy(picture, 0, 0, picture.size(0), out=target)
            cell += 1
        if fits:
            seconds.append(float(second))
        if number >= kept_from:
            kept.append(picture)
    return seconds, kept
"""


@lru_cache(maxsize=1)
def load_decode_run() -> DecodeRun | None:
    """Compile the function.

    Returns:
        A function of a decoder's handle, the ``m`` ranks of the wanted pictures, for each cell the
        pictures ``(N, H, W, C)`` and the slot in them, ``m`` times one past a picture's last
        cell, and the position from which pictures are kept. It gives the seconds at which the
        pictures are shown, fewer than ``m`` where one does not fit a cell, and the kept pictures.
        None where torch or torchcodec have no such parts: they are not public.

    Raises:
        DecodeError: torchcodec cannot be loaded.
    """
    load_video_decoder()  # its import registers the operator
    import torch

    try:
        function: DecodeRun = torch.jit.CompilationUnit(_SOURCE).decode_run
    except (RuntimeError, AttributeError):
        return None
    return function
