"""The transformer of ACT: tokens first, batch second, positions added to queries and keys."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lerobot_stream.train.policies.act_config import ActConfig

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward network."""

    def __init__(self, config: ActConfig) -> None:
        """Make a layer with random weights."""
        super().__init__()
        width, dropout = config.dim_model, config.dropout
        self.self_attn = nn.MultiheadAttention(width, config.n_heads, dropout=dropout)
        self.linear1 = nn.Linear(width, config.dim_feedforward)
        self.dropout = nn.Dropout(dropout)
        self.linear2 = nn.Linear(config.dim_feedforward, width)
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.dropout1 = nn.Dropout(dropout)
        self.dropout2 = nn.Dropout(dropout)
        self.activation = ACTIVATIONS[config.feedforward_activation]
        self.pre_norm = config.pre_norm

    def forward(self, x: Tensor, position: Tensor, key_is_pad: Tensor | None) -> Tensor:
        """``(S, B, D)`` to the same; ``key_is_pad`` is ``(B, S)``."""
        seen = self.norm1(x) if self.pre_norm else x
        query = seen + position
        attended = self.self_attn(
            query, query, value=seen, key_padding_mask=key_is_pad, need_weights=False
        )[0]
        x = x + self.dropout1(attended)
        x = x if self.pre_norm else self.norm1(x)
        seen = self.norm2(x) if self.pre_norm else x
        x = x + self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(seen)))))
        return x if self.pre_norm else self.norm2(x)


class Encoder(nn.Module):
    """A stack of encoder layers."""

    def __init__(self, config: ActConfig, layers: int) -> None:
        """Make ``layers`` layers."""
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(layers))
        self.norm = nn.LayerNorm(config.dim_model) if config.pre_norm else nn.Identity()

    def forward(self, x: Tensor, position: Tensor, key_is_pad: Tensor | None = None) -> Tensor:
        """``(S, B, D)`` to the same."""
        for layer in self.layers:
            x = layer(x, position, key_is_pad)
        normed: Tensor = self.norm(x)
        return normed


class DecoderLayer(nn.Module):
    """Self-attention, attention to the encoder's tokens, then a feed-forward network."""

    def __init__(self, config: ActConfig) -> None:
        """Make a layer with random weights."""
        super().__init__()
        width, dropout = config.dim_model, config.dropout
        self.self_attn = nn.MultiheadAttention(width, config.n_heads, dropout=dropout)
        self.multihead_attn = nn.MultiheadAttention(width, config.n_heads, dropout=dropout)
        self.linear1 = nn.Linear(width, config.dim_feedforward)
        self.dropout = nn.Dropout(dropout)
        self.linear2 = nn.Linear(config.dim_feedforward, width)
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.norm3 = nn.LayerNorm(width)
        self.dropout1 = nn.Dropout(dropout)
        self.dropout2 = nn.Dropout(dropout)
        self.dropout3 = nn.Dropout(dropout)
        self.activation = ACTIVATIONS[config.feedforward_activation]
        self.pre_norm = config.pre_norm

    def forward(self, x: Tensor, position: Tensor, memory: Tensor, places: Tensor) -> Tensor:
        """``(T, B, D)`` to the same, attending to ``memory`` ``(S, B, D)`` at ``places``."""
        seen = self.norm1(x) if self.pre_norm else x
        query = seen + position
        x = x + self.dropout1(self.self_attn(query, query, value=seen, need_weights=False)[0])
        x = x if self.pre_norm else self.norm1(x)
        seen = self.norm2(x) if self.pre_norm else x
        attended = self.multihead_attn(
            seen + position, memory + places, value=memory, need_weights=False
        )[0]
        x = x + self.dropout2(attended)
        x = x if self.pre_norm else self.norm2(x)
        seen = self.norm3(x) if self.pre_norm else x
        x = x + self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(seen)))))
        return x if self.pre_norm else self.norm3(x)


class Decoder(nn.Module):
    """A stack of decoder layers."""

    def __init__(self, config: ActConfig) -> None:
        """Make its layers."""
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.n_decoder_layers))
        self.norm = nn.LayerNorm(config.dim_model)

    def forward(self, x: Tensor, position: Tensor, memory: Tensor, places: Tensor) -> Tensor:
        """``(T, B, D)`` to the same."""
        for layer in self.layers:
            x = layer(x, position, memory, places)
        normed: Tensor = self.norm(x)
        return normed


def sine_positions(count: int, width: int) -> Tensor:
    """Positions on a line: sines at even, cosines at odd places.

    Args:
        count: Positions, from 0.
        width: Numbers a position.

    Returns:
        ``(count, width)``
    """
    rate = 10_000 ** (-2 * (torch.arange(width, dtype=torch.float64) // 2) / width)
    angle = torch.arange(count, dtype=torch.float64)[:, None] * rate
    table = torch.where(torch.arange(width) % 2 == 0, angle.sin(), angle.cos())
    return table.to(torch.float32)


def sine_positions_2d(height: int, width: int, numbers: int, *, device: torch.device) -> Tensor:
    """Positions in a picture, each axis scaled to one turn: rows first, then columns.

    Args:
        height: Rows of the feature map.
        width: Columns of the feature map.
        numbers: Numbers a position, a multiple of 4.
        device: Where to make them.

    Returns:
        ``(1, numbers, height, width)``
    """
    half = numbers // 2
    rate = 10_000 ** (2 * (torch.arange(half, device=device) // 2).to(torch.float32) / half)

    def axis(size: int) -> Tensor:
        place = torch.arange(1, size + 1, device=device, dtype=torch.float32)
        angle = (place / (size + 1e-6) * 2 * math.pi)[:, None] / rate
        return torch.stack((angle[:, 0::2].sin(), angle[:, 1::2].cos()), dim=2).flatten(1)

    rows = axis(height)[:, None].expand(height, width, half)
    columns = axis(width)[None].expand(height, width, half)
    return torch.cat((rows, columns), dim=2).permute(2, 0, 1)[None]
