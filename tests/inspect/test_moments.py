from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lerobot_stream.inspect.moments import SAMPLE_ROWS, Moments

values = arrays(
    np.float64,
    st.tuples(st.integers(1, 30), st.just(2)),
    elements=st.floats(-1e6, 1e6) | st.just(np.nan),
)


@given(values, st.lists(st.integers(0, 30), max_size=4))
def test_parts_sum_up_to_the_whole(rows: np.ndarray, cuts: list[int]) -> None:
    moments = Moments.of(2, expected_rows=len(rows))
    for part in np.split(rows, sorted(cuts)):
        moments.add(part)
    for dimension in range(2):
        column = rows[:, dimension]
        finite = column[np.isfinite(column)]
        assert moments.count[dimension] == len(finite)
        if len(finite):
            assert moments.low[dimension] == finite.min()
            assert moments.high[dimension] == finite.max()
            scale = np.abs(finite).max() + 1
            np.testing.assert_allclose(moments.mean[dimension], finite.mean(), atol=1e-9 * scale)
            np.testing.assert_allclose(moments.std[dimension], finite.std(), atol=1e-6 * scale)


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=6))
def test_a_sample_keeps_rows_at_even_distances(parts: list[int]) -> None:
    total = sum(parts)
    moments = Moments.of(1, expected_rows=40 * SAMPLE_ROWS)
    rows = np.arange(total, dtype=np.float64)[:, None]
    for part in np.split(rows, np.cumsum(parts)[:-1]):
        moments.add(part)
    kept = np.concatenate(moments.kept)[:, 0]
    assert kept.tolist() == list(range(0, total, 40))


def test_shares_lie_on_either_side_of_equal_values() -> None:
    moments = Moments.of(1, expected_rows=4)
    moments.add(np.array([[0.0], [0.0], [0.0], [1.0]]))
    below, up_to = moments.share_below(np.array([0.0]))
    assert (below.tolist(), up_to.tolist()) == ([0.0], [0.75])
