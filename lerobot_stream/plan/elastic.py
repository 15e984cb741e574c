"""Going on with another number of ranks or workers: what is left of epochs already begun."""

from __future__ import annotations

import base64
import itertools
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.plan.epoch import plan_epoch
from lerobot_stream.plan.layers import Layers
from lerobot_stream.plan.offset import worker_offset
from lerobot_stream.plan.ragged import Ragged
from lerobot_stream.plan.shard import plan_shards
from lerobot_stream.plan.share import Episodes, PlanConfig, Share, plan_share

Bitmap = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Base:
    """Frames that any rank has delivered before the steps now counted."""

    unfinished: Mapping[int, Bitmap]
    """Epoch: ``(n,)`` true for each frame seen, episodes one after another."""
    next_epoch: int
    """The first epoch of which nothing has been seen."""

    def num_items(self, num_frames: int) -> int:
        """Items delivered since epoch 0 began.

        Args:
            num_frames: Frames of the selected episodes.
        """
        left = sum(num_frames - int(seen.sum()) for seen in self.unfinished.values())
        return self.next_epoch * num_frames - left

    def to_json(self) -> dict[str, Any]:
        """The same as values that JSON can hold."""
        unfinished = {
            str(epoch): base64.b64encode(zlib.compress(np.packbits(seen).tobytes())).decode()
            for epoch, seen in self.unfinished.items()
        }
        return {"next_epoch": self.next_epoch, "unfinished": unfinished}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any], *, num_frames: int) -> Base:
        """Undo :meth:`to_json`.

        Args:
            saved: What was saved.
            num_frames: Frames of the selected episodes.

        Raises:
            ValueError: A bitmap is damaged, or of another number of frames.
            KeyError: A field is missing.
        """
        unfinished = {
            int(epoch): _unpacked(text, num_frames) for epoch, text in saved["unfinished"].items()
        }
        return cls(unfinished, int(saved["next_epoch"]))


