from __future__ import annotations

import math

import pytest
import torch

from lerobot_stream.train.policies.rollout import TemporalEnsemble


@pytest.mark.parametrize("coefficient", [0.0, 0.3, -0.2])
@pytest.mark.parametrize("steps", [1, 3])
def test_an_action_is_the_weighted_mean_of_all_predictions_of_its_time(
    coefficient: float, steps: int
) -> None:
    generator = torch.Generator().manual_seed(0)
    chunks = torch.randn(6, 2, steps, 3, generator=generator)
    ensemble = TemporalEnsemble(coefficient)
    for time in range(6):
        chunk = chunks[time]
        found = ensemble.next_action(lambda chunk=chunk: chunk)  # type: ignore[misc]
        oldest = max(0, time - steps + 1)
        predictions = [chunks[made, :, time - made] for made in range(oldest, time + 1)]
        weights = [math.exp(-coefficient * i) for i in range(len(predictions))]
        wanted = sum(w * p for w, p in zip(weights, predictions, strict=True)) / sum(weights)
        torch.testing.assert_close(found, wanted)
