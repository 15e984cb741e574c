from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from lerobot_stream.errors import CheckpointError
from lerobot_stream.train.rng import restore_rng, rng_state, seed_everything


def draw() -> tuple[float, float, float, float]:
    # A normal draw leaves the second half of a pair behind in NumPy's generator.
    return (
        random.gauss(),
        float(np.random.normal()),
        float(np.random.random()),
        torch.rand(()).item(),
    )


def test_a_restored_state_draws_the_same_again() -> None:
    seed_everything(3)
    draw()
    saved = load(save(rng_state()))
    first = draw(), draw()
    seed_everything(4)
    restore_rng(saved)
    assert (draw(), draw()) == first


def test_equal_seeds_draw_the_same() -> None:
    seed_everything(2**40 + 1)
    first = draw()
    seed_everything(2**40 + 1)
    assert draw() == first
    seed_everything(2)
    assert draw() != first


def test_without_a_seed_every_time_is_another() -> None:
    seen: set[float] = set()
    for _ in range(2):
        seed_everything(None)
        seen.update(draw())
    assert len(seen) == 8


@pytest.mark.parametrize("name", ["py_rng_state", "np_rng_state_values", "torch_rng_state"])
def test_a_damaged_state_is_named(name: str) -> None:
    state = rng_state()
    for broken in (
        {key: state[key] for key in state if key != name},
        {**state, name: state[name][:5]},
    ):
        with pytest.raises(CheckpointError, match="generators is damaged"):
            restore_rng(broken)
