"""Random changes of pictures, drawn once for an item and equal for all its time steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

Ranges = Mapping[str, tuple[float, float]]
"""Lowest and highest value of each quantity of a change."""

_GREY = (0.2989, 0.587, 0.114)


class Augment:
    """Makes some of several changes, with random strength.

    All draws come from PyTorch's global generator on the CPU; whoever seeds it for each item
    gets the same pictures again.
    """

    def __init__(
        self,
        changes: Sequence[tuple[float, Ranges]],
        *,
        max_num_transforms: int,
        random_order: bool,
    ) -> None:
        """Take the changes there are.

        Args:
            changes: Weight and ranges of each. Ranges are of ``brightness``, ``contrast``,
                ``saturation`` and ``sharpness`` (1 changes nothing), ``hue`` (in turns, 0
                changes nothing), ``degrees``, ``scale``, and ``translate`` (largest shares of
                width and height).
            max_num_transforms: How many are made, if there are as many with a weight.
            random_order: Make them in random order, else in the order given.

        Raises:
            ValueError: A range is of no known quantity.
        """
        for _, ranges in changes:
            unknown = set(ranges) - set(_COLOUR) - set(_AFFINE)
            if unknown:
                raise ValueError(f"no picture change is called {', '.join(sorted(unknown))}")
        self._changes = [ranges for weight, ranges in changes if weight > 0]
        self._weights = torch.tensor([weight for weight, _ in changes if weight > 0])
        self._count = min(max_num_transforms, len(self._changes))
        self._random_order = random_order

    def __call__(self, frames: Tensor) -> Tensor:
        """Change the pictures of one camera of one item.

        Args:
            frames: ``(C, H, W)`` or ``(T, C, H, W)``, uint8, or float in [0, 1].

        Returns:
            New pictures of the same shape and type.
        """
        if not self._count:
            return frames
        chosen = torch.multinomial(self._weights, self._count).tolist()
        pictures = frames.reshape(-1, *frames.shape[-3:])
        pictures = pictures / 255 if frames.dtype == torch.uint8 else pictures.clone()
        for number in chosen if self._random_order else sorted(chosen):
            pictures = _change(pictures, self._changes[number])
        if frames.dtype == torch.uint8:
            pictures = pictures.mul_(255).round_().to(torch.uint8)
        return pictures.reshape(frames.shape)


def _change(pictures: Tensor, ranges: Ranges) -> Tensor:
    for name, change in _COLOUR.items():
        if name in ranges:
            pictures = change(pictures, _uniform(*ranges[name])).clamp_(0, 1)
    if any(name in ranges for name in _AFFINE):
        dx, dy = ranges.get("translate", (0.0, 0.0))
        height, width = pictures.shape[-2:]
        pictures = move(
            pictures,
            degrees=_uniform(*ranges.get("degrees", (0.0, 0.0))),
            scale=_uniform(*ranges.get("scale", (1.0, 1.0))),
            right=round(_uniform(-dx * width, dx * width)),
            down=round(_uniform(-dy * height, dy * height)),
        )
    return pictures


def _uniform(low: float, high: float) -> float:
    return low + (high - low) * torch.rand(()).item()


def grey(pictures: Tensor) -> Tensor:
    """``(N, 3, H, W)`` to its brightness, ``(N, 1, H, W)``; one channel stays as it is."""
    if pictures.shape[1] != 3:
        return pictures.mean(dim=1, keepdim=True)
    weights = torch.tensor(_GREY, dtype=pictures.dtype)
    return (pictures * weights[:, None, None]).sum(dim=1, keepdim=True)


def _brightness(pictures: Tensor, factor: float) -> Tensor:
    return pictures * factor


def _contrast(pictures: Tensor, factor: float) -> Tensor:
    mean = grey(pictures).mean(dim=(1, 2, 3), keepdim=True)
    return mean + (pictures - mean) * factor


def _saturation(pictures: Tensor, factor: float) -> Tensor:
    brightness = grey(pictures)
    return brightness + (pictures - brightness) * factor


def _hue(pictures: Tensor, turns: float) -> Tensor:
    """Turn colours around the grey axis, in the hexagonal model (HSV)."""
    if pictures.shape[1] != 3:
        return pictures
    most, least = pictures.amax(dim=1, keepdim=True), pictures.amin(dim=1, keepdim=True)
    spread = most - least
    red, green, blue = pictures[:, 0:1], pictures[:, 1:2], pictures[:, 2:3]
    safe = torch.where(spread == 0, 1, spread)
    angle = torch.where(
        most == red,
        (green - blue) / safe,
        torch.where(most == green, 2 + (blue - red) / safe, 4 + (red - green) / safe),
    )
    sixth = (angle + turns * 6) % 6
    channels = []
    for shift in (5, 3, 1):  # each channel falls from `most` to `least` and rises again
        place = (shift + sixth) % 6
        channels.append(most - spread * torch.minimum(place, 4 - place).clamp(0, 1))
    return torch.cat(channels, dim=1)


def _sharpness(pictures: Tensor, factor: float) -> Tensor:
    """Move away from (above 1) or to a smoothed picture; the border stays as it is."""
    if min(pictures.shape[-2:]) < 3:
        return pictures
    channels = pictures.shape[1]
    kernel = torch.ones(3, 3, dtype=pictures.dtype)
    kernel[1, 1] = 5
    kernel = (kernel / kernel.sum()).expand(channels, 1, 3, 3)
    smooth = pictures.clone()
    smooth[:, :, 1:-1, 1:-1] = F.conv2d(pictures, kernel, groups=channels)
    return smooth + (pictures - smooth) * factor


_COLOUR: dict[str, Callable[[Tensor, float], Tensor]] = {
    "brightness": _brightness,
    "contrast": _contrast,
    "saturation": _saturation,
    "hue": _hue,
    "sharpness": _sharpness,
}
_AFFINE = ("degrees", "translate", "scale")


def move(pictures: Tensor, *, degrees: float, scale: float, right: int, down: int) -> Tensor:
    """Turn clockwise around the middle, scale, then shift; what comes in from outside is black.

    Args:
        pictures: ``(N, C, H, W)``
        degrees: Angle.
        scale: Above 1 enlarges.
        right: Pixels.
        down: Pixels.

    Returns:
        The same shape, interpolated between neighbouring pixels.
    """
    height, width = pictures.shape[-2:]
    angle = math.radians(degrees)
    cos, sin = math.cos(angle) / scale, math.sin(angle) / scale
    # From a place in the new picture to one in the old, both in half widths and heights.
    x, y = 2 * right / width, 2 * down / height
    ratio = height / width
    inverse = [
        [cos, sin * ratio, -cos * x - sin * ratio * y],
        [-sin / ratio, cos, sin / ratio * x - cos * y],
    ]
    theta = torch.tensor(inverse, dtype=pictures.dtype).expand(len(pictures), 2, 3)
    grid = F.affine_grid(theta, list(pictures.shape), align_corners=False)
    return F.grid_sample(pictures, grid, mode="bilinear", align_corners=False)
