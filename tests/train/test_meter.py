from __future__ import annotations

import pytest
import torch

from lerobot_stream.train.distributed import Ranks
from lerobot_stream.train.meter import Meter

ONE = Ranks(0, 1, torch.device("cpu"))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """One number: the time that the meter sees."""
    now = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    return now


def test_numbers_are_averaged_and_rates_leave_pauses_out(clock: list[float]) -> None:
    meter = Meter(step=10, items=80, items_per_step=8, num_frames=32, ranks=ONE)
    for loss in (1.0, 3.0):
        with meter.waiting():
            clock[0] += 0.5
        clock[0] += 1.5
        meter.add(loss=torch.tensor(loss))
    with meter.paused():
        clock[0] += 1000
    found = meter.take(step=12, steps=20)
    assert found == {
        "loss": 2.0,
        "items": 96,
        "epoch": 3.0,
        "items_per_s": 4.0,
        "step_s": 2.0,
        "data_wait_share": 0.25,
        "eta_s": 16.0,
    }


def test_taking_begins_anew(clock: list[float]) -> None:
    meter = Meter(step=0, items=0, items_per_step=1, num_frames=1, ranks=ONE)
    meter.add(loss=torch.tensor(9.0))
    clock[0] += 5
    meter.take(step=1, steps=9)
    meter.add(loss=torch.tensor(1.0))
    clock[0] += 1
    found = meter.take(step=3, steps=9)
    assert (found["loss"], found["items_per_s"]) == (1.0, 2.0)
