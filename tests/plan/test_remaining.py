from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lerobot_stream.plan.random import generator
from lerobot_stream.plan.remaining import remaining_keys
from lerobot_stream.plan.round_robin import round_robin_keys
from tests.plan.shares import lengths

COUNTS = np.array([3, 40, 11, 25, 7, 18, 30])
POOL = 3
RUNS = 1500
FAR = 5.0  # standard errors; 1 in 30,000 for all measures together

Draw = Callable[[np.random.Generator], NDArray[np.int64]]


def simulated(rng: np.random.Generator) -> NDArray[np.int64]:
    """Episode of each item: draw a resident by its frames left, again and again."""
    waiting = rng.permutation(len(COUNTS)).tolist()
    left = {e: int(COUNTS[e]) for e in waiting[:POOL]}
    del waiting[:POOL]
    items = []
    while left:
        residents = list(left)
        stops = np.cumsum([left[e] for e in residents])
        drawn = residents[int(np.searchsorted(stops, rng.random() * stops[-1], side="right"))]
        items.append(drawn)
        left[drawn] -= 1
        if not left[drawn]:
            del left[drawn]
            if waiting:
                newcomer = waiting.pop(0)
                left[newcomer] = int(COUNTS[newcomer])
    return np.array(items)


def by_keys(rng: np.random.Generator) -> NDArray[np.int64]:
    keys = remaining_keys(COUNTS, pool=POOL, rng=rng)
    return np.repeat(keys.episode, COUNTS[keys.episode])[np.argsort(keys.key, kind="stable")]


def in_rounds(rng: np.random.Generator) -> NDArray[np.int64]:
    keys = round_robin_keys(COUNTS, pool=POOL, rng=rng)
    return np.repeat(keys.episode, COUNTS[keys.episode])[np.argsort(keys.key, kind="stable")]


def measures(episode: NDArray[np.int64]) -> list[float]:
    """First, mean and last position of each episode, repeats, and early variety."""
    places = [np.flatnonzero(episode == e) for e in range(len(COUNTS))]
    numbers = [float(f(place)) for place in places for f in (np.min, np.mean, np.max)]
    repeats = float(np.mean(episode[1:] == episode[:-1]))
    return [*numbers, repeats, float(len(np.unique(episode[: len(episode) // 2])))]


def distance(first: Draw, second: Draw) -> float:
    """Largest difference of mean measures, in standard errors."""
    a = np.array([measures(first(generator(1, run))) for run in range(RUNS)])
    b = np.array([measures(second(generator(2, run))) for run in range(RUNS)])
    error = np.sqrt((a.var(axis=0) + b.var(axis=0)) / RUNS)
    return float((np.abs(a.mean(axis=0) - b.mean(axis=0)) / error).max())


def test_keys_mix_like_drawing_a_resident_by_its_frames_left() -> None:
    assert distance(by_keys, simulated) < FAR


def test_that_comparison_tells_other_strategies_apart() -> None:
    assert distance(in_rounds, simulated) > 2 * FAR


def test_every_frame_of_an_episode_is_equally_likely_at_its_first_turn() -> None:
    firsts = []
    for run in range(4000):
        keys = remaining_keys(np.array([4, 4]), pool=2, rng=generator(3, run))
        firsts.append(int(np.argmin(keys.key[:4])))
    share = np.bincount(firsts, minlength=4) / len(firsts)
    assert np.all(np.abs(share - 0.25) < 4.5 * np.sqrt(0.25 * 0.75 / len(firsts)))


@given(lengths(), st.integers(1, 6), st.integers(0, 99))
def test_an_episode_is_admitted_when_another_one_drains(
    lengths: list[int], pool: int, seed: int
) -> None:
    keys = remaining_keys(np.array(lengths), pool=pool, rng=generator(seed))
    assert np.all(keys.admission[:pool] == 0)
    assert set(keys.admission[pool:]) <= set(keys.drain)
    for now in keys.admission:
        assert np.sum((keys.admission <= now) & (now < keys.drain)) <= pool


@given(lengths(), st.integers(1, 6), st.integers(0, 99))
def test_frames_come_between_admission_and_drain(lengths: list[int], pool: int, seed: int) -> None:
    keys = remaining_keys(np.array(lengths), pool=pool, rng=generator(seed))
    counts = np.array(lengths)[keys.episode]
    assert np.all(keys.key >= np.repeat(keys.admission, counts))
    assert np.all(keys.key <= np.repeat(keys.drain, counts))
