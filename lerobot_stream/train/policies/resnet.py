"""ResNet-18 and ResNet-34 with frozen batch normalisation, as feature extractors.

Parameter names are torchvision's, so that its weights load.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

BLOCKS = {"resnet18": (2, 2, 2, 2), "resnet34": (3, 4, 6, 3)}
"""Residual blocks of each stage."""


class FrozenBatchNorm2d(nn.Module):
    """Batch normalisation with statistics and scale that training leaves alone."""

    weight: Tensor
    bias: Tensor
    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int) -> None:
        """Start as the identity."""
        super().__init__()
        self.register_buffer("weight", torch.ones(channels))
        self.register_buffer("bias", torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise ``(B, C, H, W)`` by channel."""
        scale = self.weight * torch.rsqrt(self.running_var + 1e-5)
        shift = self.bias - self.running_mean * scale
        return x * scale[:, None, None] + shift[:, None, None]


class BasicBlock(nn.Module):
    """Two 3×3 convolutions beside a short cut."""

    def __init__(self, channels_in: int, channels: int, *, stride: int, dilation: int) -> None:
        """Make a block; ``stride`` and ``dilation`` belong to its first convolution."""
        super().__init__()
        self.conv1 = nn.Conv2d(
            channels_in,
            channels,
            3,
            stride=stride,
            padding=dilation,
            dilation=dilation,
            bias=False,
        )
        self.bn1 = FrozenBatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = FrozenBatchNorm2d(channels)
        self.downsample: nn.Sequential | None = None
        if stride != 1 or channels_in != channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride=stride, bias=False),
                FrozenBatchNorm2d(channels),
            )

    def forward(self, x: Tensor) -> Tensor:
        """``(B, C_in, H, W)`` to ``(B, C, H / stride, W / stride)``."""
        shortcut = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.bn2(self.conv2(x))
        return F.relu(x + shortcut)


class ResNet(nn.Module):
    """The convolutional part of a ResNet."""

    channels = 512
    """Channels of the feature map."""

    def __init__(self, name: str, *, dilate_last: bool) -> None:
        """Make a network with random weights.

        Args:
            name: A key of :data:`BLOCKS`.
            dilate_last: Dilate the last stage instead of halving its resolution.
        """
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = FrozenBatchNorm2d(64)
        first, second, third, last = BLOCKS[name]
        self.layer1 = _stage(64, 64, first, stride=1)
        self.layer2 = _stage(64, 128, second, stride=2)
        self.layer3 = _stage(128, 256, third, stride=2)
        self.layer4 = _stage(256, 512, last, stride=1 if dilate_last else 2, dilated=dilate_last)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """``(B, 3, H, W)`` to a feature map ``(B, 512, H / 32, W / 32)``, rounded up."""
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.max_pool2d(x, 3, stride=2, padding=1)
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = stage(x)
        return x


def _stage(
    channels_in: int, channels: int, blocks: int, *, stride: int, dilated: bool = False
) -> nn.Sequential:
    """The first block changes resolution and width, the others keep them."""
    rest = [
        BasicBlock(channels, channels, stride=1, dilation=2 if dilated else 1)
        for _ in range(blocks - 1)
    ]
    return nn.Sequential(BasicBlock(channels_in, channels, stride=stride, dilation=1), *rest)
