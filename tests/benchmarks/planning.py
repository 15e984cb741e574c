"""How long a plan of a very large dataset takes; run as a program, it prints its figures."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from lerobot_stream.plan.blocks import look_ahead, plan_blocks
from lerobot_stream.plan.epoch import plan_epoch
from lerobot_stream.plan.order import Order
from lerobot_stream.plan.ragged import Ragged
from lerobot_stream.plan.runs import plan_runs
from lerobot_stream.plan.share import Episodes, PlanConfig, Share, plan_share
from lerobot_stream.plan.strategy import Strategy

EPISODES, FRAMES = 95_658, 27_600_000
FRAME_BYTES = 640 * 480 * 3
_CONFIG = PlanConfig(
    seed=1000,
    world_size=1,
    num_workers=1,
    strategy="clip",
    pool_size=None,
    byte_budget=8 * 10**9,
    decoded_bytes=2 * 10**9,
    frame_bytes=FRAME_BYTES,
    item_bytes=FRAME_BYTES,
)


def large_dataset() -> Episodes:
    """As many episodes and frames as DROID has, with a key frame at every second picture."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(60, 600, EPISODES)
    lengths = lengths * FRAMES // int(lengths.sum())
    lengths[: FRAMES - int(lengths.sum())] += 1
    counts = (lengths + 1) // 2
    starts = np.cumsum(counts) - counts
    frames = 2 * (np.arange(int(counts.sum())) - np.repeat(starts, counts))
    return Episodes(
        index=np.arange(EPISODES),
        lengths=lengths,
        sizes=lengths * 5000,
        entries=Ragged(np.append(0, np.cumsum(counts)), frames.astype(np.int32)),
        num_cameras=1,
    )


def measure(strategy: Strategy) -> dict[str, float]:
    """Seconds to plan for the only rank and for one of 1,000, and to go on in the middle."""
    episodes = large_dataset()
    figures = {}
    for name, world_size, rank in (("rank 0 of 1", 1, 0), ("rank 500 of 1000", 1000, 500)):
        config = replace(_CONFIG, strategy=strategy, world_size=world_size)
        started = time.perf_counter()
        share = plan_share(episodes, config, rank=rank, worker=0)
        order = plan_epoch(share, epoch=0)
        planned = time.perf_counter()
        _first_task(share, order, start=len(order) // 2)
        figures[f"plan, {name}"] = planned - started
        figures[f"go on in the middle, {name}"] = time.perf_counter() - planned
    return {**figures, "peak_bytes": float(_peak_bytes())}


def _first_task(share: Share, order: Order, *, start: int) -> Any:
    if order.decode is not None:
        return next(plan_runs(order, start=start, position_base=0))
    blocks = plan_blocks(
        order,
        share.episodes.sizes[order.visit_episode],
        start=start,
        block_items=look_ahead(share, batch_size=64),
        batch_size=64,
        byte_budget=share.config.worker_byte_budget,
        position_base=0,
    )
    return next(blocks)


def _peak_bytes() -> int:
    """Most memory of this process; ``ru_maxrss`` begins with that of the one that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    (chosen,) = (name for name in get_args(Strategy) if name == sys.argv[1])
    sys.stdout.write(json.dumps(measure(chosen)))
