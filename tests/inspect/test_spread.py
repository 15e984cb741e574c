from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.inspect.spread import spread


@given(st.integers(0, 10**6), st.integers(0, 50))
def test_numbers_are_spread_over_the_whole(length: int, most: int) -> None:
    numbers = spread(length, most).tolist()
    assert numbers == sorted(set(numbers))
    assert len(numbers) == min(length, most)
    if len(numbers) > 1:
        assert (numbers[0], numbers[-1]) == (0, length - 1)
        gaps = np.diff(numbers)
        assert gaps.max() - gaps.min() <= 1
