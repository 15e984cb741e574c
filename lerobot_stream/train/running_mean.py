"""A running mean of the weights (exponential moving average)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class RunningMean:
    """Weights that follow the trained ones slowly, and generalise better than the last ones."""

    def __init__(self, policy: nn.Module, decay: float) -> None:
        """Start from a policy's weights.

        Args:
            policy: What is trained.
            decay: How much of the mean stays at each step, once it has settled.
        """
        self._policy = policy
        self._decay = decay
        self.weights = {key: value.detach().clone() for key, value in policy.state_dict().items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights of a step; early steps count more, so that the start is forgotten."""
        decay = min(self._decay, step / (step + 9))
        for key, value in self._policy.state_dict().items():
            if value.is_floating_point():
                self.weights[key].lerp_(value, 1 - decay)
            else:
                self.weights[key].copy_(value)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Let the policy have the mean for a while."""
        trained = {key: value.clone() for key, value in self._policy.state_dict().items()}
        self._policy.load_state_dict(self.weights)
        try:
            yield
        finally:
            self._policy.load_state_dict(trained)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Take over a mean that was saved."""
        for key, value in weights.items():
            self.weights[key].copy_(value)
