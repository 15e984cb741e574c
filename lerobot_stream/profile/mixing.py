"""How well the batches of a rank are mixed over its first epoch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.plan.epoch import plan_epoch
from lerobot_stream.plan.mixing import Mixing, measure_mixing
from lerobot_stream.stream.config import StreamConfig
from lerobot_stream.stream.opened import OpenedDataset
from lerobot_stream.stream.shares import plan_shares


def plan_mixing(
    opened: OpenedDataset, config: StreamConfig, *, batch_size: int, num_workers: int
) -> Mixing | None:
    """Plan the first epoch and measure it, a batch of each worker in turn.

    Args:
        opened: The open dataset.
        config: Settings of the stream.
        batch_size: Items a batch.
        num_workers: Worker processes; 0 for threads alone.

    Returns:
        The measures; None where there is no whole batch of two items or more.
    """
    episodes, frames, turns = [], [], []
    workers = max(1, num_workers)
    for worker in range(workers):
        share = plan_shares(opened, config, num_workers=workers, worker=worker)
        order = plan_epoch(share, epoch=0)
        episodes.append(share.positions[order.episode])
        frames.append(order.frame)
        turns.append(np.arange(len(order)) // batch_size * workers + worker)
    by_turn = np.argsort(np.concatenate(turns), kind="stable")
    if len(by_turn) < batch_size or batch_size < 2:
        return None
    frame: NDArray[np.int32] = np.concatenate(frames)[by_turn]
    return measure_mixing(
        np.concatenate(episodes)[by_turn],
        frame,
        opened.lengths,
        batch_size=batch_size,
        second_frames=opened.meta.info.fps,
    )
