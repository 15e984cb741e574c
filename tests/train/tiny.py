"""A policy, a batch and a dataset so small that training takes milliseconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from lerobot_stream.train.config import DatasetConfig, TrainConfig
from lerobot_stream.train.features import PolicyFeature, PolicyFeatures
from lerobot_stream.train.policies.act_config import ActConfig
from lerobot_stream.train.policies.base import Batch
from tests.lerobot import Written, write_dataset

CAMERA = "observation.images.top"

TINY_ACT = ActConfig(
    chunk_size=4,
    n_action_steps=4,
    dim_model=32,
    n_heads=2,
    dim_feedforward=64,
    n_encoder_layers=1,
    n_vae_encoder_layers=1,
    latent_dim=4,
    device="cpu",
    optimizer_lr=1e-3,
    optimizer_lr_backbone=1e-4,
)

FEATURES = PolicyFeatures(
    inputs={
        "observation.state": PolicyFeature("STATE", (3,)),
        CAMERA: PolicyFeature("VISUAL", (3, 32, 48)),
    },
    outputs={"action": PolicyFeature("ACTION", (2,))},
)


def make_batch(size: int = 4, *, seed: int = 0) -> Batch:
    """Make a preprocessed batch whose last action steps are padding."""
    generator = torch.Generator().manual_seed(seed)
    is_pad = torch.zeros(size, TINY_ACT.chunk_size, dtype=torch.bool)
    for row in range(size):
        is_pad[row, TINY_ACT.chunk_size - row % 3 :] = True
    return {
        "observation.state": torch.randn(size, 3, generator=generator),
        CAMERA: torch.randn(size, 3, 32, 48, generator=generator),
        "action": torch.randn(size, TINY_ACT.chunk_size, 2, generator=generator),
        "action_is_pad": is_pad,
    }


def write_tiny_dataset(
    root: Path, *, camera: bool, lengths: tuple[int, ...] = (9, 7, 8, 6)
) -> Written:
    """Write a dataset whose columns are of moderate size, maybe with a camera kept as images."""
    frames = sum(lengths)
    time = np.arange(frames) / frames
    state = np.stack([np.sin(7 * time), np.cos(5 * time), time], 1).astype(np.float32)
    action = np.stack([np.sin(7 * time + 0.2), time * 2], 1).astype(np.float32)
    return write_dataset(
        root,
        lengths=lengths,
        image_cameras={CAMERA: (32, 48)} if camera else {},
        features={"observation.state": state, "action": action},
    )


def tiny_config(root: Path, output: Path, **changes: object) -> TrainConfig:
    """Make the settings of a short run; ``dataset`` settings are given as a mapping."""
    dataset = changes.pop("dataset", {})
    assert isinstance(dataset, dict)
    settings: dict[str, object] = {
        "policy": TINY_ACT,
        "output_dir": str(output),
        "batch_size": 4,
        "steps": 6,
        "log_freq": 2,
        "save_freq": 3,
        "num_workers": 0,
    }
    reading = {"root": str(root), "streaming": True, "streaming_decode_threads": 1} | dataset
    return TrainConfig(DatasetConfig("local/tiny", **reading), **{**settings, **changes})  # type: ignore[arg-type]
