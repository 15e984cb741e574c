"""A fingerprint of everything that an order depends on, to be kept in a checkpoint."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.plan.order import Order
from lerobot_stream.plan.share import PlanConfig, Share

DIGEST_ITEMS = 1000
"""Items of an order that :func:`order_digest` looks at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanKey:
    """The inputs of an order: numbers as they are, arrays as SHA-256."""

    seed: int
    """Seed of the job."""
    epoch: int
    """Epoch that the stream began with."""
    rank: int
    """Rank."""
    world_size: int
    """Ranks."""
    worker: int
    """Worker of the rank."""
    num_workers: int
    """Workers of each rank."""
    strategy: str
    """Sampling strategy."""
    pool_size: int | None
    """Episodes mixed, as asked for."""
    byte_budget: int
    """Fetched bytes of a rank."""
    decoded_bytes: int
    """Decoded bytes of a rank."""
    frame_bytes: int
    """Decoded bytes of one time step."""
    item_bytes: int
    """Decoded bytes of one item."""
    first_offset: int
    """Earliest step of a camera window."""
    last_offset: int
    """Latest step of a camera window."""
    run_frames: int
    """Frames of a run."""
    num_cameras: int
    """Cameras decoded from video."""
    num_episodes: int
    """Selected episodes."""
    num_frames: int
    """Their frames."""
    episodes: str
    """Hash of the selected ``episode_index``."""
    lengths: str
    """Hash of the frames of each."""
    sizes: str
    """Hash of the bytes of each."""
    entries: str
    """Hash of the frames at which decoding can start clean."""
    frames: str
    """Hash of the frames to deliver, empty where that is all."""

    def difference(self, found: PlanKey) -> list[str]:
        """Say field by field where another key differs.

        Args:
            found: The key of today, where this is the one that was saved.

        Returns:
            A short text for each field that differs; nothing where the orders are equal. Hashes
            are shown only where no number differs.
        """
        names = [f.name for f in fields(self) if getattr(self, f.name) != getattr(found, f.name)]
        readable = [name for name in names if name not in _HASHES]
        texts = []
        for name in readable:
            label = name.removeprefix("num_") if name in _COUNTS else name.replace("_", " ")
            mine, other = getattr(self, name), getattr(found, name)
            texts.append(f"{label} {_shown(mine)}, now {_shown(other)}")
        if _COUNTS.isdisjoint(names):  # else columns of another length differ as a matter of course
            for name in (name for name in names if name in _HASHES):
                mine, other = getattr(self, name), getattr(found, name)
                hashes = f" ({mine[:8] or 'all'}, now {other[:8] or 'all'})"
                texts.append(f"{_HASHES[name]} differ{'' if readable else hashes}")
        return texts

    def config(self) -> PlanConfig:
        """What was asked of the job, and of its rank.

        Raises:
            ValueError: No order can be made from it.
        """
        return PlanConfig(**{field.name: getattr(self, field.name) for field in fields(PlanConfig)})

    def to_json(self) -> dict[str, Any]:
        """Fields by name, as JSON can hold them."""
        return asdict(self)

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> PlanKey:
        """Undo :meth:`to_json`.

        Raises:
            KeyError: A field is missing.
            TypeError: It is not a table of fields, or one has a type of another.
        """
        values = {field.name: saved[field.name] for field in fields(cls)}
        for name, value in values.items():
            wanted = str if name in _HASHES or name == "strategy" else int
            if name == "pool_size" and value is None:
                continue
            if type(value) is not wanted:
                raise TypeError(f"{name} must be {wanted.__name__}, got {value!r}")
        return cls(**values)


_COUNTS = frozenset({"num_episodes", "num_frames"})
_HASHES = {
    "episodes": "selected episodes",
    "lengths": "lengths of episodes",
    "sizes": "bytes of episodes",
    "entries": "frames at which decoding can start",
    "frames": "frames left",
}
"""Columns that are kept as a hash, and what they are to people."""


def plan_key(share: Share, *, epoch: int = 0) -> PlanKey:
    """Record what the order of a share depends on.

    Args:
        share: The worker's share.
        epoch: Epoch that its stream began with.
    """
    selected = share.selected
    return PlanKey(
        **asdict(share.config),
        epoch=epoch,
        rank=share.rank,
        worker=share.worker,
        num_cameras=selected.num_cameras,
        num_episodes=len(selected),
        num_frames=int(selected.lengths.sum()),
        episodes=_hash(selected.index),
        lengths=_hash(selected.lengths),
        sizes=_hash(selected.sizes),
        entries=_hash(selected.entries.start, selected.entries.value),
        frames="" if share.frames is None else _hash(share.frames.start, share.frames.value),
    )


def order_digest(order: Order) -> str:
    """SHA-256 of the first items of an order, as (position of the episode, frame)."""
    episode = order.visit_episode[order.visit[:DIGEST_ITEMS]]
    return _hash(episode, order.frame[:DIGEST_ITEMS])


def _hash(*columns: NDArray[Any]) -> str:
    digest = hashlib.sha256()
    for column in columns:
        digest.update(f"{len(column)};".encode())
        digest.update(np.ascontiguousarray(column, dtype="<i8").data)
    return digest.hexdigest()


def _shown(value: object) -> str:
    return "unset" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
