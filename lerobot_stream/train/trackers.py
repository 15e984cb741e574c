"""Metrics to services of other people: Weights & Biases, TensorBoard."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from lerobot_stream.errors import StreamError
from lerobot_stream.train.config import TrainConfig, without_secrets
from lerobot_stream.train.records import record_to_json


class Tracker(Protocol):
    """Takes the metrics of a step."""

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Take the metrics of a step."""
        ...

    def close(self) -> None:
        """Send or write what is still held."""
        ...


def open_trackers(config: TrainConfig, folder: Path) -> list[Tracker]:
    """Open those that a run asks for.

    Args:
        config: The run.
        folder: Its output folder.

    Raises:
        StreamError: A package is not installed.
    """
    trackers: list[Tracker] = []
    if config.wandb.enable:
        trackers.append(WandbTracker(config, folder))
    if config.tensorboard.enable:
        trackers.append(TensorboardTracker(folder))
    return trackers


class WandbTracker:
    """Metrics to Weights & Biases; a resumed run goes on under its id."""

    def __init__(self, config: TrainConfig, folder: Path) -> None:
        """Begin or continue a run there."""
        wandb = _import("wandb", "wandb")
        self._run = wandb.init(
            project=config.wandb.project,
            entity=config.wandb.entity,
            name=config.job_name,
            mode=config.wandb.mode,
            id=config.wandb.run_id,
            resume="allow",
            dir=str(folder),
            config=record_to_json(without_secrets(config)),
        )

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """See :class:`Tracker`."""
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        """See :class:`Tracker`."""
        self._run.finish()


class TensorboardTracker:
    """Metrics to event files under ``tensorboard/``."""

    def __init__(self, folder: Path) -> None:
        """Open a file."""
        _import("tensorboard", "tensorboard")
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(str(folder / "tensorboard"))

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """See :class:`Tracker`."""
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """See :class:`Tracker`."""
        self._writer.close()


def _import(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise StreamError(
            f"the package {package} is not installed", hint=f"pip install {package}"
        ) from None
