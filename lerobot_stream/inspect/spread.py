"""Numbers at even distances."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def spread(length: int, most: int) -> NDArray[np.int64]:
    """Spread numbers over ``[0, length)``.

    Args:
        length: One past the last number.
        most: Most numbers to give.

    Returns:
        Rising numbers, each once; the first and the last are among them if there may be two.
    """
    if most < 1:
        return np.zeros(0, np.int64)
    return np.unique(np.linspace(0, length - 1, min(most, length)).round().astype(np.int64))
