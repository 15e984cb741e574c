from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.plan.ragged import Ragged

ROWS = st.lists(st.lists(st.integers(0, 99), max_size=5), max_size=6)


@given(ROWS)
def test_rows_come_back(rows: list[list[int]]) -> None:
    ragged = Ragged.of(rows)
    assert [ragged[i].tolist() for i in range(len(ragged))] == rows
    assert ragged.counts.tolist() == [len(row) for row in rows]


@given(ROWS, st.data())
def test_selected_rows_keep_the_order_asked_for(rows: list[list[int]], data: st.DataObject) -> None:
    which = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8)) if rows else []
    selected = Ragged.of(rows).select(np.array(which, dtype=np.int64))
    assert [selected[i].tolist() for i in range(len(selected))] == [rows[i] for i in which]


@pytest.mark.parametrize("start", [[], [0, 1], [1, 2], [0, 3, 2]])
def test_borders_that_do_not_cut_the_values_are_refused(start: list[int]) -> None:
    with pytest.raises(ValueError, match="row borders"):
        Ragged(np.array(start, dtype=np.int64), np.zeros(2, dtype=np.int32))
