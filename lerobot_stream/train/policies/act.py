"""ACT as a policy: loss for training, actions for use."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lerobot_stream.train.features import ACTION, PolicyFeatures
from lerobot_stream.train.policies.act_config import ActConfig
from lerobot_stream.train.policies.act_model import ActModel
from lerobot_stream.train.policies.base import Batch, Policy
from lerobot_stream.train.policies.rollout import ActionQueue, TemporalEnsemble

BACKBONE = "model.backbone"
"""Where the names of the picture network's parameters start."""


class ActPolicy(Policy):
    """Predicts ``chunk_size`` actions from one look at the scene."""

    def __init__(self, config: ActConfig, features: PolicyFeatures) -> None:
        """Make a policy with random weights.

        Args:
            config: Its settings.
            features: What it sees and predicts.
        """
        super().__init__()
        self.config = config
        self.features = features
        self.model = ActModel(config, features)
        self.reset()

    def reset(self) -> None:
        """Forget the actions of the last rollout."""
        coefficient = self.config.temporal_ensemble_coeff
        self._rollout: ActionQueue | TemporalEnsemble
        if coefficient is None:
            self._rollout = ActionQueue(self.config.n_action_steps)
        else:
            self._rollout = TemporalEnsemble(coefficient)

    def forward(
        self, batch: Batch, num_valid: Tensor | None = None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """L1 over unmasked steps plus, with a VAE, the latent's divergence from N(0, 1).

        Args:
            batch: Normalised inputs, ``action`` ``(B, T, D)`` and ``action_is_pad`` ``(B, T)``.
            num_valid: Steps to divide the sum of the errors by, see :class:`Policy`.

        Returns:
            The loss, with ``l1_loss`` and ``kld_loss`` apart.
        """
        actions = batch[ACTION]
        is_pad = batch.get(f"{ACTION}_is_pad")
        if is_pad is None:
            is_pad = torch.zeros(actions.shape[:2], dtype=torch.bool, device=actions.device)
        latent = actions.new_zeros(len(actions), self.config.latent_dim)
        divergence = None
        if self.config.use_vae:
            mean, log_variance = self.model.encode_style(batch, is_pad)
            latent = mean + (log_variance / 2).exp() * torch.randn_like(mean)
            each = -0.5 * (1 + log_variance - mean.square() - log_variance.exp())
            divergence = each.sum(dim=1).mean()
        predicted = self.model(batch, latent)
        valid = ~is_pad
        error = F.l1_loss(predicted, actions, reduction="none") * valid[..., None]
        count = valid.sum() if num_valid is None else num_valid
        loss = error.sum() / (count.clamp(min=1) * actions.shape[2])
        metrics = {"l1_loss": loss.detach()}
        if divergence is not None:
            metrics["kld_loss"] = divergence.detach()
            loss = loss + self.config.kl_weight * divergence
        return loss, metrics

    @torch.no_grad()
    def predict_action_chunk(self, batch: Batch) -> Tensor:
        """Predict ``(B, chunk_size, D)`` normalised actions, in evaluation mode."""
        was_training = self.training
        self.eval()
        first = next(iter(self.features.inputs))
        latent = batch[first].new_zeros(len(batch[first]), self.config.latent_dim)
        actions: Tensor = self.model(batch, latent)
        self.train(was_training)
        return actions

    def select_action(self, batch: Batch) -> Tensor:
        """Return the next ``(B, D)`` normalised action of a rollout; see :meth:`reset`."""
        return self._rollout.next_action(lambda: self.predict_action_chunk(batch))

    def param_groups(self) -> list[dict[str, Any]]:
        """Trainable parameters, those of the backbone with a rate of their own."""
        named = [(name, p) for name, p in self.named_parameters() if p.requires_grad]
        decay = self.config.optimizer_weight_decay
        rates = {False: self.config.optimizer_lr, True: self.config.optimizer_lr_backbone}
        groups = [
            {
                "params": [p for name, p in named if name.startswith(BACKBONE) == backbone],
                "lr": rate,
                "weight_decay": decay,
            }
            for backbone, rate in rates.items()
        ]
        return [group for group in groups if group["params"]]
