"""The place of one rank's stream as a checkpoint keeps it, and how a job of others goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from lerobot_stream.errors import CheckpointError
from lerobot_stream.plan.elastic import Base, Bitmap, advance
from lerobot_stream.plan.key import PlanKey
from lerobot_stream.plan.share import Episodes, PlanConfig
from lerobot_stream.stream.position import Place

NEW_RUN = "start a new run from its weights with --policy.path"
_ELASTIC = {"epoch", "rank", "worker", *(field.name for field in fields(PlanConfig))}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StreamState:
    """Where the stream of one rank stood, and all that its order depended on."""

    place: Place
    """Batches delivered."""
    num_workers: int
    """Workers of the rank; 1 where all is in one process."""
    key: PlanKey
    """What the order depended on, beside the unfinished epochs."""
    digest: str | None
    """SHA-256 of the first items of the epoch, that equal settings planned there; None where
    another order was asked for since."""
    unfinished: Mapping[int, Bitmap]
    """What had been seen of epochs before the batches that are counted."""

    @property
    def base(self) -> Base:
        """What had been seen before the batches that are counted."""
        return Base(self.unfinished, self.place.epoch)

    def to_json(self) -> dict[str, Any]:
        """The same as values that JSON can hold; ``base`` only where epochs are unfinished."""
        state = {
            **asdict(self.place),
            "num_workers": self.num_workers,
            "plan": self.key.to_json(),
            "digest": self.digest,
        }
        return {**state, "base": self.base.to_json()} if self.unfinished else state

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> StreamState:
        """Undo :meth:`to_json`.

        Raises:
            CheckpointError: It is none, or damaged.
        """
        try:
            key = PlanKey.from_json(saved["plan"])
            base = saved.get("base")
            return cls(
                place=Place(*(int(saved[field.name]) for field in fields(Place))),
                num_workers=int(saved["num_workers"]),
                key=key,
                digest=None if saved["digest"] is None else str(saved["digest"]),
                unfinished={}
                if base is None
                else Base.from_json(base, num_frames=key.num_frames).unfinished,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CheckpointError(
                f"the checkpoint holds no position in a stream of this reader ({error!r})",
                hint=NEW_RUN,
            ) from error


def next_base(states: Sequence[StreamState], episodes: Episodes, *, now: PlanKey) -> Base:
    """Find out what all ranks of a job have seen, so that any other job can go on.

    Args:
        states: One of each rank.
        episodes: The selected episodes, which must be those of that job.
        now: The key of any share of today.

    Raises:
        CheckpointError: The states do not belong together, or to these episodes.
    """
    first = states[0]
    ranks = [state.key.rank for state in states]
    if ranks != list(range(first.key.world_size)):
        raise CheckpointError(f"saved by {first.key.world_size} ranks, found those of {ranks}")
    for state in states:
        if state.place != first.place:
            raise CheckpointError(
                f"rank {state.key.rank} stood at {state.place}, rank 0 at {first.place}"
            )
        common = replace(state.key, **{name: getattr(now, name) for name in _ELASTIC})
        if differences := common.difference(now):
            raise CheckpointError(
                "the episodes differ from the interrupted run's: " + "; ".join(differences),
                hint=f"resume with the same data, or {NEW_RUN}",
            )
    return advance(
        episodes,
        [state.key.config() for state in states],
        first.base,
        steps=first.place.batches,
        batch_size=first.place.batch_size,
    )
