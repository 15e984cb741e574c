"""How far behind a sync sample a file must go on for H.264 to come out whole."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MIN_DELAY = 4
"""Pictures that a decoder is taken to hold back at least, whatever the order shows."""


def settling_samples(codec: str, rank: NDArray[np.int64]) -> int:
    """Say how many samples must follow a sync sample, itself included.

    H.264 sync samples of open GOPs are no IDR pictures. FFmpeg 5's decoder marks what it
    decodes as whole only once such a picture has been put out, and when the file ends it drops
    pictures that are neither marked nor out. With ``a`` the most places that a sample is
    decoded ahead of its turn and ``d`` the pictures held back, the sync sample is out ``a + d``
    samples later, and what was decoded until then another ``a + d`` after that.

    Args:
        codec: Four-character code of the sample entry.
        rank: ``(n,)`` Place in order of presentation of samples in decoding order.

    Returns:
        The count; 0 for other codecs and where nothing is reordered.
    """
    number = np.arange(len(rank))
    ahead = int((rank - number).max(initial=0))
    if not ahead or not codec.startswith("avc"):
        return 0
    return 2 * (ahead + max(int((number - rank).max()), MIN_DELAY)) + 1
