"""A run before its next step: everything made, and restored where it continues."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from lerobot_stream.counted import counted
from lerobot_stream.errors import CheckpointError
from lerobot_stream.train.checkpoint import TRAIN_CONFIG, TRAINING_STATE
from lerobot_stream.train.config import TrainConfig, write_config
from lerobot_stream.train.data import ELASTIC_OR_NEW, Data
from lerobot_stream.train.distributed import Ranks
from lerobot_stream.train.open_data import (
    Header,
    HeldOutData,
    open_training_data,
    read_header,
)
from lerobot_stream.train.policies.base import PolicyRequest, PolicySetup
from lerobot_stream.train.policies.registry import make_policy
from lerobot_stream.train.precision import Precision
from lerobot_stream.train.resolve import Resolved
from lerobot_stream.train.rng import restore_rng, rng_state, seed_everything
from lerobot_stream.train.running_mean import RunningMean
from lerobot_stream.train.training_state import TrainingState, read_state, write_state

logger = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True, eq=False)
class Run:
    """All that a training loop works on."""

    config: TrainConfig
    """The settings."""
    folder: Path
    """The output folder."""
    header: Header
    """What was known of the dataset beforehand."""
    setup: PolicySetup
    """The policy with its processors."""
    model: nn.Module
    """What computes the loss: the policy, or all ranks' copies of it kept equal."""
    optimizer: Optimizer
    """Changes the weights."""
    scheduler: LRScheduler | None
    """Changes the learning rates."""
    precision: Precision
    """How the loss is computed."""
    mean: RunningMean | None
    """The weights that are saved, where they are not the trained ones."""
    data: Data
    """Batches without end."""
    held_out: HeldOutData | None
    """Batches to evaluate on."""
    step: int
    """Steps made."""


def start_run(resolved: Resolved, ranks: Ranks, *, explicit: frozenset[str]) -> Run:
    """Make everything a run needs.

    Args:
        resolved: What to do.
        ranks: This process among the others.
        explicit: Dotted names of settings that were asked for rather than taken from a file.

    Raises:
        StreamError: The data, policy or checkpoint cannot be used.
        ValueError: Settings that make no sense together.
    """
    config = resolved.config
    state = (
        None if resolved.checkpoint is None else read_state(resolved.checkpoint / TRAINING_STATE)
    )
    header = read_header(config.dataset)
    _refuse_inside(resolved.folder, header.identity.data_root)
    seed_everything(config.seed)  # all ranks alike, for the policy's first weights
    setup = make_policy(_request(resolved, header, ranks))
    data = open_training_data(config, header, setup.delta_timestamps, ranks)
    held_out = None
    if header.eval_episodes:
        held_out = HeldOutData(config, header, setup.delta_timestamps, ranks)
    mean = None if config.ema_decay is None else RunningMean(setup.policy, config.ema_decay)
    optimizer = setup.make_optimizer(config.optimizer)
    run = Run(
        config=config,
        folder=resolved.folder,
        header=header,
        setup=setup,
        model=setup.policy,
        optimizer=optimizer,
        scheduler=setup.make_scheduler(optimizer, config.scheduler, config.steps),
        precision=Precision(ranks.device, use_amp=config.policy.use_amp),
        mean=mean,
        data=data,
        held_out=held_out,
        step=0,
    )
    if state is not None:
        _restore(run, state, ranks, explicit=explicit)
    run.model = _share(setup, ranks).train()
    if state is not None and ranks.rank < len(state.rng):
        restore_rng(state.rng[ranks.rank])
    else:  # each rank its own noise, and a later one not that of the first steps
        seed_everything(None if config.seed is None else config.seed + ranks.rank + run.step)
    return run


def take_state(run: Run, ranks: Ranks) -> TrainingState | None:
    """Collect the state of all ranks.

    Args:
        run: This rank's part.
        ranks: All of them take part.

    Returns:
        The state, on rank 0; None elsewhere.
    """
    stream = run.data.state()
    base = stream.pop("base", None)  # large, and the same on all ranks
    parts = ranks.gather((stream, rng_state()))
    if not ranks.is_first:
        return None
    scaler = run.precision.scaler.state_dict()
    return TrainingState(
        step=run.step,
        stream=[of_rank for of_rank, _ in parts],
        base=base,
        rng=[generators for _, generators in parts],
        optimizer=run.optimizer.state_dict(),
        scheduler=None if run.scheduler is None else run.scheduler.state_dict(),
        scaler=scaler or None,
        weights=None if run.mean is None else run.setup.policy.state_dict(),
    )


