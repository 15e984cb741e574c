"""What a run's settings mean: where it continues, from which policy, into which folder."""

from __future__ import annotations

import dataclasses
import json
import secrets
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

from lerobot_stream.errors import CheckpointError, MissingFileError
from lerobot_stream.train.checkpoint import (
    CHECKPOINTS,
    LAST,
    PRETRAINED_MODEL,
    TRAIN_CONFIG,
    find_checkpoint,
)
from lerobot_stream.train.config import TrainConfig
from lerobot_stream.train.metrics_file import METRICS
from lerobot_stream.train.policies.act_config import ActConfig
from lerobot_stream.train.policies.act_files import CONFIG, read_act_config


@dataclasses.dataclass(frozen=True, slots=True)
class Resolved:
    """A run with nothing left to guess."""

    config: TrainConfig
    """Its settings, complete."""
    folder: Path
    """Its output folder."""
    checkpoint: Path | None
    """The checkpoint it continues."""
    weights: Path | None
    """The folder of the policy it starts from, be it to continue or to fine-tune."""


def resolve(config: TrainConfig, *, explicit: frozenset[str]) -> Resolved:
    """Fill in what the settings leave open.

    Args:
        config: The settings.
        explicit: Dotted names of those that were asked for rather than taken from a file.

    Raises:
        CheckpointError: The checkpoint or policy named is none.
        ValueError: The output folder holds another run.
    """
    if config.wandb.enable and config.wandb.run_id is None:
        config = replace(config, wandb=replace(config.wandb, run_id=secrets.token_hex(4)))
    if config.resume and config.config_path is not None:
        checkpoint = find_checkpoint(Path(config.config_path))
        folder = checkpoint.parent.parent
        asked = config.output_dir
        if "output_dir" in explicit and asked and Path(asked).resolve() != folder:
            raise ValueError(
                f"--output_dir={asked} is not where the run to resume lies, which is {folder}"
            )
        config = replace(config, output_dir=str(folder))
        return Resolved(config, folder, checkpoint, checkpoint / PRETRAINED_MODEL)
    weights = None
    if config.policy.path is not None:
        weights = find_policy(config.policy.path)
        config = replace(config, policy=settings_of(weights, config.policy, explicit))
    name = config.job_name or config.policy.type
    folder = Path(config.output_dir or _new_folder(name))
    _refuse_another_run(folder)
    config = replace(config, job_name=name, output_dir=str(folder))
    return Resolved(config, folder, None, weights)


def find_policy(path: str) -> Path:
    """Find a trained policy.

    Args:
        path: A folder with a policy or a checkpoint in it, or a repository on the Hub.

    Returns:
        The folder that holds its ``config.json``.

    Raises:
        CheckpointError: The folder holds none.
        MissingFileError: It is no folder, and the Hub does not give it.
    """
    folder = Path(path)
    if folder.is_dir():
        for candidate in (folder, folder / PRETRAINED_MODEL):
            if (candidate / CONFIG).is_file():
                return candidate
        raise CheckpointError(f"wanted a policy's {CONFIG}, found none", path=path)
    try:
        return Path(snapshot_download(path, ignore_patterns=["training_state/*"]))
    except (HfHubHTTPError, LocalEntryNotFoundError, HFValidationError, OSError) as error:
        raise MissingFileError(
            f"is no folder, nor to be had from the Hub ({type(error).__name__})",
            path=path,
            hint="--policy.path names a folder …/pretrained_model, or OWNER/NAME on the Hub",
        ) from error


def settings_of(folder: Path, asked: ActConfig, explicit: frozenset[str]) -> ActConfig:
    """Settings of a trained policy, changed where a run asks for it.

    Args:
        folder: Where the policy lies.
        asked: The run's settings; those that differ from the defaults were asked for.
        explicit: Dotted names of settings that were asked for even if they are defaults.

    Raises:
        CheckpointError: Its ``config.json`` is damaged.
    """
    try:
        kind = json.loads((folder / CONFIG).read_bytes())["type"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"is no policy's configuration ({error})", path=str(folder / CONFIG)
        ) from None
    if "policy.type" in explicit and asked.type != kind:
        raise CheckpointError(
            f"wanted a policy of type {asked.type}, found {kind}", path=str(folder)
        )
    if kind != "act":
        return replace(asked, type=kind)
    trained, _ = read_act_config(folder)
    defaults = ActConfig()
    changes = {
        field.name: getattr(asked, field.name)
        for field in dataclasses.fields(ActConfig)
        if f"policy.{field.name}" in explicit
        or getattr(asked, field.name) != getattr(defaults, field.name)
    }
    return replace(trained, **changes)


def _refuse_another_run(folder: Path) -> None:
    if not (folder / CHECKPOINTS).exists() and not (folder / METRICS).exists():
        return
    last = folder / CHECKPOINTS / LAST / PRETRAINED_MODEL / TRAIN_CONFIG
    cure = f"continue it with --resume=true --config_path={last}"
    if not last.exists():
        cure = "delete it, as it has no checkpoint to continue from"
    raise ValueError(f"--output_dir={folder} holds a run already: name another folder, or {cure}")


def _new_folder(name: str) -> str:
    now = datetime.now().astimezone()
    return f"outputs/train/{now:%Y-%m-%d}/{now:%H-%M-%S}_{name}"
