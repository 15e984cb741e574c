"""How far predicted actions are from recorded ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lerobot_stream.train.distributed import Ranks
from lerobot_stream.train.policies.base import Batch


@dataclass(frozen=True, slots=True, eq=False)
class ActionError:
    """Mean absolute errors over items and dimensions, in the dataset's units."""

    policy: NDArray[np.float64]
    """``(T,)`` Of the policy, for each step of a prediction."""
    mean_action: NDArray[np.float64]
    """``(T,)`` Of always predicting the mean action."""
    count: NDArray[np.int64]
    """``(T,)`` Recorded actions that were there to compare with."""

    @property
    def overall(self) -> float:
        """Of the policy, over all steps."""
        return _mean(self.policy, self.count)

    @property
    def overall_mean_action(self) -> float:
        """Of predicting the mean, over all steps."""
        return _mean(self.mean_action, self.count)

    @property
    def ratio(self) -> float:
        """The policy's error as a share of that of predicting the mean; at 1 nothing is learnt."""
        return self.overall / max(self.overall_mean_action, 1e-12)


def measure_action_error(
    predict: Callable[[Batch], Tensor],
    batches: Iterable[Batch],
    *,
    action: str,
    steps: int,
    first_action: int = 0,
    mean_action: NDArray[np.float64],
    ranks: Ranks,
    max_batches: int | None = None,
) -> ActionError:
    """Compare predictions with recordings.

    Args:
        predict: From a batch of the dataset to ``(B, T, D)`` actions in its units.
        batches: Batches of this rank; may be none.
        action: The feature that is predicted, by the dataset's name; its padded steps do not
            count.
        steps: Steps of its window.
        first_action: The step that the first prediction belongs to; earlier ones, and those
            behind the last prediction, do not count.
        mean_action: ``(D,)`` The dataset's mean action.
        ranks: All of them take part, and get the same result.
        max_batches: Batches of each rank to look at; None for all.

    Returns:
        The errors.
    """
    mean = torch.from_numpy(mean_action).to(torch.float32)
    sums = torch.zeros(3, steps, dtype=torch.float64)
    for batch in islice(batches, max_batches):
        predicted = predict(batch).cpu()
        recorded, is_pad = batch[action].cpu(), batch[f"{action}_is_pad"].cpu()
        recorded = recorded.reshape(*is_pad.shape, -1)  # (B, T, D), also for single numbers
        judged = slice(first_action, first_action + predicted.shape[1])
        valid, recorded = ~is_pad[:, judged], recorded[:, judged]
        predicted = predicted[:, : recorded.shape[1]]
        errors = (
            (predicted - recorded).abs().mean(dim=2),
            (mean - recorded).abs().mean(dim=2),
            torch.ones_like(valid, dtype=torch.float32),
        )
        sums[:, judged] += torch.stack([(error * valid).sum(dim=0) for error in errors])
    total = ranks.sum(sums.to(ranks.device, _sum_type(ranks.device))).cpu().numpy()
    count = np.maximum(total[2], 1)
    return ActionError(total[0] / count, total[1] / count, total[2].astype(np.int64))


def _sum_type(device: torch.device) -> torch.dtype:
    return torch.float32 if device.type == "mps" else torch.float64


def _mean(error: NDArray[np.float64], count: NDArray[np.int64]) -> float:
    return float((error * count).sum() / max(1, count.sum()))
