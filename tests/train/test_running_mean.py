from __future__ import annotations

import pytest
import torch
from torch import nn

from lerobot_stream.train.running_mean import RunningMean


def test_the_mean_follows_slowly_and_forgets_the_start() -> None:
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    mean = RunningMean(model, 0.5)
    seen = 0.0
    for step in range(1, 30):
        nn.init.constant_(model.weight, float(step))
        mean.update(step)
        decay = min(0.5, step / (step + 9))
        seen = decay * seen + (1 - decay) * step
    assert mean.weights["weight"].item() == pytest.approx(seen)


def test_the_policy_has_the_mean_only_for_a_while() -> None:
    model = nn.Linear(2, 2)
    mean = RunningMean(model, 0.9)
    trained = {key: value.clone() + 1 for key, value in model.state_dict().items()}
    model.load_state_dict(trained)
    with mean.applied():
        torch.testing.assert_close(model.state_dict(), mean.weights)
    torch.testing.assert_close(dict(model.state_dict()), trained)


def test_counters_are_copied() -> None:
    model = nn.BatchNorm1d(2)
    mean = RunningMean(model, 0.9)
    model(torch.randn(4, 2))
    mean.update(1)
    assert mean.weights["num_batches_tracked"].item() == 1
