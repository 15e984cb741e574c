"""Shares of small made-up datasets, and hypothesis strategies that draw them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from lerobot_stream.plan.order import Order
from lerobot_stream.plan.ragged import Ragged
from lerobot_stream.plan.share import Episodes, PlanConfig, Share, plan_share
from lerobot_stream.plan.strategy import Strategy

CONFIG = PlanConfig(
    seed=7,
    world_size=1,
    num_workers=1,
    strategy="remaining",
    pool_size=3,
    byte_budget=1 << 40,
    decoded_bytes=40,
    frame_bytes=1,
    item_bytes=1,
)
"""Bytes of decoded frames are counted in frames."""


def make_episodes(
    lengths: Sequence[int],
    *,
    sizes: Sequence[int] | None = None,
    entries: Sequence[Sequence[int]] | None = None,
    gops: Sequence[int] = (2,),
) -> Episodes:
    """Episodes with a clean entry every ``gops[camera]`` frames, or at ``entries``."""
    rows = [np.arange(0, n, gop, dtype=np.int32) for n in lengths for gop in gops]
    return Episodes(
        index=np.arange(len(lengths), dtype=np.int64) * 10,
        lengths=np.array(lengths, dtype=np.int64),
        sizes=np.array(sizes if sizes is not None else lengths, dtype=np.int64),
        entries=Ragged.of(rows if entries is None else entries),
        num_cameras=len(gops),
    )


def make_share(episodes: Episodes, config: PlanConfig = CONFIG) -> Share:
    """The share of the only worker."""
    return plan_share(episodes, config, rank=0, worker=0)


def pairs(order: Order) -> list[tuple[int, int]]:
    """(position of the episode in the share, frame) of each item."""
    return list(zip(order.episode.tolist(), order.frame.tolist(), strict=True))


def wanted_pairs(share: Share) -> list[tuple[int, int]]:
    """What :func:`pairs` must be, sorted."""
    if share.frames is None:
        return [(e, f) for e, n in enumerate(share.episodes.lengths.tolist()) for f in range(n)]
    return [(e, f) for e in range(len(share.episodes)) for f in share.frames[e].tolist()]


def most_open(first: NDArray[np.int64], last: NDArray[np.int64]) -> int:
    """Most of the closed intervals ``[first, last]`` of whole numbers that share a number."""
    change = np.zeros(int(last.max()) + 2, dtype=np.int64)
    np.add.at(change, first, 1)
    np.add.at(change, last + 1, -1)
    return int(np.cumsum(change).max())


def lengths(most_frames: int = 60, most_episodes: int = 12) -> st.SearchStrategy[list[int]]:
    """Lengths of at least one episode."""
    return st.lists(st.integers(1, most_frames), min_size=1, max_size=most_episodes)


@st.composite
def episode_sets(draw: st.DrawFn) -> Episodes:
    """Episodes on none to two cameras with entries anywhere, often regular ones."""
    drawn = draw(lengths())
    gops = tuple(draw(st.lists(st.sampled_from([1, 2, 4, 7, 30, 1000]), max_size=2)))
    if not gops or draw(st.booleans()):
        return make_episodes(drawn, gops=gops)
    rows = [draw(st.sets(st.integers(0, n - 1), max_size=8)) for n in drawn for _ in gops]
    return make_episodes(drawn, gops=gops, entries=[sorted(row) for row in rows])


@st.composite
def shares(
    draw: st.DrawFn, strategies: Sequence[Strategy] = get_args(Strategy), *, partial: bool = True
) -> Share:
    """Shares of one worker, some of which deliver only some of the frames."""
    first, last = draw(st.sampled_from([(0, 0), (-1, 0), (-2, 1), (0, 2)]))
    config = replace(
        CONFIG,
        seed=draw(st.integers(0, 1 << 40)),
        strategy=draw(st.sampled_from(list(strategies))),
        pool_size=draw(st.integers(1, 6)),
        decoded_bytes=draw(st.integers(8, 400)),
        run_frames=draw(st.sampled_from([1, 3, 16])),
        first_offset=first,
        last_offset=last,
        item_bytes=last - first + 1,
    )
    share = make_share(draw(episode_sets()), config)
    if not partial or draw(st.booleans()):
        return share
    rows = [
        draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=n))
        for n in share.episodes.lengths.tolist()
    ]
    return replace(share, frames=Ragged.of([sorted(row) for row in rows]))
