from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from lerobot_stream.train.config import OptimizerConfig, SchedulerConfig
from lerobot_stream.train.optim import clip_gradients, make_adamw, make_scheduler, rate_factor


@given(st.integers(0, 500), st.integers(0, 50), st.integers(1, 400), st.floats(0, 1))
def test_rates_stay_between_floor_and_highest(
    step: int, warmup: int, stop: int, floor: float
) -> None:
    factor = rate_factor(step, warmup=warmup, stop=stop, floor=floor)
    assert 0 <= factor <= 1 + 1e-12
    if step >= warmup:
        assert factor >= floor - 1e-12
    if step >= max(stop, warmup):
        assert factor == pytest.approx(floor)


def test_the_rise_is_a_line_and_the_decay_a_cosine() -> None:
    rise = [rate_factor(step, warmup=3, stop=None, floor=0) for step in range(5)]
    assert rise == [0.25, 0.5, 0.75, 1, 1]
    assert rate_factor(25, warmup=0, stop=100, floor=0.2) == pytest.approx(
        0.2 + 0.8 * (1 + math.cos(math.pi / 4)) / 2
    )


def test_the_last_rate_is_the_one_asked_for_in_each_group() -> None:
    model = nn.Linear(2, 2)
    groups = [
        {"params": [model.weight], "lr": 1e-3, "weight_decay": 0.0},
        {"params": [model.bias], "lr": 1e-5, "weight_decay": 0.0},
    ]
    optimizer = make_adamw(groups, OptimizerConfig())
    config = SchedulerConfig("cosine_decay_with_warmup", num_warmup_steps=2, decay_lr=1e-4)
    scheduler = make_scheduler(optimizer, config, 8)
    assert scheduler is not None
    for _ in range(8):
        optimizer.step()
        scheduler.step()
    assert scheduler.get_last_lr() == pytest.approx([1e-4, 1e-5])


def test_acts_own_schedule_is_none() -> None:
    optimizer = make_adamw(
        [{"params": [nn.Parameter(torch.ones(1))], "lr": 1e-3, "weight_decay": 0.0}],
        OptimizerConfig(),
    )
    assert make_scheduler(optimizer, SchedulerConfig(), 5) is None


@pytest.mark.parametrize(("largest", "norm"), [(1.0, 1.0), (10.0, 5.0), (0.0, 5.0)])
def test_gradients_are_scaled_down_to_a_norm(largest: float, norm: float) -> None:
    parameter = nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([3.0, 4.0])
    assert clip_gradients([parameter], largest).item() == pytest.approx(5.0)
    assert parameter.grad.norm().item() == pytest.approx(norm, rel=1e-4)
