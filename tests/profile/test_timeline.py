"""Rates and waits are read from the moments at which batches came."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.profile.timeline import Spread, Timeline, spread


def timeline(came_s: list[float], items: list[int] | None = None) -> Timeline:
    came = np.array(came_s)
    count = np.array(items or [8 * (number + 1) for number in range(len(came))])
    return Timeline(came, np.diff(came, prepend=0.0), count, 2 * count)


def test_the_first_batch_counts_for_no_rate() -> None:
    late = timeline([9.0, 9.5, 10.0, 10.5])
    assert late.items_per_s() == Spread(16.0, 16.0, 16.0)
    assert late.pictures_per_s() == Spread(32.0, 32.0, 32.0)
    assert late.overall(late.items) == 16.0
    assert late.waits().p99 == 0.5


def test_a_stall_shows_in_the_spread_and_not_in_the_median() -> None:
    came = [0.1 * number for number in range(51)] + [9.0]
    stalled = timeline(came)
    assert stalled.items_per_s().median == pytest.approx(80)
    assert stalled.items_per_s().low < 79
    assert stalled.waits().p50 == pytest.approx(0.1)
    assert stalled.waits().p99 > 1


@given(st.lists(st.floats(0.001, 10), min_size=2, max_size=60))
def test_stretches_cover_every_batch_behind_the_first(waits: list[float]) -> None:
    drawn = timeline(np.cumsum(waits).tolist())
    rates = drawn.rates(drawn.items)
    assert 1 <= len(rates) <= 10
    assert rates.min() <= drawn.overall(drawn.items) * (1 + 1e-9)
    assert drawn.overall(drawn.items) <= rates.max() * (1 + 1e-9)


def test_a_single_batch_has_no_rate() -> None:
    assert timeline([1.0]).items_per_s() == Spread(0.0, 0.0, 0.0)
    assert timeline([1.0]).waits().p50 == 1.0
    assert spread([]) == Spread(0.0, 0.0, 0.0)
