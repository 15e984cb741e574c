from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lerobot_stream.errors import DatasetError
from lerobot_stream.train.features import PolicyFeature
from lerobot_stream.train.normalize import IMAGENET, Normalizer, prepare_stats

STATE = {"s": PolicyFeature("STATE", (2,))}
PICTURE = {"p": PolicyFeature("VISUAL", (3, 4, 4))}


def stats_of(values: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    return {
        "mean": values.mean(0),
        "std": values.std(0),
        "min": values.min(0),
        "max": values.max(0),
    }


def make(mode: str, values: NDArray[np.float64]) -> Normalizer:
    modes = {"STATE": mode}
    stats = prepare_stats(STATE, modes, {"s": stats_of(values)}, use_imagenet_stats=False)
    return Normalizer(STATE, modes, stats)


VALUES = np.random.default_rng(0).normal([3, -50], [2, 0.1], (500, 2))


@given(
    st.sampled_from(["MEAN_STD", "MIN_MAX", "IDENTITY"]),
    st.lists(st.floats(-9, 9), min_size=2, max_size=2),
)
def test_scaling_can_be_undone(mode: str, value: list[float]) -> None:
    normalizer = make(mode, VALUES)
    given_value = torch.tensor(value)
    back = normalizer.unnormalize("s", normalizer.normalize("s", given_value))
    torch.testing.assert_close(back, given_value, rtol=1e-4, atol=1e-3)


def test_mean_and_deviation_become_zero_and_one() -> None:
    scaled = make("MEAN_STD", VALUES).normalize("s", torch.from_numpy(VALUES).float())
    torch.testing.assert_close(scaled.mean(0), torch.zeros(2), atol=1e-3, rtol=0)
    torch.testing.assert_close(scaled.std(0, correction=0), torch.ones(2), atol=1e-3, rtol=0)


def test_the_range_becomes_minus_one_to_one() -> None:
    scaled = make("MIN_MAX", VALUES).normalize("s", torch.from_numpy(VALUES).float())
    torch.testing.assert_close(scaled.amin(0), -torch.ones(2), atol=1e-3, rtol=0)
    torch.testing.assert_close(scaled.amax(0), torch.ones(2), atol=1e-3, rtol=0)


@pytest.mark.parametrize("mode", ["MEAN_STD", "MIN_MAX"])
@pytest.mark.parametrize("constant", [0.0, 0.1, 123.4])
def test_a_number_that_never_changes_stays_small(mode: str, constant: float) -> None:
    values = np.full((7, 2), np.float32(constant), dtype=np.float64)
    values += np.array([0, 1e-9])  # what rounding leaves of a mean
    normalizer = make(mode, values)
    now = torch.full((2,), constant)
    scaled = normalizer.normalize("s", now)
    assert scaled.abs().max() <= 1.3
    torch.testing.assert_close(normalizer.unnormalize("s", scaled), now)


def test_pictures_take_imagenets_statistics_where_asked() -> None:
    own = {name: np.full(3, 0.5) for name in ("mean", "std", "min", "max")}
    modes = {"VISUAL": "MEAN_STD"}
    ours = prepare_stats(PICTURE, modes, {"p": own}, use_imagenet_stats=False)["p"]
    theirs = prepare_stats(PICTURE, modes, {"p": own}, use_imagenet_stats=True)["p"]
    assert ours["mean"].shape == theirs["mean"].shape == (3, 1, 1)
    assert ours["mean"].flatten().tolist() == [0.5] * 3
    np.testing.assert_allclose(theirs["mean"].numpy(), IMAGENET["mean"], rtol=1e-6)
    assert theirs["min"].flatten().tolist() == [0.5] * 3


@pytest.mark.parametrize(
    ("stats", "message"),
    [
        ({}, "no mean of s"),
        ({"s": {"mean": np.zeros(2)}}, "no std of s"),
        (
            {"s": {"mean": np.zeros(3), "std": np.ones(3)}},
            r"mean of s has shape \[3\], wanted \[2\]",
        ),
    ],
)
def test_statistics_that_are_missing_or_of_another_shape_are_named(
    stats: dict[str, Any], message: str
) -> None:
    with pytest.raises(DatasetError, match=message):
        prepare_stats(STATE, {"STATE": "MEAN_STD"}, stats, use_imagenet_stats=False)


def test_what_is_left_as_it_is_needs_no_statistics() -> None:
    stats = prepare_stats(STATE, {"STATE": "IDENTITY"}, {}, use_imagenet_stats=False)
    value = torch.tensor([1.0, 2.0])
    assert torch.equal(Normalizer(STATE, {}, stats).normalize("s", value), value)
