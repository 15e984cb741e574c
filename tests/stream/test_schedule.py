"""A worker's plan as visits to fetch and tasks to decode."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.plan.elastic import new_base, plan_layers
from lerobot_stream.plan.share import PlanConfig
from lerobot_stream.plan.strategy import Strategy
from lerobot_stream.stream.schedule import Schedule
from tests.plan.shares import CONFIG, make_episodes

LENGTHS = [40, 7, 33, 60, 12, 25, 51, 18]


def make_schedule(
    config: PlanConfig, *, item: int = 0, num_epochs: int | None = 2, batch_size: int = 4
) -> tuple[Schedule, list[int]]:
    """A schedule, and the rows of the visits whose bytes it asked for."""
    asked: list[int] = []

    def visit_bytes(row: int, start: int, stop: int) -> int:
        asked.append(row)
        return stop - start

    layers = plan_layers(make_episodes(LENGTHS, gops=[10]), config, new_base(), rank=0, worker=0)
    schedule = Schedule(
        layers,
        np.arange(len(LENGTHS)),
        epoch=0,
        item=item,
        num_epochs=num_epochs,
        batch_size=batch_size,
        visit_bytes=visit_bytes,
    )
    return schedule, asked


@pytest.mark.parametrize("strategy", ["remaining", "round_robin", "clip"])
@pytest.mark.parametrize("item", [0, 130])
def test_what_is_fetched_is_what_is_decoded(strategy: Strategy, item: int) -> None:
    schedule, asked = make_schedule(replace(CONFIG, strategy=strategy, run_frames=3), item=item)
    fetched = list(schedule.visits())
    decoded = {id(task.visit): task.visit for task in schedule.tasks()}
    assert list(decoded.values()) == fetched
    assert decoded.keys() == {id(visit) for visit in fetched}
    assert len(asked) == len(fetched)  # each visit's bytes are worked out once


def test_batches_larger_than_the_decoded_budget_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = replace(CONFIG, decoded_bytes=8 * 10**9, item_bytes=10**9)
    make_schedule(config, batch_size=4)
    assert not caplog.messages
    make_schedule(config, batch_size=5)
    assert caplog.messages == [
        "two batches of 5 take 10 GB decoded, more than the 8 GB of the decoded pool; "
        "they are held all the same"
    ]


@given(rows=st.integers(8, 400), batch_size=st.integers(1, 64))
def test_open_batches_fit_the_decoded_budget(rows: int, batch_size: int) -> None:
    config = replace(CONFIG, strategy="clip", run_frames=3, decoded_bytes=rows)
    schedule, _ = make_schedule(config, num_epochs=None, batch_size=batch_size)
    batches = -(-schedule.open_items // batch_size)
    # Batches of an eighth of the rows fit with both ends of the displaced stretch.
    assert batches * batch_size <= max(rows, (3 * rows // 4) + 2 * batch_size)
