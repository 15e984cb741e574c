"""Only where LeRobot is installed, which wants other versions of much that we need."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file

from lerobot_stream.train.loop import train
from lerobot_stream.train.policies.act_config import ActConfig
from tests.train.tiny import tiny_config, write_tiny_dataset

pytest.importorskip("lerobot")

DIFFUSION = ActConfig(
    type="diffusion",
    device="cpu",
    options={
        "crop_shape": [24, 40],
        "down_dims": [16, 32],
        "horizon": 8,
        "n_action_steps": 4,
        "num_train_timesteps": 10,
    },
)


def test_one_of_lerobots_policies_trains_and_resumes_exactly(tmp_path: Path) -> None:
    write_tiny_dataset(tmp_path / "data", camera=True)
    out = tmp_path / "out"
    config = tiny_config(
        tmp_path / "data",
        out,
        policy=DIFFUSION,
        steps=2,
        save_freq=1,
        ema_decay=0.9,
        dataset={"eval_split": 0.25},
    )
    console = Console(file=io.StringIO())
    last = train(config, console=console)
    unbroken = load_file(last / "pretrained_model/model.safetensors")
    path = out / "checkpoints/000001/pretrained_model/train_config.json"
    train(replace(config, resume=True, config_path=str(path)), console=console)
    again = load_file(last / "pretrained_model/model.safetensors")
    torch.testing.assert_close(again, unbroken, rtol=0, atol=0)


def test_an_option_it_does_not_know_is_a_usage_error(tmp_path: Path) -> None:
    write_tiny_dataset(tmp_path / "data", camera=True)
    policy = replace(DIFFUSION, options={"horizons": 3})
    with pytest.raises(ValueError, match=r"--policy\.options: .*horizons"):
        train(
            tiny_config(tmp_path / "data", tmp_path / "out", policy=policy),
            console=Console(file=io.StringIO()),
        )
