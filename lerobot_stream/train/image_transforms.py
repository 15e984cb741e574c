"""The random picture changes of a configuration, as ranges to draw from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DEFAULT_TRANSFORMS: dict[str, Any] = {
    "brightness": {"weight": 1.0, "type": "ColorJitter", "kwargs": {"brightness": [0.8, 1.2]}},
    "contrast": {"weight": 1.0, "type": "ColorJitter", "kwargs": {"contrast": [0.8, 1.2]}},
    "saturation": {"weight": 1.0, "type": "ColorJitter", "kwargs": {"saturation": [0.5, 1.5]}},
    "hue": {"weight": 1.0, "type": "ColorJitter", "kwargs": {"hue": [-0.05, 0.05]}},
    "sharpness": {"weight": 1.0, "type": "SharpnessJitter", "kwargs": {"sharpness": [0.5, 1.5]}},
    "affine": {
        "weight": 1.0,
        "type": "RandomAffine",
        "kwargs": {"degrees": [-5.0, 5.0], "translate": [0.05, 0.05]},
    },
}
"""LeRobot's set."""

_KWARGS: dict[str, dict[str, tuple[float, float]]] = {
    "ColorJitter": {
        "brightness": (0.0, 100.0),
        "contrast": (0.0, 100.0),
        "saturation": (0.0, 100.0),
        "hue": (-0.5, 0.5),
    },
    "SharpnessJitter": {"sharpness": (0.0, 100.0)},
    "RandomAffine": {"degrees": (-360.0, 360.0), "translate": (0.0, 1.0), "scale": (0.01, 100.0)},
}
"""Ranges that each type knows, with what they may contain."""


@dataclass(frozen=True, slots=True)
class TransformRanges:
    """One random change."""

    weight: float
    """How often it is chosen, relative to the others."""
    ranges: Mapping[str, tuple[float, float]]
    """Lowest and highest value of each quantity; for ``translate`` the largest share of width
    and height."""


def parse_transforms(tfs: Mapping[str, Any]) -> tuple[TransformRanges, ...]:
    """Read the changes of a configuration.

    Args:
        tfs: ``weight``, ``type`` and ``kwargs`` of each change, by name.

    Returns:
        The changes, in order.

    Raises:
        ValueError: A type, quantity or range makes no sense; it is named.
    """
    return tuple(_parse(name, entry) for name, entry in tfs.items())


def _parse(name: str, entry: Any) -> TransformRanges:
    if not isinstance(entry, Mapping) or not set(entry) <= {"weight", "type", "kwargs"}:
        raise ValueError(f"{name}: wanted an object of weight, type and kwargs, found {entry}")
    kind, weight = entry.get("type"), entry.get("weight", 1.0)
    if kind not in _KWARGS:
        raise ValueError(f"{name}: type must be one of {', '.join(_KWARGS)}, got {kind}")
    if not isinstance(weight, (int, float)) or not weight >= 0:
        raise ValueError(f"{name}: weight must be at least 0, got {weight}")
    kwargs = entry.get("kwargs", {})
    if not isinstance(kwargs, Mapping) or not kwargs:
        raise ValueError(f"{name}: kwargs must be an object of ranges, got {kwargs}")
    ranges = {key: _range(name, kind, key, value) for key, value in kwargs.items()}
    return TransformRanges(float(weight), ranges)


def _range(name: str, kind: str, key: str, value: Any) -> tuple[float, float]:
    known = _KWARGS[kind]
    if key not in known:
        raise ValueError(f"{name}: {kind} has no {key}; it has {', '.join(known)}")
    pair = value if isinstance(value, (list, tuple)) else None
    if pair is None or len(pair) != 2 or not all(isinstance(x, (int, float)) for x in pair):
        raise ValueError(f"{name}: {key} must be a list of two numbers, got {value}")
    low, high = float(pair[0]), float(pair[1])
    least, most = known[key]
    if not (least <= low <= most and least <= high <= most):
        raise ValueError(f"{name}: {key} must lie in [{least}, {most}], got {value}")
    if low > high and key != "translate":
        raise ValueError(f"{name}: {key} must rise, got {value}")
    return low, high
