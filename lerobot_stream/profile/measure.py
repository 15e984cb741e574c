"""One profile of a stream: what it delivers, what it waits for, and what it costs."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np

from lerobot_stream.profile.batches import counted_batches
from lerobot_stream.profile.limit import SequentialLimit
from lerobot_stream.profile.memory import MemoryUse, read_memory
from lerobot_stream.profile.mixing import plan_mixing
from lerobot_stream.profile.timeline import Timeline
from lerobot_stream.stream.config import StreamConfig
from lerobot_stream.stream.opened import OpenedDataset
from lerobot_stream.stream.stats import StreamStats

_MEMORY_READINGS = 8
"""Times that memory is looked at; each look at gigabytes takes milliseconds."""
_LIMIT_PICTURES = 1024
"""Pictures decoded to find the limit, before the stream and again behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileConfig:
    """How much is measured."""

    batch_size: int = 8
    """Items a batch."""
    batches: int = 200
    """Batches to take, over the end of an epoch where need be."""
    num_workers: int = 0
    """Worker processes; 0 for threads alone."""
    limit: bool = False
    """Measure the sequential decode limit too."""

    def __post_init__(self) -> None:
        """Refuse what measures nothing."""
        for name, least in {"batch_size": 1, "batches": 2, "num_workers": 0}.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class Limit:
    """The sequential decode limit of this machine."""

    pictures_per_s: float
    """Pictures a second, every one of an episode in order, all threads together."""
    threads: int
    """Decode threads."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """What was measured."""

    first_batch_s: float
    """Seconds from the start of the stream to its first batch; the dataset was open already."""
    timeline: Timeline
    """When the batches came."""
    stats: StreamStats
    """Counts at the last batch; what is held, at its most."""
    memory: MemoryUse
    """At its most."""
    mixing: dict[str, float] | None
    """Measures of the first epoch's order, by name."""
    num_workers: int
    """Worker processes; 0 for threads alone."""
    limit: Limit | None
    """None where it was not asked for."""

    @property
    def waiting_shares(self) -> dict[str, float]:
        """Share of the run in which a batch was waited for, by what was under way."""
        run_s = float(self.timeline.came_s[-1]) * max(1, self.num_workers)
        causes = ("network", "decode", "assembly")
        return {cause: getattr(self.stats, f"{cause}_s") / run_s for cause in causes}

    @property
    def of_limit(self) -> float | None:
        """Pictures decoded a second, as a share of the limit."""
        if self.limit is None:
            return None
        return self.timeline.overall(self.timeline.pictures) / self.limit.pictures_per_s

    def to_json(self) -> dict[str, Any]:
        """All numbers, nested by subject, as values that JSON can hold."""
        stats, timeline = self.stats, self.timeline
        return {
            "items_per_s": asdict(timeline.items_per_s()),
            "pictures_per_s": asdict(timeline.pictures_per_s()),
            "first_batch_s": self.first_batch_s,
            "run_s": float(timeline.came_s[-1]),
            "batches": len(timeline.items),
            "items": stats.items,
            "wait_s": asdict(timeline.waits()),
            "waiting_shares": self.waiting_shares,
            "pictures": stats.pictures,
            "pictures_decoded": stats.decoded,
            "requests": stats.requests,
            "fetched_bytes": stats.fetched_bytes,
            "wanted_bytes": stats.wanted_bytes,
            "reserved_bytes": stats.reserved_bytes,
            "resident_bytes": stats.resident_bytes,
            "open_bytes": stats.open_bytes,
            f"{self.memory.kind}_bytes": self.memory.size,
            "mixing": self.mixing,
            "limit": None if self.limit is None else asdict(self.limit),
            "of_limit": self.of_limit,
        }


def profile_stream(opened: OpenedDataset, config: StreamConfig, what: ProfileConfig) -> Profile:
    """Run a stream for some batches and measure it.

    Args:
        opened: The open dataset.
        config: Settings of the stream; with ``repeat``, so that there are batches enough.
        what: How much is measured.

    Raises:
        StreamError: Data cannot be read.
        ValueError: The settings do not fit the dataset.
    """
    mixing = plan_mixing(opened, config, batch_size=what.batch_size, num_workers=what.num_workers)
    threads = config.decode_threads * max(1, what.num_workers)
    sequential, rates = None, []
    if what.limit:
        sequential = SequentialLimit(opened, threads=threads, frames=_LIMIT_PICTURES)
        sequential.run(_LIMIT_PICTURES // 4)
        rates.append(sequential.run(_LIMIT_PICTURES).rate)
    timeline, stats, memory = _run(opened, config, what)
    if sequential is not None:
        rates.append(sequential.run(_LIMIT_PICTURES).rate)
    return Profile(
        first_batch_s=float(timeline.came_s[0]),
        timeline=timeline,
        stats=stats,
        memory=memory,
        mixing=None if mixing is None else mixing.summary(),
        num_workers=what.num_workers,
        limit=Limit(float(np.mean(rates)), threads) if rates else None,
    )


def _run(
    opened: OpenedDataset, config: StreamConfig, what: ProfileConfig
) -> tuple[Timeline, StreamStats, MemoryUse]:
    batches = counted_batches(
        opened, config, batch_size=what.batch_size, num_workers=what.num_workers
    )
    looks = set(np.linspace(0, what.batches - 1, _MEMORY_READINGS).astype(int).tolist())
    came, waits, noted, memory = [], [], [], []
    started = asked = time.perf_counter()
    for number, stats in enumerate(islice(batches, what.batches)):
        now = time.perf_counter()
        came.append(now - started)
        waits.append(now - asked)
        noted.append(stats)
        if number in looks:
            memory.append(read_memory())
        asked = time.perf_counter()
    batches.close()
    timeline = Timeline(
        came_s=np.array(came),
        wait_s=np.array(waits),
        items=np.array([stats.items for stats in noted]),
        pictures=np.array([stats.pictures for stats in noted]),
    )
    return timeline, _at_most(noted), max(memory, key=lambda use: use.size)


def _at_most(noted: list[StreamStats]) -> StreamStats:
    """The last counts, with the most that was held at any batch."""
    held = ("reserved_bytes", "resident_bytes", "open_bytes")
    most = {name: max(getattr(stats, name) for stats in noted) for name in held}
    return StreamStats(**{**asdict(noted[-1]), **most})
