from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from lerobot_stream.train.distributed import Ranks
from lerobot_stream.train.evaluate import ActionError, measure_action_error
from lerobot_stream.train.policies.base import Batch

ONE = Ranks(0, 1, torch.device("cpu"))
MEAN = np.array([0.5, -1.0])


def make_batches() -> list[Batch]:
    generator = torch.Generator().manual_seed(0)
    batches = []
    for size in (3, 2):
        is_pad = torch.rand(size, 4, generator=generator) < 0.3
        batches.append(
            {
                "action": torch.randn(size, 4, 2, generator=generator),
                "action_is_pad": is_pad,
            }
        )
    return batches


def measure(
    shift: float, *, given: int = 4, first: int = 0, most: int | None = None
) -> ActionError:
    def predict(batch: Batch) -> Tensor:
        action: Tensor = batch["action"]
        return action[:, first : first + given] + shift

    return measure_action_error(
        predict,
        make_batches(),
        action="action",
        steps=4,
        first_action=first,
        mean_action=MEAN,
        ranks=ONE,
        max_batches=most,
    )


def test_errors_are_means_over_recorded_steps() -> None:
    found = measure(0.25)
    batches = make_batches()
    actions = torch.cat([batch["action"] for batch in batches]).numpy()
    valid = ~torch.cat([batch["action_is_pad"] for batch in batches]).numpy()
    distance = np.abs(actions - MEAN).mean(axis=2)
    assert found.count.tolist() == valid.sum(axis=0).tolist()
    np.testing.assert_allclose(found.policy, 0.25, rtol=1e-5)
    for step in range(4):
        wanted = distance[valid[:, step], step].mean()
        assert found.mean_action[step] == pytest.approx(wanted, rel=1e-5)
    assert found.overall == pytest.approx(0.25)
    assert found.overall_mean_action == pytest.approx(distance[valid].mean(), rel=1e-5)
    assert found.ratio == pytest.approx(0.25 / distance[valid].mean(), rel=1e-5)


def test_only_predicted_steps_count() -> None:
    found = measure(0.25, given=2, first=1)
    assert (found.count[[0, 3]] == 0).all()
    assert (found.count[[1, 2]] > 0).all()
    assert found.overall == pytest.approx(0.25)


def test_no_more_batches_are_looked_at_than_asked_for() -> None:
    assert measure(0.0, most=1).count.sum() == (~make_batches()[0]["action_is_pad"]).sum()
    assert measure(0.0, most=1).ratio == 0


def test_single_numbers_are_actions_too() -> None:
    batch = {"action": torch.zeros(3, 4), "action_is_pad": torch.zeros(3, 4, dtype=torch.bool)}
    found = measure_action_error(
        lambda _: torch.ones(3, 4, 1),
        [batch],
        action="action",
        steps=4,
        mean_action=np.array([2.0]),
        ranks=ONE,
    )
    assert (found.overall, found.ratio) == (1.0, 0.5)


def test_no_batches_are_no_error() -> None:
    found = measure_action_error(
        lambda batch: batch["action"],
        [],
        action="action",
        steps=2,
        mean_action=MEAN,
        ranks=ONE,
    )
    assert found.count.tolist() == [0, 0]
    assert found.overall == 0
