"""From an open dataset and its settings to the plain arrays that planning works on."""

from __future__ import annotations

import numpy as np

from lerobot_stream.plan.elastic import Base, plan_layers
from lerobot_stream.plan.layers import Layers
from lerobot_stream.plan.ragged import Ragged
from lerobot_stream.plan.share import Episodes, PlanConfig, Share, plan_share
from lerobot_stream.stream.config import StreamConfig, order_seed
from lerobot_stream.stream.opened import OpenedDataset

_GB = 10**9


def plan_shares(
    opened: OpenedDataset, config: StreamConfig, *, num_workers: int, worker: int
) -> Share:
    """What one worker of the configured rank delivers.

    Args:
        opened: The open dataset.
        config: Settings of the stream.
        num_workers: Workers of the rank that plan on their own.
        worker: Which of them.

    Raises:
        PlanError: There are more ranks than episodes, or an episode exceeds the budget.
        ValueError: There are more workers than episodes of this rank.
    """
    return plan_share(
        plan_episodes(opened),
        plan_config(opened, config, num_workers=num_workers),
        rank=config.rank,
        worker=worker,
    )


def plan_stream(
    opened: OpenedDataset, config: StreamConfig, base: Base, *, num_workers: int, worker: int
) -> Layers:
    """What one worker of the configured rank delivers, behind what has been seen before.

    Args:
        opened: The open dataset.
        config: Settings of the stream.
        base: What has been seen before.
        num_workers: Workers of the rank that plan on their own.
        worker: Which of them.

    Raises:
        PlanError: There are more ranks than episodes, or an episode exceeds the budget.
        ValueError: There are more workers than episodes of this rank.
    """
    return plan_layers(
        plan_episodes(opened),
        plan_config(opened, config, num_workers=num_workers),
        base,
        rank=config.rank,
        worker=worker,
    )


def plan_episodes(opened: OpenedDataset) -> Episodes:
    """The selected episodes as planning sees them."""
    spans, numbers = opened.spans, opened.numbers
    num_cameras = len(spans.video_keys)
    rows = (numbers[:, None] * num_cameras + np.arange(num_cameras)).ravel()
    entries = Ragged(spans.entry_start, spans.entry_frame.astype(np.int32)).select(rows)
    return Episodes(
        index=opened.meta.episodes.episode_index[numbers],
        lengths=opened.lengths,
        sizes=opened.sizes,
        entries=entries,
        num_cameras=num_cameras,
    )


def plan_config(opened: OpenedDataset, config: StreamConfig, *, num_workers: int) -> PlanConfig:
    """The settings as planning sees them."""
    layout = opened.layout
    frame_bytes = sum(int(np.prod(shape)) for shape in layout.cameras.values())
    offsets = [
        int(offset)
        for key in layout.cameras
        if key in layout.windows
        for offset in layout.windows[key].offset
    ]
    return PlanConfig(
        seed=order_seed(config.seed),
        world_size=config.world_size,
        num_workers=num_workers,
        strategy=config.sampling_strategy,
        pool_size=config.episode_pool_size,
        byte_budget=int(config.byte_budget_gb * _GB),
        decoded_bytes=int(config.decoded_pool_gb * _GB),
        frame_bytes=frame_bytes or layout.item_bytes,
        item_bytes=layout.item_bytes,
        first_offset=min(0, *offsets, 0),
        last_offset=max(0, *offsets, 0),
    )
