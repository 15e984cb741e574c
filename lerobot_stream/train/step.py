"""The parts of a training step, and what happens between steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from lerobot_stream.errors import StreamError
from lerobot_stream.train.checkpoint import (
    CHECKPOINTS,
    PRETRAINED_MODEL,
    TRAINING_STATE,
    save_checkpoint,
    step_name,
)
from lerobot_stream.train.distributed import Ranks
from lerobot_stream.train.evaluate import measure_action_error
from lerobot_stream.train.open_data import HeldOutData
from lerobot_stream.train.optim import clip_gradients
from lerobot_stream.train.policies.base import Batch
from lerobot_stream.train.start import Run, take_state, write_run


def count_valid(action: str, batches: Sequence[Batch], ranks: Ranks) -> Tensor:
    """Count unmasked action steps of all ranks.

    Dividing each batch's sum by the mean count makes the mean of the losses over ranks and
    accumulated batches, which is what gradients are averaged to, the mean over all steps.

    Args:
        action: The feature that is predicted.
        batches: The batches of one step, of this rank.
        ranks: All of them take part.

    Returns:
        The mean count of a batch of a rank, a scalar on the device.
    """
    count = torch.zeros((), device=ranks.device)
    for batch in batches:
        is_pad = batch.get(f"{action}_is_pad")
        steps = batch[action].shape[:2].numel() if is_pad is None else (~is_pad).sum()
        count += steps
    return ranks.sum(count) / (ranks.world_size * len(batches))


def gradients_shared(model: nn.Module, *, now: bool) -> AbstractContextManager[object]:
    """Average gradients over the ranks in this backward pass, or only add them up here."""
    if isinstance(model, DistributedDataParallel) and not now:
        return model.no_sync()
    return nullcontext()


def update(run: Run) -> Tensor:
    """Change the weights by the gradients, then drop those.

    Args:
        run: The run, after all backward passes of a step.

    Returns:
        The norm of the gradient before clipping, a scalar on the device.
    """
    asked = run.config.optimizer.grad_clip_norm
    run.precision.scaler.unscale_(run.optimizer)
    norm = clip_gradients(
        run.setup.policy.parameters(), run.setup.grad_clip_norm if asked is None else asked
    )
    run.precision.scaler.step(run.optimizer)
    run.precision.scaler.update()
    run.optimizer.zero_grad(set_to_none=True)
    if run.scheduler is not None:
        run.scheduler.step()
    if run.mean is not None:
        run.mean.update(run.step + 1)
    return norm


def check_finite(metrics: Mapping[str, float], step: int) -> Mapping[str, float]:
    """Stop before weights that are no numbers are saved over good ones.

    Args:
        metrics: Numbers of the last steps.
        step: The step.

    Raises:
        StreamError: The loss is no number.
    """
    if not math.isfinite(metrics["loss"]):
        raise StreamError(
            f"the loss is {metrics['loss']} at step {step}, wanted a finite number",
            hint="continue from the last checkpoint with a lower --policy.optimizer_lr, or look "
            "for values in the data that are none",
        )
    return metrics


def evaluate(run: Run, held_out: HeldOutData, ranks: Ranks) -> dict[str, float]:
    """Measure the action error on the held-out episodes, with the weights that are saved.

    Args:
        run: The run; its random generators stay as they are.
        held_out: What to evaluate on.
        ranks: All of them take part.

    Returns:
        Metrics under ``eval/``.
    """
    setup = run.setup

    def predict(batch: Batch) -> Tensor:
        return setup.postprocess(setup.policy.predict_action_chunk(setup.preprocess(batch)))

    mean_action = run.header.stats.get(setup.action, {}).get("mean")
    weights = nullcontext() if run.mean is None else run.mean.applied()
    devices = [ranks.device] if ranks.device.type == "cuda" else []
    with weights, torch.no_grad(), torch.random.fork_rng(devices=devices):
        error = measure_action_error(
            predict,
            held_out,
            action=setup.action,
            steps=len(setup.delta_timestamps[setup.action]),
            first_action=setup.first_action,
            mean_action=np.zeros(1) if mean_action is None else mean_action,
            ranks=ranks,
            max_batches=run.config.eval_batches,
        )
    metrics = {
        "eval/action_error": error.overall,
        "eval/first_action_error": float(error.policy[setup.first_action]),
    }
    if mean_action is not None:
        metrics["eval/mean_action_error"] = error.overall_mean_action
        metrics["eval/action_error_ratio"] = error.ratio
    return metrics


def save(run: Run, ranks: Ranks) -> Path:
    """Write a checkpoint.

    Args:
        run: The run.
        ranks: All of them take part; rank 0 writes.

    Returns:
        Its folder.

    Raises:
        CheckpointError: The disk does not take it.
    """
    name = step_name(run.step, run.config.steps)
    folder = run.folder / CHECKPOINTS
    state = take_state(run, ranks)
    if state is None:
        return folder / name
    return save_checkpoint(
        folder,
        name,
        lambda made: write_run(run, state, made / PRETRAINED_MODEL, made / TRAINING_STATE),
        keep=run.config.keep_checkpoints,
    )
