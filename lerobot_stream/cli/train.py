"""``train``: train a policy."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from lerobot_stream.cli.options import merge_values, parse_flags, takes_settings
from lerobot_stream.cli.setting import list_settings
from lerobot_stream.cli.settings_help import SettingsCommand
from lerobot_stream.train.checkpoint import find_checkpoint
from lerobot_stream.train.config import TrainConfig
from lerobot_stream.train.records import record_from_json


class Command(SettingsCommand):
    """``train --help`` lists every setting."""

    settings = tuple(list_settings(TrainConfig))


@takes_settings(TrainConfig)
def command(flags: Mapping[str, str]) -> None:
    """Train a policy on a LeRobotDataset v3, read from where it lies.

    Values are written out: --dataset.streaming=true, --seed=null, --dataset.episodes=[0,1,2] or
    --dataset.episodes=@episodes.json. Flags go before the values of --config_path. The path of the
    last checkpoint is printed to stdout.
    """
    explicit = parse_flags(TrainConfig, flags)
    path = explicit.get("config_path")
    if explicit.get("resume") and path is None:
        raise ValueError(
            "--resume=true needs "
            "--config_path=…/checkpoints/last/pretrained_model/train_config.json"
        )
    if explicit.get("resume") and isinstance(path, str):
        find_checkpoint(Path(path))  # says more than its settings would, if it is none of ours
    defaults = _read_defaults(path)
    config = record_from_json(TrainConfig, merge_values(TrainConfig, explicit, defaults))

    # Read when torch loads OpenMP: threads that spin while they wait take the cores that decode.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from lerobot_stream.train.distributed import read_ranks
    from lerobot_stream.train.loop import train

    checkpoint = train(config, explicit=frozenset(explicit), console=Console(stderr=True))
    rank, _, _ = read_ranks(os.environ)
    if rank == 0:
        typer.echo(checkpoint)


def _read_defaults(path: object) -> dict[str, Any]:
    if not isinstance(path, str):
        return {}
    try:
        values = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise ValueError(f"--config_path: {path} cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise ValueError(f"--config_path: {path} is not JSON ({error})") from None
    if not isinstance(values, dict):
        raise ValueError(f"--config_path: {path} holds no JSON object")
    return values
