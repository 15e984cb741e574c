from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.plan.epoch import plan_epoch
from lerobot_stream.plan.runs import plan_runs
from lerobot_stream.plan.share import Share
from tests.plan.shares import make_episodes, make_share, shares


@given(shares(["clip"]), st.data())
def test_runs_are_the_items_still_to_deliver(share: Share, data: st.DataObject) -> None:
    order = plan_epoch(share, epoch=0)
    start = data.draw(st.integers(0, len(order)))
    units = list(plan_runs(order, start=start, position_base=1000))
    positions = [int(position) - 1000 for unit in units for position in unit.positions]
    assert sorted(positions) == list(range(start, len(order)))
    for unit in units:
        assert len(unit.positions)
        assert np.all(order.visit[unit.positions - 1000] == unit.visit)
        assert order.frame[unit.positions - 1000].tolist() == unit.frames.tolist()
        assert np.all(np.diff(unit.frames) > 0)


@given(shares(["clip"]))
def test_runs_come_in_the_order_of_decoding(share: Share) -> None:
    order = plan_epoch(share, epoch=0)
    assert order.run is not None
    for number, unit in enumerate(plan_runs(order, start=0, position_base=0)):
        assert np.all(order.run[unit.positions] == number)


@given(shares(["clip"]), st.data())
def test_the_last_run_of_each_visit_is_marked(share: Share, data: st.DataObject) -> None:
    order = plan_epoch(share, epoch=0)
    start = data.draw(st.integers(0, len(order)))
    units = list(plan_runs(order, start=start, position_base=0))
    last = {unit.visit: number for number, unit in enumerate(units)}
    assert [unit.last for unit in units] == [last[u.visit] == i for i, u in enumerate(units)]


@given(shares(["clip"]), st.data())
def test_resuming_decodes_again_at_most_the_spread(share: Share, data: st.DataObject) -> None:
    order = plan_epoch(share, epoch=0)
    assert order.decode is not None
    assert order.run_start is not None
    start = data.draw(st.integers(0, len(order) - 1))
    first = next(plan_runs(order, start=start, position_base=0))
    longest = int(np.diff(order.run_start).max())
    place = int(np.flatnonzero(order.decode == first.positions[0])[0])
    assert place > start - order.spread - longest


def test_an_order_without_runs_has_none_to_plan() -> None:
    order = plan_epoch(make_share(make_episodes([5])), epoch=0)
    assert order.run is None
    with pytest.raises(ValueError, match="no runs of its own"):
        next(plan_runs(order, start=0, position_base=0))
