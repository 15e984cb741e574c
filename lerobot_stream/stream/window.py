"""Which frames an item shows of each feature: offsets from ``delta_timestamps``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_MAX_OFFSET = 1 << 40  # frames
_OLD_PAD_SUFFIX = ".pad_masking"


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Frame offsets of one feature, relative to the item's own frame."""

    offset: NDArray[np.int64]
    """``(T,)`` Frames before (negative) or after the item's frame."""

    def numbers(self, frame: NDArray[np.int64], length: int) -> NDArray[np.int64]:
        """Frame numbers that the items at ``frame`` show, clamped inside their episode.

        Args:
            frame: ``(m,)`` Frame numbers of the items.
            length: Frames in the episode.

        Returns:
            ``(m, T)`` Frame numbers in ``[0, length)``.
        """
        numbers: NDArray[np.int64] = np.clip(frame[:, None] + self.offset, 0, length - 1)
        return numbers

    def is_pad(self, frame: NDArray[np.int64], length: int) -> NDArray[np.bool_]:
        """``(m, T)`` True where :meth:`numbers` had to clamp."""
        wanted = frame[:, None] + self.offset
        return (wanted < 0) | (wanted >= length)


def plan_windows(
    delta_timestamps: Mapping[str, Sequence[float]] | None,
    *,
    keys: Sequence[str],
    fps: float,
    tolerance_s: float,
) -> dict[str, Window]:
    """Turn seconds into frame offsets.

    Args:
        delta_timestamps: Seconds relative to the current frame, per feature.
        keys: The features that items have.
        fps: Frames per second of the dataset.
        tolerance_s: Seconds that a delta may lie off a multiple of ``1 / fps``, inclusive.

    Returns:
        One window for each key of ``delta_timestamps``.

    Raises:
        ValueError: A key is unknown, or a delta is no number or no multiple of ``1 / fps``.
    """
    windows = {}
    if not isinstance(delta_timestamps, Mapping | None):
        raise ValueError(f"delta_timestamps must map features to seconds, got {delta_timestamps!r}")
    for key, seconds in (delta_timestamps or {}).items():
        if key not in keys:
            hint = " (padding is in '<key>_is_pad')" if key.endswith(_OLD_PAD_SUFFIX) else ""
            known = ", ".join(sorted(keys))
            raise ValueError(f"delta_timestamps: no feature {key!r}{hint}; there are {known}")
        deltas = _seconds(key, seconds)
        with np.errstate(over="ignore"):
            offset = np.rint(deltas * fps)
        absurd = deltas[~(np.abs(offset) <= _MAX_OFFSET)]
        if len(absurd):
            raise ValueError(
                f"delta_timestamps: {key!r} has {absurd[0]:g} s, no episode is as long"
            )
        off_by = np.abs(deltas - offset / fps)
        worst = int(np.argmax(off_by))
        if not off_by[worst] <= tolerance_s:
            raise ValueError(
                f"delta_timestamps: {key!r} has {deltas[worst]:g} s, which is {off_by[worst]:.6f} "
                f"s from a multiple of 1/{fps:g} s, more than tolerance_s={tolerance_s:g}"
            )
        windows[key] = Window(offset.astype(np.int64))
    return windows


def _seconds(key: str, given: Sequence[float]) -> NDArray[np.float64]:
    """``(T,)`` What was given, if it is a list of numbers."""
    try:
        deltas = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        deltas = np.zeros(())
    if deltas.ndim != 1:
        raise ValueError(f"delta_timestamps: {key!r} must be a list of seconds, got {given!r}")
    if not len(deltas):
        raise ValueError(f"delta_timestamps: {key!r} has no steps")
    return deltas
