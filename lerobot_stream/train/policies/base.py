"""What the training loop asks of a policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from lerobot_stream.dataset.info import Info
from lerobot_stream.train.config import OptimizerConfig, SchedulerConfig
from lerobot_stream.train.normalize import Stats
from lerobot_stream.train.policies.config import PolicyConfig

Batch = dict[str, Any]
"""Tensors by feature with ``B`` first, text as lists; before or after preprocessing."""


class Policy(nn.Module):
    """A policy as the loop sees it: a loss to train by, a chunk of actions to judge it by."""

    def forward(
        self, batch: Batch, num_valid: Tensor | None = None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss of a preprocessed batch.

        Args:
            batch: What ``preprocess`` of the :class:`PolicySetup` returned.
            num_valid: Unmasked action steps by which a sum over steps is divided, so that the
                mean over all ranks and accumulated batches weighs each step alike; those of
                this batch if not given.

        Returns:
            The loss, and detached scalars worth logging.
        """
        raise NotImplementedError

    def predict_action_chunk(self, batch: Batch) -> Tensor:
        """Predict ``(B, T, D)`` actions, before ``postprocess``, in evaluation mode."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRequest:
    """What a policy is made from."""

    config: PolicyConfig
    """Its settings."""
    info: Info
    """The dataset's features and rate."""
    stats: Stats
    """The dataset's statistics, by feature and name."""
    rename: Mapping[str, str]
    """Names of features as the policy knows them, by the dataset's."""
    device: str
    """Where it computes."""
    use_imagenet_stats: bool
    """Whether pictures are normalised by ImageNet's statistics."""
    checkpoint: Path | None
    """Folder of a trained policy to take weights from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySetup:
    """A policy ready to be trained, and all that belongs to it."""

    policy: Policy
    """The policy, on its device."""
    preprocess: Callable[[Batch], Batch]
    """From a batch of the dataset to what the policy takes."""
    postprocess: Callable[[Tensor], Tensor]
    """From what the policy predicts to the dataset's units."""
    delta_timestamps: Mapping[str, list[float]]
    """Which frames of which feature a batch must hold, by the dataset's names."""
    action: str
    """The feature that is predicted, by the dataset's name."""
    make_optimizer: Callable[[OptimizerConfig], Optimizer]
    """Makes the optimizer of all trainable parameters."""
    make_scheduler: Callable[[Optimizer, SchedulerConfig, int], LRScheduler | None]
    """Makes what changes the learning rates in a run of so many steps."""
    grad_clip_norm: float
    """Largest norm of the gradient where the run does not say; 0 leaves any."""
    save: Callable[[Path, Mapping[str, Tensor]], None]
    """Write everything that is needed to use the policy with these weights into a folder."""
    all_parameters_used: bool = True
    """Whether every parameter takes part in every loss."""
    first_action: int = 0
    """Step of the action window that the first predicted action belongs to."""


PolicyFactory = Callable[[PolicyRequest], PolicySetup]
"""What an entry point of the group ``lerobot_stream.policies`` names."""
