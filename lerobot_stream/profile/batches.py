"""The batches of a stream together with its counts, in this process or from loader workers."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import fields

from torch.utils.data import DataLoader, IterableDataset

from lerobot_stream.plan.elastic import new_base
from lerobot_stream.stream.batch import Batch
from lerobot_stream.stream.config import StreamConfig
from lerobot_stream.stream.opened import OpenedDataset
from lerobot_stream.stream.shares import plan_stream
from lerobot_stream.stream.stats import StreamStats
from lerobot_stream.stream.worker import WorkerStream, loader_worker
from lerobot_stream.stream.worker_faults import FaultsAsBatches, raising


class CountedBatches(IterableDataset[tuple[Batch, int, StreamStats]]):
    """Yields batches with the number of the worker they are from and its counts so far."""

    def __init__(self, opened: OpenedDataset, config: StreamConfig, *, batch_size: int) -> None:
        """Stream ``opened`` as ``config`` says."""
        super().__init__()
        self._opened = opened
        self._config = config
        self._batch_size = batch_size

    def __iter__(self) -> Iterator[tuple[Batch, int, StreamStats]]:
        """Start a stream and yield its batches."""
        worker, num_workers = loader_worker()
        layers = plan_stream(
            self._opened, self._config, new_base(), num_workers=num_workers, worker=worker
        )
        stream = WorkerStream(
            self._opened,
            self._config,
            layers,
            epoch=0,
            item=0,
            batch_size=self._batch_size,
            as_uint8=True,
        )
        for batch in stream:
            yield batch, worker, stream.stats()


def counted_batches(
    opened: OpenedDataset, config: StreamConfig, *, batch_size: int, num_workers: int
) -> Generator[StreamStats, None, None]:
    """Iterate a stream as training does, and drop each batch when the next is asked for.

    Args:
        opened: The open dataset.
        config: Settings of the stream.
        batch_size: Items a batch.
        num_workers: Worker processes; 0 for threads alone.

    Yields:
        The counts of all workers together, a batch at a time.

    Raises:
        StreamError: Data cannot be read.
    """
    batches = CountedBatches(opened, config, batch_size=batch_size)
    counted: Iterator[tuple[Batch, int, StreamStats]] = iter(batches)
    if num_workers:
        counted = raising(
            DataLoader(
                FaultsAsBatches(batches),
                batch_size=None,
                num_workers=num_workers,
                multiprocessing_context="spawn",
            )
        )
    last: dict[int, StreamStats] = {}
    for _batch, worker, stats in counted:
        last[worker] = stats
        yield _together(list(last.values()))


def _together(stats: list[StreamStats]) -> StreamStats:
    """Sums, field by field."""
    sums = {
        field.name: sum(getattr(one, field.name) for one in stats) for field in fields(StreamStats)
    }
    return StreamStats(**sums)
