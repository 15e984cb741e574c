"""The state of every global random generator, as tensors under LeRobot's names."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from lerobot_stream.errors import CheckpointError


def seed_everything(seed: int | None) -> None:
    """Seed Python's, NumPy's and PyTorch's generators.

    Args:
        seed: Any number; None takes one that nobody knows, also for PyTorch, which would
            otherwise begin every process with the same.
    """
    random.seed(seed)
    np.random.seed(None if seed is None else seed % 2**32)
    if seed is None:
        torch.seed()
    else:
        torch.manual_seed(seed)


def rng_state() -> dict[str, Tensor]:
    """Take the state of all generators of this process."""
    version, words, second_gaussian = random.getstate()
    _, keys, index, has_gauss, gaussian = np.random.get_state(legacy=True)
    state = {
        "py_rng_version": torch.tensor([version]),
        "py_rng_state": torch.tensor(words),
        "np_rng_state_values": torch.tensor(np.asarray(keys).astype(np.int64)),
        "np_rng_state_index": torch.tensor([int(index)]),
        "np_rng_has_gauss": torch.tensor([int(has_gauss)]),
        "np_rng_cached_gaussian": torch.tensor([float(gaussian)], dtype=torch.float64),
        "torch_rng_state": torch.get_rng_state(),
    }
    if second_gaussian is not None:
        state["py_rng_gauss_next"] = torch.tensor([second_gaussian], dtype=torch.float64)
    if torch.cuda.is_available():
        state["torch_cuda_rng_state"] = torch.cuda.get_rng_state()
    return state


def restore_rng(state: Mapping[str, Tensor]) -> None:
    """Set all generators of this process to a state that :func:`rng_state` took.

    Args:
        state: Tensors by name. Without an entry for the GPU its generator stays as it is.

    Raises:
        CheckpointError: Another generator's entry is missing, or one is damaged.
    """
    try:
        _restore(state)
    except (LookupError, TypeError, ValueError, OverflowError, RuntimeError) as error:
        message = f"the state of the random generators is damaged ({error!r})"
        raise CheckpointError(message) from error


def _restore(state: Mapping[str, Tensor]) -> None:
    words = tuple(state["py_rng_state"].tolist())
    second = state.get("py_rng_gauss_next")
    second_gaussian = None if second is None else float(second)
    random.setstate((int(state["py_rng_version"]), words, second_gaussian))
    np.random.set_state(
        (
            "MT19937",
            state["np_rng_state_values"].numpy().astype(np.uint32),
            int(state["np_rng_state_index"]),
            int(state["np_rng_has_gauss"]),
            float(state["np_rng_cached_gaussian"]),
        )
    )
    torch.set_rng_state(state["torch_rng_state"].cpu())
    if torch.cuda.is_available() and "torch_cuda_rng_state" in state:
        torch.cuda.set_rng_state(state["torch_cuda_rng_state"].cpu())
