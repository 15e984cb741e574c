"""What is measured: a stream in this process or in workers, and the map-style loader."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import torch
from torch.utils.data import DataLoader, IterableDataset, Sampler, get_worker_info

from lerobot_stream.plan.blocks import look_ahead
from lerobot_stream.plan.elastic import new_base
from lerobot_stream.stream.batch import Batch
from lerobot_stream.stream.config import StreamConfig
from lerobot_stream.stream.dataset import StreamingLeRobotDataset
from lerobot_stream.stream.map_style import LeRobotDataset
from lerobot_stream.stream.opened import OpenedDataset
from lerobot_stream.stream.shares import plan_stream
from lerobot_stream.stream.worker import WorkerStream
from tests.benchmarks.quiet import cpu_seconds, wait_until_quiet

BATCH_SIZE = 64
START_METHOD = "forkserver"


@dataclass(frozen=True, slots=True)
class Slice:
    """A stretch of a run."""

    seconds: float
    """From the first batch asked for until nothing is left to do."""
    cpu_s: float
    """Seconds of one core that this process and its workers took."""
    pictures: int
    """Wanted pictures decoded."""
    decoded: int
    """Pictures decoded, those before the wanted ones included."""

    @property
    def rate(self) -> float:
        """Wanted pictures a second."""
        return self.pictures / self.seconds


class Contestant(Protocol):
    """Something that delivers batches for ever."""

    step: int
    """Batches that are best taken together."""
    warm: int
    """Batches after which all memory is used again."""

    def take(self, batches: int) -> None:
        """Take batches and drop them."""
        ...

    def counts(self) -> tuple[int, int]:
        """Pictures wanted and decoded so far."""
        ...

    def close(self) -> None:
        """Stop all of it."""
        ...


def advance(contestant: Contestant, batches: int) -> Slice:
    """Take batches as fast as they come, and wait until the room they leave is filled again.

    Before and behind it all that may be decoded ahead is decoded, so what is done in between is
    what the batches cost, whatever was in the making.
    """
    pictures, decoded = contestant.counts()
    started, cpu_s = time.perf_counter(), cpu_seconds()
    contestant.take(batches)
    stopped = wait_until_quiet()
    now_pictures, now_decoded = contestant.counts()
    return Slice(
        seconds=stopped - started,
        cpu_s=cpu_seconds() - cpu_s,
        pictures=now_pictures - pictures,
        decoded=now_decoded - decoded,
    )


class Threads:
    """A stream in this process."""

    def __init__(self, dataset: StreamingLeRobotDataset) -> None:
        """Start it."""
        self.step, self.warm = _steps(dataset, num_workers=1)
        self._stream = _start(dataset.opened, dataset.config, worker=0, num_workers=1)
        self._batches = iter(self._stream)

    def take(self, batches: int) -> None:
        """Take batches and drop them."""
        for _ in islice(self._batches, batches):
            pass

    def counts(self) -> tuple[int, int]:
        """Pictures wanted and decoded so far."""
        return self._stream.decoders.pictures, self._stream.decoders.decoded

    def close(self) -> None:
        """Stop all of it."""
        self._stream.close()


class Workers:
    """A stream in the workers of a loader."""

    def __init__(self, dataset: StreamingLeRobotDataset, *, num_workers: int) -> None:
        """Start it."""
        step, warm = _steps(dataset, num_workers=num_workers)
        self.step, self.warm = num_workers * step, num_workers * warm
        self._counts = torch.zeros(num_workers, 2, dtype=torch.int64).share_memory_()  # type: ignore[no-untyped-call]
        watched = _WatchedBatches(dataset.opened, dataset.config, self._counts)
        self._batches = _loader(watched, batch_size=None, num_workers=num_workers)

    def take(self, batches: int) -> None:
        """Take batches and drop them."""
        for _ in islice(self._batches, batches):
            pass

    def counts(self) -> tuple[int, int]:
        """Pictures wanted and decoded so far."""
        pictures, decoded = self._counts.sum(dim=0).tolist()
        return pictures, decoded

    def close(self) -> None:
        """Stop all of it."""
        del self._batches


class MapStyle:
    """Items by random number, collated by a loader: what a stream is measured against."""

    step, warm = 1, 6

    def __init__(self, dataset: LeRobotDataset, *, num_workers: int) -> None:
        """Start it."""
        self._cameras = len(dataset.opened.layout.cameras)
        self._taken = 0
        self._batches = _loader(
            dataset,
            batch_size=BATCH_SIZE,
            num_workers=num_workers,
            sampler=_ForEver(len(dataset)),
        )

    def take(self, batches: int) -> None:
        """Take batches and drop them."""
        for _ in islice(self._batches, batches):
            self._taken += BATCH_SIZE * self._cameras

    def counts(self) -> tuple[int, int]:
        """Pictures taken; what is decoded before them is not known."""
        return self._taken, self._taken

    def close(self) -> None:
        """Stop all of it."""
        del self._batches


class _WatchedBatches(IterableDataset[Batch]):
    """Batches of one loader worker, whose counts can be read from outside at any time."""

    def __init__(self, opened: OpenedDataset, config: StreamConfig, counts: torch.Tensor) -> None:
        super().__init__()
        self._opened = opened
        self._config = config
        self._counts = counts

    def __iter__(self) -> Iterator[Batch]:
        info = get_worker_info()
        if info is None:
            raise RuntimeError("meant for the workers of a loader")
        stream = _start(self._opened, self._config, worker=info.id, num_workers=info.num_workers)
        counts = self._counts[info.id]

        def watch() -> None:
            while True:
                counts[0], counts[1] = stream.decoders.pictures, stream.decoders.decoded
                time.sleep(0.02)

        threading.Thread(target=watch, daemon=True).start()
        yield from stream


class _ForEver(Sampler[int]):
    """Random items without end."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(0)
        while True:
            yield from torch.randperm(self._count, generator=generator).tolist()


def _start(
    opened: OpenedDataset, config: StreamConfig, *, worker: int, num_workers: int
) -> WorkerStream:
    layers = plan_stream(opened, config, new_base(), num_workers=num_workers, worker=worker)
    return WorkerStream(
        opened, config, layers, epoch=0, item=0, batch_size=BATCH_SIZE, as_uint8=True
    )


def _loader(dataset: Any, *, num_workers: int, **settings: Any) -> Iterator[Any]:
    loader = DataLoader(
        dataset, num_workers=num_workers, multiprocessing_context=START_METHOD, **settings
    )
    return iter(loader)


def _steps(dataset: StreamingLeRobotDataset, *, num_workers: int) -> tuple[int, int]:
    """Batches of a worker that it decodes together, and those that fill its memory."""
    share = dataset.plan(worker=0, num_workers=num_workers)
    config = share.config
    full = config.worker_decoded_bytes // (config.item_bytes * BATCH_SIZE)
    if config.strategy == "clip":  # how many batches are open rises and falls: go round twice
        return 1, 2 * full + 8
    return look_ahead(share, batch_size=BATCH_SIZE) // BATCH_SIZE, full + 8
