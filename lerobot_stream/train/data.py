"""Where the batches of a run come from, and its place in them."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import torch
from torch.utils.data import DataLoader, Dataset

from lerobot_stream.counted import counted
from lerobot_stream.errors import CheckpointError
from lerobot_stream.stream.dataset import StreamingLeRobotDataset
from lerobot_stream.stream.map_style import LeRobotDataset
from lerobot_stream.stream.transform import Transform, transform_item
from lerobot_stream.train.loader import LoaderSettings, make_loader
from lerobot_stream.train.map_order import Number, endless_batches
from lerobot_stream.train.policies.base import Batch

ELASTIC_OR_NEW = (
    "plan what is left of the epoch anew with --resume_elastic=true, or start a new run from its "
    "weights with --policy.path"
)


class Data(Protocol):
    """An endless stream of batches that knows where it stands."""

    @property
    def num_frames(self) -> int:
        """Frames of one epoch, over all ranks."""
        ...

    @property
    def num_episodes(self) -> int:
        """Their episodes."""
        ...

    @property
    def num_items(self) -> int:
        """Items that all ranks together have taken."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Start where a state was taken, before the first batch is asked for.

        Raises:
            CheckpointError: The batches would not be those of the interrupted run.
        """
        ...

    def restore_job(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Start with what is left of the epochs of a job with other ranks or batches.

        Args:
            states: One of each of its ranks.

        Raises:
            CheckpointError: It is not known what that job has left of these episodes.
        """
        ...

    def __iter__(self) -> Generator[Batch]:
        """Hand out batches without end."""
        ...

    def state(self) -> dict[str, Any]:
        """Where the next batch is, as JSON can hold it."""
        ...


class StreamedData:
    """Batches of a stream, made in this process or in workers."""

    def __init__(
        self,
        dataset: StreamingLeRobotDataset,
        *,
        batch_size: int,
        device: torch.device,
        loader: LoaderSettings,
    ) -> None:
        """Prepare to read.

        Args:
            dataset: An endless one, of this rank.
            batch_size: Items a batch.
            device: Where the batches are wanted.
            loader: How workers are run.
        """
        self.dataset = dataset
        self.num_frames = dataset.num_frames
        self.num_episodes = dataset.num_episodes
        self._batch_size = batch_size
        self._device = device
        self._loader = loader
        self._taken = 0

    @property
    def num_items(self) -> int:
        """See :class:`Data`."""
        since = self._taken * self._batch_size * self.dataset.config.world_size
        return self.dataset.base.num_items(self.num_frames) + since

    def restore(self, state: Mapping[str, Any]) -> None:
        """See :class:`Data`."""
        if state.get("reader") != "stream":
            raise _other_reader("streaming=true", state)
        if state["batch_size"] != self._batch_size:
            raise CheckpointError(
                f"saved with --batch_size={state['batch_size']}, now {self._batch_size}",
                hint=ELASTIC_OR_NEW,
            )
        workers = max(1, self._loader.num_workers)
        if state["num_workers"] != workers:
            raise CheckpointError(
                f"saved with {counted(state['num_workers'], 'worker')}, now {workers}",
                hint=ELASTIC_OR_NEW,
            )
        self.dataset.load_state_dict(state)
        self._taken = int(state["batches"])

    def restore_job(self, states: Sequence[Mapping[str, Any]]) -> None:
        """See :class:`Data`."""
        for state in states:
            if state.get("reader") != "stream":
                raise _other_reader("streaming=true", state)
        self.dataset.load_job_state(states)

    def __iter__(self) -> Generator[Batch]:
        """See :class:`Data`."""
        batches: Iterable[Batch]
        if self._loader.num_workers:
            workers = self.dataset.worker_batches(self._batch_size)
            batches = make_loader(workers, self._loader, device=self._device)
        else:
            on_gpu = self._device.type == "cuda"
            batches = self.dataset.batches(
                self._batch_size, device=self._device if on_gpu else None
            )
        for batch in batches:
            self._taken += 1
            yield batch

    def state(self) -> dict[str, Any]:
        """See :class:`Data`."""
        state = self.dataset.state_dict(
            self._taken, self._batch_size, num_workers=self._loader.num_workers
        )
        return {"reader": "stream", **state}


