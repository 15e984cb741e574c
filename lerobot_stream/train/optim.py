"""The optimizer and how its learning rates change."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from lerobot_stream.train.config import OptimizerConfig, SchedulerConfig


def make_adamw(groups: list[dict[str, Any]], config: OptimizerConfig) -> AdamW:
    """Make AdamW.

    Args:
        groups: Parameters with ``lr`` and ``weight_decay``.
        config: Everything else.
    """
    return AdamW(groups, betas=config.betas, eps=config.eps)


def make_scheduler(optimizer: Optimizer, config: SchedulerConfig, steps: int) -> LambdaLR | None:
    """Make what changes the learning rates; to be stepped after each step.

    Args:
        optimizer: Its groups' rates are the highest.
        config: The schedule.
        steps: Steps of the whole run.

    Returns:
        The scheduler; None where rates stay as they are.
    """
    if config.type == "constant" and not config.num_warmup_steps:
        return None
    stop = config.num_decay_steps or steps
    lambdas = [
        _factor_of(config, floor=min(1.0, config.decay_lr / group["lr"]), stop=stop)
        for group in optimizer.param_groups
    ]
    return LambdaLR(optimizer, lambdas)


def _factor_of(config: SchedulerConfig, *, floor: float, stop: int) -> Callable[[int], float]:
    decays = config.type == "cosine_decay_with_warmup"
    return lambda step: rate_factor(
        step, warmup=config.num_warmup_steps, stop=stop if decays else None, floor=floor
    )


def rate_factor(step: int, *, warmup: int, stop: int | None, floor: float) -> float:
    """By how much the highest rate is multiplied.

    Args:
        step: Steps made.
        warmup: Steps of the linear rise; step 0 is already above zero.
        stop: Step at which a cosine from 1 has come down to ``floor``; None keeps 1.
        floor: The factor from then on.

    Returns:
        A factor in (0, 1], or ``floor``.
    """
    rise = min(1.0, (step + 1) / (warmup + 1))
    if stop is None:
        return rise
    done = min(1.0, step / stop)
    return rise * (floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2)


def clip_gradients(parameters: Iterable[Tensor], largest: float) -> Tensor:
    """Scale gradients down to a norm.

    Args:
        parameters: Parameters with gradients.
        largest: Largest norm to leave; 0 leaves any.

    Returns:
        The norm before, a scalar.
    """
    return torch.nn.utils.clip_grad_norm_(parameters, largest or math.inf)
