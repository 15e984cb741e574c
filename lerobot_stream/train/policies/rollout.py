"""One action at a time from predicted chunks of actions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import torch
from torch import Tensor

Predict = Callable[[], Tensor]
"""Looks at the scene and predicts ``(B, T, D)`` actions."""


class ActionQueue:
    """Carries out the first actions of a prediction before asking for the next one."""

    def __init__(self, actions: int) -> None:
        """Carry out ``actions`` of each prediction."""
        self._actions = actions
        self._waiting: deque[Tensor] = deque()

    def next_action(self, predict: Predict) -> Tensor:
        """Return ``(B, D)``."""
        if not self._waiting:
            self._waiting.extend(predict()[:, : self._actions].unbind(dim=1))
        return self._waiting.popleft()


class TemporalEnsemble:
    """Predicts at each step; an action is the weighted mean of all predictions of its time.

    The weight of the i-th oldest prediction is ``exp(-coefficient * i)``.
    """

    def __init__(self, coefficient: float) -> None:
        """Weigh by ``coefficient``; positive ones favour old predictions."""
        self._coefficient = coefficient
        self._mean: Tensor | None = None  # (B, T - 1, D)
        self._count = torch.zeros(0)  # (T - 1,) predictions inside each mean

    def next_action(self, predict: Predict) -> Tensor:
        """Return ``(B, D)``."""
        chunk = predict()
        weights = torch.exp(-self._coefficient * torch.arange(chunk.shape[1], device=chunk.device))
        total = weights.cumsum(0)
        if self._mean is None:
            mean = chunk
            count = torch.zeros(chunk.shape[1], dtype=torch.long, device=chunk.device)
        else:
            count = self._count
            old = self._mean * total[count - 1][:, None]
            new = chunk[:, :-1] * weights[count][:, None]
            mean = torch.cat([(old + new) / total[count][:, None], chunk[:, -1:]], dim=1)
            count = torch.cat([count, count.new_zeros(1)])
        self._mean, self._count = mean[:, 1:], count[1:] + 1
        return mean[:, 0]
