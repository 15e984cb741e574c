"""From a batch of the dataset to what a policy takes, and from its actions back."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from lerobot_stream.train.features import ACTION
from lerobot_stream.train.normalize import Normalizer
from lerobot_stream.train.policies.base import Batch


class Preprocessor:
    """Renames features, moves them to the device, makes pictures float, normalises."""

    def __init__(
        self, normalizer: Normalizer, *, rename: Mapping[str, str], device: torch.device
    ) -> None:
        """Prepare for one policy.

        Args:
            normalizer: Statistics of all the policy's features.
            rename: Names as the policy knows them, by the dataset's.
            device: Where the policy computes.
        """
        self.normalizer = normalizer.to(device)
        self.rename = dict(rename)
        self.device = device

    def __call__(self, batch: Batch) -> Batch:
        """Make a policy's batch.

        Args:
            batch: Features by the dataset's names, uint8 or float pictures; it stays as it is.

        Returns:
            The policy's features, and pad masks, ``task`` and the like as they were, all
            tensors on the device.
        """
        ready: Batch = {}
        for name, value in batch.items():
            key = self._renamed(name)
            if not isinstance(value, Tensor):
                ready[key] = value
                continue
            value = value.to(self.device, non_blocking=True)
            ready[key] = self._scaled(key, value)
        return ready

    def _renamed(self, name: str) -> str:
        if name in self.rename:
            return self.rename[name]
        feature = name.removesuffix("_is_pad")
        return f"{self.rename[feature]}_is_pad" if feature in self.rename else name

    def _scaled(self, key: str, value: Tensor) -> Tensor:
        feature = self.normalizer.features.get(key)
        if feature is None:
            return value
        if value.dtype == torch.uint8 and feature.type == "VISUAL":
            value = value.to(torch.float32).div_(255)
        if feature.shape == (1,):  # the dataset gives single numbers without an axis
            value = value[..., None]
        return self.normalizer.normalize(key, value.to(torch.float32))


class Postprocessor:
    """Gives predicted actions the dataset's units again."""

    def __init__(self, normalizer: Normalizer, *, device: torch.device) -> None:
        """Prepare for one policy.

        Args:
            normalizer: Statistics of the action.
            device: Where the actions come from.
        """
        self.normalizer = normalizer.to(device)

    def __call__(self, actions: Tensor) -> Tensor:
        """``(..., D)`` in [-1, 1] or deviations, to the dataset's units."""
        return self.normalizer.unnormalize(ACTION, actions)