def write_run(run: Run, state: TrainingState, policy_folder: Path, state_folder: Path) -> None:
    """Write a checkpoint's files.

    Args:
        run: What to write.
        state: From :func:`take_state`.
        policy_folder: Empty; for all that is needed to use the policy.
        state_folder: Empty; for all else that is needed to continue.
    """
    weights = run.setup.policy.state_dict() if run.mean is None else run.mean.weights
    run.setup.save(policy_folder, weights)
    config = replace(run.config, resume=False, resume_elastic=False, config_path=None)
    write_config(config, policy_folder / TRAIN_CONFIG)
    write_state(state_folder, state)


def _refuse_inside(folder: Path, data_root: str) -> None:
    """Training only reads the dataset."""
    root = Path(data_root)
    if root.is_absolute() and folder.resolve().is_relative_to(root):
        raise ValueError(
            f"--output_dir={folder} lies inside the dataset {root}, which is only read: "
            "name another folder"
        )


def _request(resolved: Resolved, header: Header, ranks: Ranks) -> PolicyRequest:
    return PolicyRequest(
        config=resolved.config.policy,
        info=header.info,
        stats=header.stats,
        rename=resolved.config.rename_map,
        device=str(ranks.device),
        use_imagenet_stats=resolved.config.dataset.use_imagenet_stats,
        checkpoint=resolved.weights,
    )


def _restore(run: Run, state: TrainingState, ranks: Ranks, *, explicit: frozenset[str]) -> None:
    base = {} if state.base is None else {"base": state.base}
    if run.config.resume_elastic:
        run.data.restore_job([{**stream, **base} for stream in state.stream])
    elif len(state.stream) != ranks.world_size:
        raise CheckpointError(
            f"saved by {counted(len(state.stream), 'rank')}, now run by {ranks.world_size}",
            hint=f"resume with as many, or {ELASTIC_OR_NEW}",
        )
    else:
        stream = {**state.stream[ranks.rank], **base}
        run.data.restore(_with_seed(stream, run.config, explicit))
    run.step = state.step
    if run.mean is not None:
        run.mean.load(run.setup.policy.state_dict())
    if state.weights is not None:
        run.setup.policy.load_state_dict(state.weights)
    try:
        run.optimizer.load_state_dict(dict(state.optimizer))
    except (ValueError, KeyError) as error:
        raise CheckpointError(
            f"the optimizer's state is of another policy ({error})",
            hint="start a new run from its weights with --policy.path",
        ) from None
    _lay_out_like_parameters(run.optimizer)
    if run.scheduler is not None and state.scheduler is not None:
        run.scheduler.load_state_dict(dict(state.scheduler))
    if state.scaler is not None:
        run.precision.scaler.load_state_dict(dict(state.scaler))


def _lay_out_like_parameters(optimizer: Optimizer) -> None:
    """Files hold tensors in row-major order; updates are fastest where memory is alike."""
    for parameter, state in optimizer.state.items():
        for name, value in state.items():
            if isinstance(value, torch.Tensor) and value.shape == parameter.shape:
                state[name] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)


def _with_seed(
    saved: Mapping[str, Any], config: TrainConfig, explicit: frozenset[str]
) -> Mapping[str, Any]:
    """Let a seed that was asked for replace the saved one, which changes the order."""
    part = "plan" if "plan" in saved else "key"
    former = saved.get(part, {}).get("seed")
    if "seed" not in explicit or former == config.order_seed:
        return saved
    logger.warning(
        "--seed=%s instead of %s: the rest of this epoch has another order, in which frames may "
        "come twice or not at all",
        config.seed,
        former,
    )
    return {**saved, part: {**saved[part], "seed": config.order_seed}, "digest": None}


def _share(setup: PolicySetup, ranks: Ranks) -> nn.Module:
    if ranks.world_size == 1:
        return setup.policy
    known = inspect.signature(DistributedDataParallel).parameters
    buffers = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
    unchanged: dict[str, Any] = {buffers: False}  # no buffer changes in training
    return DistributedDataParallel(
        setup.policy,
        device_ids=[ranks.device] if ranks.device.type == "cuda" else None,
        find_unused_parameters=not setup.all_parameters_used,
        **unchanged,
    )
