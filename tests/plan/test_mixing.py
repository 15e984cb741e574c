from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.plan.epoch import plan_epoch
from lerobot_stream.plan.mixing import measure_mixing
from lerobot_stream.plan.random import generator
from lerobot_stream.plan.strategy import Strategy
from tests.plan.shares import CONFIG, make_episodes, make_share

FRAME_BYTES = 640 * 480 * 3
SEEDS = 8


@given(st.integers(2, 9), st.floats(0.5, 20), st.integers(0, 99))
def test_measures_are_those_of_counting_pairs(
    batch_size: int, second_frames: float, seed: int
) -> None:
    lengths = np.array([12, 30, 7])
    rng = generator(seed)
    episode = rng.integers(0, 3, 40)
    frame = (rng.random(40) * lengths[episode]).astype(np.int32)
    mixing = measure_mixing(
        episode, frame, lengths, batch_size=batch_size, second_frames=second_frames
    )
    for batch in range(40 // batch_size):
        items = slice(batch * batch_size, (batch + 1) * batch_size)
        e, f = episode[items], frame[items].astype(np.int64)
        share = np.bincount(e) / batch_size
        assert mixing.effective_episodes[batch] == pytest.approx(1 / (share**2).sum())
        assert mixing.phase[batch] == pytest.approx((f / lengths[e]).mean())
        near = (e[:, None] == e) & (np.abs(f[:, None] - f) < second_frames)
        np.fill_diagonal(near, val=False)
        wanted = near.sum() / (batch_size * (batch_size - 1))
        assert mixing.near_neighbours[batch] == pytest.approx(wanted)
    index = (np.cumsum(lengths) - lengths)[episode] + frame
    wanted = np.corrcoef(np.arange(40), index)[0, 1]
    assert mixing.index_correlation == pytest.approx(wanted)
    assert mixing.first_tenth_phase == pytest.approx((frame / lengths[episode])[:4].mean())


def test_less_than_one_batch_cannot_be_measured() -> None:
    with pytest.raises(ValueError, match="3 items make no batch of 4"):
        measure_mixing(
            np.zeros(3, dtype=np.int64),
            np.arange(3, dtype=np.int32),
            np.array([3]),
            batch_size=4,
            second_frames=30,
        )


@cache
def mixing(strategy: Strategy, gop: int = 2) -> dict[str, float]:
    """Mean measures over seeds: 200 episodes of 200 to 400 frames, one 640x480 camera."""
    measured = []
    for seed in range(SEEDS):
        lengths = generator(seed).integers(200, 401, 200)
        config = replace(
            CONFIG,
            seed=seed,
            strategy=strategy,
            pool_size=32,
            decoded_bytes=2 * 10**9,
            frame_bytes=FRAME_BYTES,
            item_bytes=FRAME_BYTES,
        )
        order = plan_epoch(make_share(make_episodes(lengths.tolist(), gops=[gop]), config), epoch=0)
        found = measure_mixing(order.episode, order.frame, lengths, batch_size=64, second_frames=30)
        measured.append(found.summary())
    return {name: float(np.mean([m[name] for m in measured])) for name in measured[0]}


GOPS = pytest.mark.parametrize("gop", [2, 30, 250], ids="gop {}".format)


@GOPS
@pytest.mark.parametrize("name", ["effective_episodes", "worst_effective_episodes"])
def test_clip_mixes_at_least_as_many_episodes_as_remaining(name: str, gop: int) -> None:
    assert mixing("clip", gop)[name] >= mixing("remaining")[name]


@GOPS
def test_clip_has_hardly_more_near_neighbours_than_remaining(gop: int) -> None:
    assert mixing("clip", gop)["near_neighbours"] <= 1.2 * mixing("remaining")["near_neighbours"]


@GOPS
def test_clip_begins_with_all_phases(gop: int) -> None:
    assert mixing("clip", gop)["first_tenth_phase"] == pytest.approx(0.5, abs=0.03)
    assert mixing("clip", gop)["phase_sd"] < 0.055


def test_remaining_mixes_as_independent_keys_do() -> None:
    found = mixing("remaining")
    assert 11 < found["effective_episodes"] < 12.5
    assert 0.012 < found["near_neighbours"] < 0.018
    assert found["first_tenth_phase"] == pytest.approx(0.5, abs=0.01)
