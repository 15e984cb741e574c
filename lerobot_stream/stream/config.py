"""Settings of the readers: one record, one default each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from lerobot_stream.plan.strategy import Strategy
from lerobot_stream.sidecar.choices import LOCK_TIMEOUT_S, FramesBy

MAX_GB = 1e9
"""Largest budget, far above any memory; it still counts in whole bytes."""


def order_seed(seed: int | None) -> int:
    """Return what decides the order; it is the same in all processes where no seed is given."""
    return 42 if seed is None else seed


@dataclass(frozen=True)
class ReadConfig:
    """Which dataset is read, and what an item shows of it."""

    repo_id: str
    """The dataset's name, ``OWNER/NAME``."""
    root: str | Path | None = None
    """Folder, ``hf://buckets/…`` or fsspec URL; None for the Hub."""
    revision: str | None = None
    """Branch, tag or commit."""
    repo_type: str = "dataset"
    """``dataset`` or ``bucket``."""
    episodes: Sequence[int] | None = None
    """Episodes to read; None for all."""
    exclude_episodes: Sequence[int] | None = None
    """Episodes to leave out."""
    delta_timestamps: Mapping[str, Sequence[float]] | None = None
    """Seconds relative to the current frame, per feature."""
    tolerance_s: float = 1e-4
    """Seconds that a timestamp may be off."""
    frames_by: FramesBy | None = None
    """Which reading decides where counting and time disagree about an episode's pictures."""
    find_rows: bool = False
    """Read an episode's rows from the file that holds them, where its metadata names another."""
    download: bool = False
    """Bring a Hub dataset's files to this machine first."""
    native_http_connections: int | None = None
    """HTTP connections; None for the source's own number."""
    native_http_subranges: int = 1
    """Parts in which a large span is requested."""
    sidecar_lock_timeout_s: float = LOCK_TIMEOUT_S
    """Seconds to wait for another process that builds the sidecar."""

    def __post_init__(self) -> None:
        """Refuse what means nothing."""
        if self.frames_by not in (None, *get_args(FramesBy)):
            known = ", ".join(get_args(FramesBy))
            raise ValueError(f"frames_by must be one of {known} or None, got {self.frames_by!r}")
        if not self.tolerance_s >= 0:
            raise ValueError(f"tolerance_s must be at least 0, got {self.tolerance_s}")
        for name in ("native_http_connections", "native_http_subranges"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")


@dataclass(frozen=True)
class StreamConfig:
    """How the frames of one rank are ordered, fetched and decoded."""

    seed: int | None = 1000
    """Decides the order; None counts as 42."""
    sampling_strategy: Strategy = "remaining"
    """How episodes are mixed."""
    episode_pool_size: int | None = None
    """Most episodes mixed by a worker; None for 32 a rank."""
    prefetch_episodes: int = 8
    """Episodes fetched ahead of the pool."""
    byte_budget_gb: float = 8.0
    """Most coded video held by a rank."""
    decoded_pool_gb: float = 2.0
    """Most decoded pictures held by a rank ahead of the batch being delivered."""
    decode_threads: int = 2
    """Decode threads a worker."""
    decoded_queue_size: int = 8
    """Most finished batches waiting, where the strategy allows to stop there."""
    video_decoder_cache_size: int | None = None
    """Most open decoders of a worker; None for one for each episode being read and camera."""
    max_num_shards: int = 16
    """Episodes fetched at once by a worker."""
    repeat: bool = False
    """Go on with the next epoch for ever, in full batches."""
    rank: int = 0
    """This process among ``world_size``."""
    world_size: int = 1
    """Processes that share the epoch."""

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing."""
        if not 0 <= self.rank < self.world_size:
            raise ValueError(f"rank {self.rank} is not in [0, {self.world_size})")
        least = {
            "episode_pool_size": 1,
            "prefetch_episodes": 0,
            "decode_threads": 1,
            "decoded_queue_size": 1,
            "video_decoder_cache_size": 1,
            "max_num_shards": 1,
        }
        for name, bound in least.items():
            value = getattr(self, name)
            if value is not None and value < bound:
                raise ValueError(f"{name} must be at least {bound}, got {value}")
        for name in ("byte_budget_gb", "decoded_pool_gb"):
            if not 0 < getattr(self, name) <= MAX_GB:
                raise ValueError(
                    f"{name} must be above 0 and at most {MAX_GB:g}, got {getattr(self, name)}"
                )
        if self.sampling_strategy not in get_args(Strategy):
            known = ", ".join(get_args(Strategy))
            raise ValueError(
                f"sampling_strategy must be one of {known}, got {self.sampling_strategy!r}"
            )
