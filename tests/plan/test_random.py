from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.plan.random import _minus_log, exponential, generator, shuffled


@given(st.lists(st.floats(2.0**-53, 1.0), min_size=1, max_size=50))
def test_the_logarithm_is_right_to_nine_digits(values: list[float]) -> None:
    x = np.array(values)
    np.testing.assert_allclose(_minus_log(x), -np.log(x), rtol=1e-9, atol=1e-11)


def test_exponential_draws_follow_their_distribution() -> None:
    draws = np.sort(exponential(200_000, generator(1)))
    rank = (np.arange(len(draws)) + 0.5) / len(draws)
    distance = np.abs(rank - (1 - np.exp(-draws))).max()
    assert distance < 1.95 / np.sqrt(len(draws))  # Kolmogorov-Smirnov, 1 in 1,000


def test_exponential_draws_are_known_for_ever() -> None:
    # Guards checkpoints: another value here is another order for every seed.
    draws = exponential(3, generator(1000, 0, 0, 0))
    assert draws.tolist() == [0.7368603044847944, 0.9259417712104787, 0.6366568292105367]


@given(st.integers(0, 40))
def test_a_shuffle_is_a_permutation(count: int) -> None:
    assert sorted(shuffled(count, generator(3)).tolist()) == list(range(count))


def test_generators_are_those_of_default_rng() -> None:
    wanted = np.random.default_rng([5, 1, 2, 3]).random(4)
    assert generator(5, 1, 2, 3).random(4).tolist() == wanted.tolist()