@dataclass(frozen=True, slots=True, kw_only=True)
class MapKey:
    """What the order of a map-style run depends on."""

    seed: int
    """Seed of the order."""
    rank: int
    """This process."""
    world_size: int
    """Processes of the job."""
    batch_size: int
    """Items a batch."""
    num_frames: int
    """Frames of the selected episodes."""
    num_episodes: int
    """The selected episodes."""


class MapData:
    """Batches of a map-style dataset, through PyTorch's loader."""

    def __init__(
        self,
        dataset: LeRobotDataset,
        *,
        seed: int,
        rank: int,
        world_size: int,
        batch_size: int,
        transform: Transform | None,
        device: torch.device,
        loader: LoaderSettings,
    ) -> None:
        """Prepare to read.

        Args:
            dataset: The items.
            seed: Decides their order.
            rank: This process.
            world_size: Processes that share the order.
            batch_size: Items a batch.
            transform: Random picture changes, or None.
            device: Where the batches are wanted.
            loader: How workers are run.
        """
        self.num_frames = len(dataset)
        self.num_episodes = dataset.num_episodes
        self._items = NumberedItems(dataset, transform, seed=seed)
        self._key = MapKey(
            seed=seed,
            rank=rank,
            world_size=world_size,
            batch_size=batch_size,
            num_frames=self.num_frames,
            num_episodes=self.num_episodes,
        )
        self._device = device
        self._loader = loader
        self._before = 0
        self._taken = 0

    @property
    def num_items(self) -> int:
        """See :class:`Data`."""
        return self._before + self._taken * self._key.batch_size * self._key.world_size

    def restore(self, state: Mapping[str, Any]) -> None:
        """See :class:`Data`."""
        self._check(state, tuple(asdict(self._key)))
        self._before = int(state.get("before", 0))
        self._taken = int(state["batches"])

    def restore_job(self, states: Sequence[Mapping[str, Any]]) -> None:
        """See :class:`Data`."""
        first = states[0]
        self._check(first, ("seed", "num_frames", "num_episodes"))
        key = MapKey(**first["key"])
        taken = int(first["batches"]) * key.batch_size * key.world_size
        self._before = int(first.get("before", 0)) + taken

    def _check(self, state: Mapping[str, Any], names: Sequence[str]) -> None:
        if state.get("reader") != "map":
            raise _other_reader("streaming=false", state)
        for name in names:
            saved, now = state["key"][name], getattr(self._key, name)
            if saved != now:
                raise CheckpointError(
                    f"saved with {name.replace('_', ' ')} {saved}, now {now}", hint=ELASTIC_OR_NEW
                )

    def __iter__(self) -> Generator[Batch]:
        """See :class:`Data`."""
        key = self._key
        numbers = endless_batches(
            key.num_frames,
            seed=key.seed,
            rank=key.rank,
            world_size=key.world_size,
            batch_size=key.batch_size,
            start=self.num_items,
        )
        loader: DataLoader[Batch] = make_loader(
            self._items, self._loader, device=self._device, numbers=numbers
        )
        for batch in loader:
            self._taken += 1
            yield batch

    def state(self) -> dict[str, Any]:
        """See :class:`Data`."""
        return {
            "reader": "map",
            "before": self._before,
            "batches": self._taken,
            "key": asdict(self._key),
        }


class NumberedItems(Dataset[dict[str, Any]]):
    """Items by (epoch, number), changed at random by a generator seeded with both."""

    def __init__(self, dataset: LeRobotDataset, transform: Transform | None, *, seed: int) -> None:
        """Wrap a dataset.

        Args:
            dataset: The items.
            transform: Random picture changes, or None.
            seed: Seeds them.
        """
        self._dataset = dataset
        self._transform = transform
        self._seed = seed
        self._cameras = dataset.meta.info.camera_keys

    def __getitem__(self, number: Number) -> dict[str, Any]:
        """One item."""
        epoch, place = number
        item = self._dataset[place]
        if self._transform is not None:
            seeds = (self._seed, epoch, int(item["index"]))
            for key in self._cameras:
                item[key] = transform_item(self._transform, item[key], seeds)
        return item


def _other_reader(wanted: str, state: Mapping[str, Any]) -> CheckpointError:
    reader = {"stream": "streaming=true", "map": "streaming=false"}.get(str(state.get("reader")))
    return CheckpointError(
        f"saved with --dataset.{reader or 'another reader'}, now --dataset.{wanted}",
        hint="start a new run from its weights with --policy.path",
    )