def _unpacked(text: str, num_frames: int) -> Bitmap:
    wanted = -(-num_frames // 8)
    inflate = zlib.decompressobj()
    try:
        packed = inflate.decompress(base64.b64decode(text, validate=True), wanted + 1)
    except zlib.error as error:
        raise ValueError(f"bitmap of frames seen is damaged: {error}") from error
    if len(packed) != wanted or not inflate.eof:
        raise ValueError(f"bitmap of frames seen is not of {num_frames:,} frames")
    bits = np.unpackbits(np.frombuffer(packed, dtype=np.uint8))
    if np.any(bits[num_frames:]):
        raise ValueError(f"bitmap of frames seen has more than {num_frames:,} frames")
    return bits[:num_frames].astype(np.bool_)


def new_base(epoch: int = 0) -> Base:
    """Nothing seen of any epoch from the given one on."""
    return Base({}, epoch)


def plan_layers(
    episodes: Episodes, config: PlanConfig, base: Base, *, rank: int, worker: int
) -> Layers:
    """Find what one worker delivers of the epochs already begun and of all that follow.

    Args:
        episodes: All selected episodes.
        config: What is asked of the job now.
        base: What has been seen before.
        rank: Rank of the worker.
        worker: Number of the worker within its rank.

    Returns:
        The worker's shares. An epoch already begun of which nothing is left for it is left out.

    Raises:
        PlanError: A whole epoch has no episode for the rank, or one exceeds the budget.
        ValueError: A whole epoch has no episode for the worker.
    """
    whole = plan_share(episodes, config, rank=rank, worker=worker)
    unfinished = {}
    for epoch in sorted(base.unfinished):
        workers = [config.num_workers] * config.world_size
        layer = _Layer.of(episodes, base.unfinished[epoch], workers)
        share = layer.share(config, rank, worker)
        if share is not None:
            unfinished[epoch] = share
    return Layers(unfinished, base.next_epoch, whole)


def advance(
    episodes: Episodes, configs: Sequence[PlanConfig], base: Base, *, steps: int, batch_size: int
) -> Base:
    """Add what all ranks have delivered since a base, as each process can find out alone.

    Args:
        episodes: All selected episodes.
        configs: What was asked of each rank in these steps; they may differ in their workers.
        base: What had been seen before them.
        steps: Batches that each rank has taken.
        batch_size: Items of each batch.

    Returns:
        The base to go on from, with any config.
    """
    workers = [config.num_workers for config in configs]
    items = {
        (rank, worker): worker_offset(
            steps, num_workers=workers[rank], worker=worker, batch_size=batch_size
        )
        for rank in range(len(configs))
        for worker in range(workers[rank])
    }
    unfinished: dict[int, Bitmap] = {}
    next_epoch = base.next_epoch
    whole = None
    for epoch in itertools.chain(sorted(base.unfinished), itertools.count(base.next_epoch)):
        seen = base.unfinished.get(epoch)
        if seen is None:
            if not any(items.values()):
                break
            whole = whole or _Layer.of(episodes, None, workers)
            layer, seen = whole, np.zeros(int(episodes.lengths.sum()), dtype=np.bool_)
            next_epoch = epoch + 1
        else:
            layer, seen = _Layer.of(episodes, seen, workers), seen.copy()
        for place in items:
            share = layer.share(configs[place[0]], *place) if items[place] else None
            if share is not None:
                items[place] -= _mark(seen, share, epoch=epoch, items=items[place])
        if not seen.all():
            unfinished[epoch] = seen
    return Base(unfinished, next_epoch)


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """What is left of one epoch, dealt to all ranks and workers."""

    episodes: Episodes
    """All selected episodes."""
    left: Ragged | None
    """``(e,)`` rows: frames not yet seen; ``None``: all."""
    dealt: list[list[NDArray[np.int64]]]
    """Positions of the episodes of each rank and worker."""

    @classmethod
    def of(cls, episodes: Episodes, seen: Bitmap | None, workers: Sequence[int]) -> _Layer:
        """Deal whole episodes so that the frames left are balanced over ranks and workers."""
        left = None if seen is None else _frames_left(episodes, seen)
        counts = episodes.lengths if left is None else left.counts
        active = np.flatnonzero(counts)
        dealt = []
        for part, num_workers in zip(
            plan_shards(counts[active], len(workers)), workers, strict=True
        ):
            mine = active[part]
            dealt.append([mine[worker] for worker in plan_shards(counts[mine], num_workers)])
        return cls(episodes, left, dealt)

    def share(self, config: PlanConfig, rank: int, worker: int) -> Share | None:
        """Share of one worker, if there is anything left for it."""
        positions = self.dealt[rank][worker]
        if not len(positions):
            return None
        return Share(
            config=config,
            rank=rank,
            worker=worker,
            positions=positions,
            selected=self.episodes,
            episodes=self.episodes.select(positions),
            frames=None if self.left is None else self.left.select(positions),
        )


def _mark(seen: Bitmap, share: Share, *, epoch: int, items: int) -> int:
    """Mark the first ``items`` that a worker delivers, and say how many there were."""
    lengths = share.selected.lengths
    starts = (np.cumsum(lengths) - lengths)[share.positions]
    order = plan_epoch(share, epoch=epoch)
    delivered = order.visit_episode[order.visit[:items]]
    seen[starts[delivered] + order.frame[:items]] = True
    return len(delivered)


def _frames_left(episodes: Episodes, seen: Bitmap) -> Ragged:
    """``(e,)`` rows of the frames not yet seen."""
    left = np.flatnonzero(~seen)
    stops = np.cumsum(episodes.lengths)
    start = np.append(0, np.searchsorted(left, stops))
    first = np.repeat(stops - episodes.lengths, np.diff(start))
    return Ragged(start, (left - first).astype(np.int32))
