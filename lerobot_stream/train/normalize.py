"""Features scaled by the dataset's statistics, and back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lerobot_stream.errors import DatasetError
from lerobot_stream.train.features import PolicyFeature

Stats = Mapping[str, Mapping[str, NDArray[np.float64]]]
"""Statistics by feature, then by name (``mean``, ``std``, ``min``, ``max``)."""

EPSILON = 1e-8
"""Added to a deviation, or taken for a range of zero, before dividing by it."""

IMAGENET = {
    "mean": np.array([0.485, 0.456, 0.406]).reshape(3, 1, 1),
    "std": np.array([0.229, 0.224, 0.225]).reshape(3, 1, 1),
}
"""Statistics of the pictures that pretrained backbones have seen."""

_NEEDED = {"MEAN_STD": ("mean", "std"), "MIN_MAX": ("min", "max"), "IDENTITY": ()}


class Normalizer:
    """Scales each feature in the way its type asks for."""

    def __init__(
        self,
        features: Mapping[str, PolicyFeature],
        modes: Mapping[str, str],
        stats: Mapping[str, Mapping[str, Tensor]],
    ) -> None:
        """Take statistics that were prepared by :func:`prepare_stats`.

        Args:
            features: The features it is for.
            modes: ``MEAN_STD``, ``MIN_MAX`` or ``IDENTITY`` for each type of feature; a type
                that is not there is left as it is.
            stats: Statistics by feature and name, on one device.
        """
        self.features = dict(features)
        self.modes = dict(modes)
        self.stats = {key: dict(named) for key, named in stats.items()}

    def to(self, device: torch.device) -> Normalizer:
        """The same on another device."""
        moved = {
            key: {name: value.to(device) for name, value in named.items()}
            for key, named in self.stats.items()
        }
        return Normalizer(self.features, self.modes, moved)

    def normalize(self, key: str, value: Tensor) -> Tensor:
        """Scale a feature.

        Args:
            key: Its name.
            value: ``(B, ..., *shape)`` in the dataset's units.

        Returns:
            Mean 0 and deviation 1, or the range [-1, 1].
        """
        mode = self._mode(key)
        if mode == "MEAN_STD":
            mean, deviation = self._pair(key, "mean", "std")
            return (value - mean) / (deviation + EPSILON)
        if mode == "MIN_MAX":
            least, span = self._span(key)
            return 2 * (value - least) / span - 1
        return value

    def unnormalize(self, key: str, value: Tensor) -> Tensor:
        """Undo :meth:`normalize`."""
        mode = self._mode(key)
        if mode == "MEAN_STD":
            mean, deviation = self._pair(key, "mean", "std")
            return value * deviation + mean
        if mode == "MIN_MAX":
            least, span = self._span(key)
            return (value + 1) / 2 * span + least
        return value

    def _mode(self, key: str) -> str:
        feature = self.features.get(key)
        return "IDENTITY" if feature is None else self.modes.get(feature.type, "IDENTITY")

    def _pair(self, key: str, first: str, second: str) -> tuple[Tensor, Tensor]:
        return self.stats[key][first], self.stats[key][second]

    def _span(self, key: str) -> tuple[Tensor, Tensor]:
        least, most = self._pair(key, "min", "max")
        span = most - least
        return least, torch.where(span == 0, EPSILON, span)


def prepare_stats(
    features: Mapping[str, PolicyFeature],
    modes: Mapping[str, str],
    stats: Stats,
    *,
    use_imagenet_stats: bool,
) -> dict[str, dict[str, Tensor]]:
    """Take what normalisation needs out of a dataset's statistics.

    A number that never changes has deviation 0, which would blow rounding errors up to any
    size: it gets deviation 1.

    Args:
        features: The features, by the policy's names.
        modes: How each type is normalised.
        stats: The dataset's statistics, by the policy's names.
        use_imagenet_stats: Replace mean and deviation of pictures by ImageNet's.

    Returns:
        ``mean``, ``std``, ``min`` and ``max`` where they are there, float32, in the shape of
        the feature; ``(C, 1, 1)`` for pictures.

    Raises:
        DatasetError: A statistic that is needed is missing or of another shape.
    """
    prepared: dict[str, dict[str, Tensor]] = {}
    for key, feature in features.items():
        named = dict(stats.get(key, {}))
        if use_imagenet_stats and feature.type == "VISUAL":
            named |= IMAGENET
        for name in _NEEDED[modes.get(feature.type, "IDENTITY")]:
            if name not in named:
                raise DatasetError(
                    f"no {name} of {key}",
                    path="meta/stats.json",
                    hint="pictures can do without: --dataset.use_imagenet_stats=true"
                    if feature.type == "VISUAL"
                    else f"or leave it as it is: --policy.normalization_mapping="
                    f'{{"{feature.type}":"IDENTITY",…}}',
                )
        prepared[key] = _as_tensors(key, feature, named)
    return prepared


def _as_tensors(
    key: str, feature: PolicyFeature, named: Mapping[str, NDArray[np.float64]]
) -> dict[str, Tensor]:
    shape = (feature.shape[0], 1, 1) if feature.type == "VISUAL" else feature.shape
    tensors = {}
    for name in ("mean", "std", "min", "max"):
        if name not in named:
            continue
        value = _shaped(named[name], shape, f"{name} of {key}")
        if name == "std" and "mean" in named:
            mean = _shaped(named["mean"], shape, f"mean of {key}")
            spacing = np.finfo(np.float32).eps * np.abs(mean)
            value = np.where(value <= np.maximum(spacing, EPSILON), 1.0, value)
        tensors[name] = torch.from_numpy(value.astype(np.float32))
    return tensors


def _shaped(value: NDArray[np.float64], shape: tuple[int, ...], name: str) -> NDArray[np.float64]:
    """A statistic in its feature's shape; a single number counts for every element."""
    value = np.asarray(value, dtype=np.float64)
    if value.size == 1:
        return np.full(shape, value.item())
    if value.size != np.prod(shape):
        raise DatasetError(
            f"{name} has shape {list(value.shape)}, wanted {list(shape)}", path="meta/stats.json"
        )
    return value.reshape(shape)
