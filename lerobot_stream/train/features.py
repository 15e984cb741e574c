"""Which features of a dataset a policy sees, and which it predicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lerobot_stream.dataset.columns import column_dtype
from lerobot_stream.dataset.info import Feature

FeatureType = Literal["STATE", "VISUAL", "ENV", "ACTION"]

ACTION = "action"
STATE = "observation.state"
ENVIRONMENT = "observation.environment_state"


@dataclass(frozen=True, slots=True)
class PolicyFeature:
    """One feature as a policy knows it."""

    type: FeatureType
    """What kind of thing it is."""
    shape: tuple[int, ...]
    """Shape of one time step; pictures are ``(C, H, W)``."""

    def to_json(self) -> dict[str, Any]:
        """The form it has in a policy's ``config.json``."""
        return {"type": self.type, "shape": list(self.shape)}


@dataclass(frozen=True, slots=True)
class PolicyFeatures:
    """All features of a policy."""

    inputs: Mapping[str, PolicyFeature]
    """What it sees, by the policy's names."""
    outputs: Mapping[str, PolicyFeature]
    """What it predicts."""

    @property
    def cameras(self) -> tuple[str, ...]:
        """Names of the pictures among the inputs."""
        return tuple(key for key, one in self.inputs.items() if one.type == "VISUAL")

    def everything(self) -> dict[str, PolicyFeature]:
        """Inputs, then outputs."""
        return {**self.inputs, **self.outputs}


def split_features(features: Mapping[str, Feature], *, rename: Mapping[str, str]) -> PolicyFeatures:
    """Sort a dataset's features into what a policy sees and what it predicts.

    Args:
        features: The dataset's features.
        rename: Names as the policy knows them, by the dataset's.

    Returns:
        Pictures, ``observation…`` and ``action…``; all else (times, numbers, text) is left out.

    Raises:
        ValueError: ``rename`` names a feature that the dataset does not have.
    """
    for key in rename:
        if key not in features:
            raise ValueError(
                f"--rename_map names {key}, which the dataset does not have; "
                f"it has {', '.join(features)}"
            )
    kinds = {}
    for key, feature in features.items():
        name = rename.get(key, key)
        kind = _type_of(name, feature)
        if kind is not None:
            picture = (
                (feature.channels, feature.height, feature.width) if kind == "VISUAL" else None
            )
            kinds[name] = PolicyFeature(kind, picture or feature.shape or (1,))
    return PolicyFeatures(
        inputs={key: one for key, one in kinds.items() if one.type != "ACTION"},
        outputs={key: one for key, one in kinds.items() if one.type == "ACTION"},
    )


def _type_of(name: str, feature: Feature) -> FeatureType | None:
    if feature.dtype in ("video", "image"):
        return "VISUAL"
    if column_dtype(feature.dtype).kind == "O":  # text, and what else is no number
        return None
    if name == ENVIRONMENT:
        return "ENV"
    if name.startswith("observation"):
        return "STATE"
    return "ACTION" if name.startswith(ACTION) else None
