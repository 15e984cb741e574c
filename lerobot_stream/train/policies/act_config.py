"""Settings of ACT, under LeRobot's names."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from lerobot_stream.train.policies.config import PolicyConfig
from lerobot_stream.train.settings import setting

NORMALIZATION = {"VISUAL": "MEAN_STD", "STATE": "MEAN_STD", "ACTION": "MEAN_STD"}
"""How each type of feature is normalised unless said otherwise."""

NORMALIZATION_MODES = ("MEAN_STD", "MIN_MAX", "IDENTITY")
"""The ways there are."""


@dataclass(frozen=True, slots=True)
class ActConfig(PolicyConfig):
    """A policy that predicts a chunk of actions with a transformer (Zhao et al., 2023)."""

    chunk_size: int = setting(100, least=1, help="Actions predicted at once.")
    n_action_steps: int = setting(
        100, least=1, help="Actions of a prediction that are carried out before the next one."
    )
    normalization_mapping: Mapping[str, str] = field(
        default_factory=lambda: dict(NORMALIZATION),
        metadata={
            "help": "MEAN_STD, MIN_MAX or IDENTITY for each of VISUAL, STATE, ENV and ACTION."
        },
    )
    vision_backbone: Literal["resnet18", "resnet34"] = setting(
        "resnet18", help="Network that sees the pictures."
    )
    pretrained_backbone_weights: str | None = setting(
        None,
        help="ResNet18_Weights.IMAGENET1K_V1 (from torch's cache or the Hub) or a .pth or "
        ".safetensors file; null starts from random weights.",
    )
    replace_final_stride_with_dilation: bool = setting(
        False, help="Keep the last feature map at twice the resolution."
    )
    pre_norm: bool = setting(False, help="Normalise before attention instead of after it.")
    dim_model: int = setting(512, least=4, help="Width of the transformer.")
    n_heads: int = setting(8, least=1, help="Attention heads.")
    dim_feedforward: int = setting(3200, least=1, help="Width inside the feed-forward layers.")
    feedforward_activation: Literal["relu", "gelu"] = setting(
        "relu", help="Activation of the feed-forward layers."
    )
    n_encoder_layers: int = setting(4, least=0, help="Layers of the encoder.")
    n_decoder_layers: int = setting(1, least=1, help="Layers of the decoder.")
    use_vae: bool = setting(True, help="Train with a latent variable that encodes the style.")
    latent_dim: int = setting(32, least=1, help="Size of the latent variable.")
    n_vae_encoder_layers: int = setting(4, least=1, help="Layers of the latent's encoder.")
    temporal_ensemble_coeff: float | None = setting(
        None, help="Weight decay of temporal ensembling; needs --policy.n_action_steps=1."
    )
    dropout: float = setting(0.1, least=0, below=1, help="Dropout in the transformer.")
    kl_weight: float = setting(10.0, least=0, help="Weight of the latent's KL divergence.")
    optimizer_lr: float = setting(1e-5, above=0, help="Learning rate.")
    optimizer_weight_decay: float = setting(1e-4, least=0, help="Weight decay of AdamW.")
    optimizer_lr_backbone: float = setting(1e-5, least=0, help="Learning rate of the backbone.")


def check_policy(config: ActConfig) -> None:
    """Check settings against each other.

    Args:
        config: Settings of ACT, or of another policy in ``options``.

    Raises:
        ValueError: Two settings exclude each other; both flags are named.
    """
    if config.type != "act":
        shared = {own.name for own in dataclasses.fields(PolicyConfig)}
        for name in (own.name for own in dataclasses.fields(ActConfig)):
            if name not in shared and getattr(config, name) != getattr(ActConfig(), name):
                raise ValueError(
                    f"--policy.{name} belongs to act, not to --policy.type={config.type}, "
                    "whose settings are given as --policy.options={…}"
                )
        return
    if config.options:
        raise ValueError("--policy.options are for policies other than act, which has flags")
    if config.n_action_steps > config.chunk_size:
        raise ValueError(
            f"--policy.n_action_steps={config.n_action_steps} is above "
            f"--policy.chunk_size={config.chunk_size}"
        )
    if config.temporal_ensemble_coeff is not None and config.n_action_steps != 1:
        raise ValueError(
            "--policy.temporal_ensemble_coeff needs --policy.n_action_steps=1, got "
            f"{config.n_action_steps}"
        )
    if config.dim_model % config.n_heads or config.dim_model % 4:
        raise ValueError(
            f"--policy.dim_model must be a multiple of 4 and of --policy.n_heads={config.n_heads}, "
            f"got {config.dim_model}"
        )
    for kind, mode in config.normalization_mapping.items():
        if mode not in NORMALIZATION_MODES:
            raise ValueError(
                f"--policy.normalization_mapping: {kind} must be one of "
                f"{', '.join(NORMALIZATION_MODES)}, got {mode}"
            )
