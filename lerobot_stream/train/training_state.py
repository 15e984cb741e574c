"""What a run needs to go on, beside its policy: the files of ``training_state/``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from lerobot_stream.errors import CheckpointError
from lerobot_stream.train.checkpoint import STREAM_STATE

STEP = "training_step.json"
OPTIMIZER = "optimizer_state.safetensors"
OPTIMIZER_GROUPS = "optimizer_param_groups.json"
SCHEDULER = "scheduler_state.json"
SCALER = "scaler_state.json"
RNG = "rng_state.safetensors"
WEIGHTS = "weights.safetensors"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingState:
    """Everything but the policy's own files."""

    step: int
    """Steps made."""
    stream: Sequence[Mapping[str, Any]]
    """Place in the data, of each rank."""
    base: Mapping[str, Any] | None = None
    """What all ranks together had seen before; None unless the job was made larger or smaller
    in an epoch that is not finished."""
    rng: Sequence[Mapping[str, Tensor]]
    """Random generators, of each rank."""
    optimizer: Mapping[str, Any]
    """The optimizer's ``state_dict``."""
    scheduler: Mapping[str, Any] | None
    """The scheduler's ``state_dict``; None without one."""
    scaler: Mapping[str, Any] | None
    """The gradient scaler's ``state_dict``; None without half precision."""
    weights: Mapping[str, Tensor] | None
    """The trained weights where the policy's files hold their running mean, else None."""


def write_state(folder: Path, state: TrainingState) -> None:
    """Write a state into an empty folder, each part in a file of its own, none pickled.

    Args:
        folder: ``training_state`` of a checkpoint that is being written.
        state: What to write.
    """
    _write_json(folder / STEP, {"step": state.step})
    base = {} if state.base is None else {"base": state.base}
    _write_json(folder / STREAM_STATE, {"ranks": list(state.stream), **base})
    tensors, plain = _flatten(state.optimizer["state"])
    if plain:
        raise CheckpointError(f"the optimizer's {next(iter(plain))} is no tensor", path=OPTIMIZER)
    save_file(tensors, folder / OPTIMIZER)
    _write_json(folder / OPTIMIZER_GROUPS, state.optimizer["param_groups"])
    for rank, generators in enumerate(state.rng):
        save_file(dict(generators), folder / _rng_name(rank))
    for name, part in ((SCHEDULER, state.scheduler), (SCALER, state.scaler)):
        if part is not None:
            _write_json(folder / name, part)
    if state.weights is not None:
        save_file(_contiguous(state.weights), folder / WEIGHTS)


def read_state(folder: Path) -> TrainingState:
    """Read a state back.

    Args:
        folder: ``training_state`` of a checkpoint.

    Returns:
        The state.

    Raises:
        CheckpointError: A file is missing or damaged.
    """
    try:
        return _read_parts(folder)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"is damaged ({error!r})", path=str(folder)) from None


def _read_parts(folder: Path) -> TrainingState:
    saved = _read_json(folder / STREAM_STATE)
    stream = saved["ranks"]
    weights = folder / WEIGHTS
    return TrainingState(
        step=int(_read_json(folder / STEP)["step"]),
        stream=stream,
        base=saved.get("base"),
        rng=[_read_tensors(folder / _rng_name(rank)) for rank in range(len(stream))],
        optimizer={
            "state": _unflatten(_read_tensors(folder / OPTIMIZER)),
            "param_groups": _read_json(folder / OPTIMIZER_GROUPS),
        },
        scheduler=_read_if_there(folder / SCHEDULER),
        scaler=_read_if_there(folder / SCALER),
        weights=_read_tensors(weights) if weights.is_file() else None,
    )


def _rng_name(rank: int) -> str:
    return RNG if rank == 0 else f"rng_state_rank_{rank}.safetensors"


def _flatten(state: Mapping[Any, Mapping[str, Any]]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """An optimizer's state as ``state/<parameter>/<name>``; tensors, and what is none."""
    flat = {
        f"state/{parameter}/{name}": value
        for parameter, named in state.items()
        for name, value in named.items()
    }
    tensors = {key: value for key, value in flat.items() if isinstance(value, Tensor)}
    return _contiguous(tensors), {key: flat[key] for key in flat if key not in tensors}


def _unflatten(tensors: Mapping[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        _, parameter, name = key.split("/")
        state.setdefault(int(parameter), {})[name] = value
    return state


def _contiguous(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {key: value.detach().cpu().contiguous() for key, value in tensors.items()}


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=4) + "\n", encoding="utf-8")


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise CheckpointError(f"cannot be read ({error.strerror})", path=str(path)) from None
    except ValueError as error:
        raise CheckpointError(f"is not JSON ({error})", path=str(path)) from None


def _read_if_there(path: Path) -> Any:
    return _read_json(path) if path.is_file() else None


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except OSError as error:
        message = f"cannot be read ({error.strerror or error})"
        raise CheckpointError(message, path=str(path)) from None
    except SafetensorError as error:
        raise CheckpointError(f"is damaged ({error})", path=str(path)) from None
