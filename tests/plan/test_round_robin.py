from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.plan.epoch import plan_epoch
from lerobot_stream.plan.random import generator
from lerobot_stream.plan.round_robin import round_robin_keys
from lerobot_stream.plan.share import Share
from tests.plan.shares import lengths, pairs, shares


@given(shares(["round_robin"]))
def test_each_round_takes_one_frame_of_every_resident(share: Share) -> None:
    items = pairs(plan_epoch(share, epoch=0))
    counts = share.counts.tolist()
    admitted = list(dict.fromkeys(episode for episode, _ in items))
    residents: list[int] = []
    while items:
        residents = [episode for episode in residents if counts[episode]]
        free = min(share.pool(), len(admitted) + len(residents)) - len(residents)
        newcomers = {episode for episode, _ in items[: len(residents) + free]} - {*residents}
        assert newcomers <= set(admitted)
        assert len(newcomers) == free
        residents += newcomers
        admitted = [episode for episode in admitted if episode not in newcomers]
        taken, items = items[: len(residents)], items[len(residents) :]
        assert sorted(episode for episode, _ in taken) == sorted(residents)
        for episode, _ in taken:
            counts[episode] -= 1


@given(lengths(), st.integers(1, 6), st.integers(0, 99))
def test_newcomers_join_the_round_after_their_predecessors_last(
    lengths: list[int], pool: int, seed: int
) -> None:
    rounds = round_robin_keys(np.array(lengths), pool=pool, rng=generator(seed))
    ends = rounds.first_round + np.array(lengths)[rounds.episode]
    assert np.all(rounds.first_round[:pool] == 0)
    waiting = sorted(ends[:pool].tolist())
    for first, end in zip(rounds.first_round[pool:].tolist(), ends[pool:].tolist(), strict=True):
        assert first == waiting.pop(0)
        waiting = sorted([*waiting, end])


def test_frames_and_turns_are_shuffled() -> None:
    share_counts = np.array([50, 50])
    rounds = round_robin_keys(share_counts, pool=2, rng=generator(1))
    order = np.argsort(rounds.key)
    assert not np.all(np.diff(rounds.key[:50]) > 0)
    assert len({tuple(pair) for pair in (order // 50).reshape(50, 2).tolist()}) == 2
