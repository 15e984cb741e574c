"""Everything that the order of one worker depends on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.plan.budget import checked_pool, worker_pool_size
from lerobot_stream.plan.capacity import Capacity, plan_capacity
from lerobot_stream.plan.ragged import Ragged
from lerobot_stream.plan.shard import plan_rank, plan_shards
from lerobot_stream.plan.strategy import Strategy

RUN_FRAMES = 16
"""Consecutive frames that ``clip`` decodes together."""


@dataclass(frozen=True, slots=True, eq=False)
class Episodes:
    """The selected episodes of a dataset, a column per array."""

    index: NDArray[np.int64]
    """``(e,)`` ``episode_index`` of each."""
    lengths: NDArray[np.int64]
    """``(e,)`` Frames of each."""
    sizes: NDArray[np.int64]
    """``(e,)`` Bytes to fetch for each."""
    entries: Ragged
    """``(e * num_cameras,)`` rows: frames at which a camera can start clean, rising."""
    num_cameras: int
    """Cameras that are decoded from video; row ``i * num_cameras + c`` is of camera ``c``."""

    def __post_init__(self) -> None:
        """Refuse columns that do not belong together."""
        if not len(self.index) == len(self.lengths) == len(self.sizes):
            raise ValueError(
                f"{len(self.index)} episodes, {len(self.lengths)} lengths, {len(self.sizes)} sizes"
            )
        if len(self.entries) != len(self.index) * self.num_cameras:
            raise ValueError(
                f"{len(self.entries)} rows of entries for {len(self.index)} episodes"
                f" on {self.num_cameras} cameras"
            )
        if np.any(self.lengths < 1):
            short = int(np.argmax(self.lengths < 1))
            raise ValueError(f"episode {self.index[short]} has {self.lengths[short]} frames")

    def __len__(self) -> int:
        """Selected episodes."""
        return len(self.index)

    def select(self, positions: NDArray[np.int64]) -> Episodes:
        """The episodes at the given positions."""
        cameras = np.arange(self.num_cameras, dtype=np.int64)
        rows = (positions[:, None] * self.num_cameras + cameras).ravel()
        return Episodes(
            index=self.index[positions],
            lengths=self.lengths[positions],
            sizes=self.sizes[positions],
            entries=self.entries.select(rows),
            num_cameras=self.num_cameras,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanConfig:
    """What is asked of every order of a job."""

    seed: int
    """Not negative."""
    world_size: int
    """Ranks in the job."""
    num_workers: int
    """Workers of each rank that plan on their own; 1 where all is in one process."""
    strategy: Strategy
    """How frames are mixed."""
    pool_size: int | None
    """Most episodes that a worker mixes; ``None``: its part of 32 a rank."""
    byte_budget: int
    """Fetched bytes that a rank may hold."""
    decoded_bytes: int
    """Decoded bytes that a rank may hold."""
    frame_bytes: int
    """Decoded bytes of one time step on all cameras, or of one row where there are none."""
    item_bytes: int
    """Decoded bytes of one item with all steps of its camera windows."""
    first_offset: int = 0
    """Earliest step of a camera window, relative to the item; at most 0."""
    last_offset: int = 0
    """Latest step of a camera window; at least 0."""
    run_frames: int = RUN_FRAMES
    """Consecutive frames that ``clip`` decodes together."""

    def __post_init__(self) -> None:
        """Refuse what no plan can be made from."""
        if self.strategy not in get_args(Strategy):
            known = ", ".join(get_args(Strategy))
            raise ValueError(f"sampling strategy must be one of {known}, got {self.strategy!r}")
        if self.seed < 0:
            raise ValueError(f"seed must not be negative, got {self.seed}")
        if not self.first_offset <= 0 <= self.last_offset:
            raise ValueError(f"window [{self.first_offset}, {self.last_offset}] leaves out 0")
        for name in ("world_size", "num_workers", "frame_bytes", "item_bytes", "run_frames"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("byte_budget", "decoded_bytes"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")

    @property
    def worker_pool_size(self) -> int:
        """Episodes that one worker is asked to mix."""
        return worker_pool_size(self.pool_size, self.num_workers)

    @property
    def worker_byte_budget(self) -> int:
        """Fetched bytes that one worker may hold."""
        return self.byte_budget // self.num_workers

    @property
    def worker_decoded_bytes(self) -> int:
        """Decoded bytes that one worker may hold."""
        return self.decoded_bytes // self.num_workers

    def capacity(self, lanes: int) -> Capacity:
        """What a worker with at most so many lanes may hold decoded, where they are read once.

        Raises:
            ValueError: Not even one lane fits.
        """
        return plan_capacity(
            lanes=lanes,
            decoded_bytes=self.decoded_bytes,
            tail_bytes=(self.last_offset - self.first_offset) * self.frame_bytes,
            item_bytes=self.item_bytes,
            num_workers=self.num_workers,
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Share:
    """All that decides the order of one worker, but the epoch."""

    config: PlanConfig
    """What is asked of the job."""
    rank: int
    """Rank of the worker."""
    worker: int
    """Number of the worker within its rank."""
    positions: NDArray[np.int64]
    """``(e,)`` Positions of the worker's episodes in ``selected``, rising."""
    selected: Episodes
    """All selected episodes, of all ranks."""
    episodes: Episodes
    """The worker's episodes."""
    frames: Ragged | None = None
    """``(e,)`` rows: frames to deliver, rising and at least one; ``None``: all."""

    def __post_init__(self) -> None:
        """Refuse episodes of which nothing is to be delivered."""
        if self.frames is not None and np.any(self.frames.counts < 1):
            raise ValueError("a share lists an episode of which no frame is left")

    @property
    def counts(self) -> NDArray[np.int64]:
        """``(e,)`` Frames to deliver of each episode."""
        return self.episodes.lengths if self.frames is None else self.frames.counts

    @property
    def num_items(self) -> int:
        """Items of one epoch."""
        return int(self.counts.sum())

    def pool(self, most: int | None = None) -> int:
        """Episodes that may be mixed within the worker's part of the byte budget.

        Args:
            most: Episodes wanted; ``None``: what the job asks for.

        Returns:
            At least 1 and at most the number of episodes.

        Raises:
            PlanError: Not even one episode and its successor fit.
        """
        return checked_pool(
            self.episodes.index,
            self.episodes.sizes,
            pool_size=self.config.worker_pool_size if most is None else most,
            byte_budget=self.config.worker_byte_budget,
            num_workers=self.config.num_workers,
        )


def plan_share(episodes: Episodes, config: PlanConfig, *, rank: int, worker: int) -> Share:
    """Find the whole episodes that one worker of one rank delivers.

    Args:
        episodes: All selected episodes of the dataset.
        config: What is asked of the job.
        rank: Rank of the worker.
        worker: Number of the worker within its rank.

    Returns:
        The share; the same in every process that asks.

    Raises:
        PlanError: There are more ranks than episodes, or an episode exceeds the budget.
        ValueError: There are more workers than episodes of this rank, or ``clip`` does not
            fit the decoded budget.
    """
    mine = plan_rank(episodes.lengths, rank=rank, world_size=config.world_size)
    if not 0 <= worker < config.num_workers:
        raise ValueError(f"worker {worker} is not one of {config.num_workers}")
    if config.num_workers > len(mine):
        raise ValueError(f"{config.num_workers} workers, {len(mine)} episodes on rank {rank}")
    mine = mine[plan_shards(episodes.lengths[mine], config.num_workers)[worker]]
    share = Share(
        config=config,
        rank=rank,
        worker=worker,
        positions=mine,
        selected=episodes,
        episodes=episodes.select(mine),
    )
    share.pool()
    if config.strategy == "clip":
        config.capacity(1)
    return share
