"""Where in its endless order a stream stands, across processes and resumed runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import torch

from lerobot_stream.plan.offset import finite_worker_offsets, locate, worker_offset
from lerobot_stream.plan.share import Share

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """Batches delivered since the start of an epoch."""

    epoch: int
    """The epoch that the stream started with."""
    batches: int
    """Batches of the rank since then."""
    batch_size: int
    """Items of each."""


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Where one worker begins."""

    share: Share
    """What it delivers."""
    epoch: int
    """First epoch."""
    item: int
    """First item of that epoch."""

    def epochs(self, batch_size: int) -> Iterator[list[int]]:
        """The epoch of each item, batch after batch."""
        first = self.epoch * self.share.num_items + self.item
        while True:
            yield [number // self.share.num_items for number in range(first, first + batch_size)]
            first += batch_size


class StreamPosition:
    """The place at which the next iteration starts.

    It is kept in shared memory, so that the persistent workers of a loader see it move.
    """

    def __init__(self) -> None:
        """Start with epoch 0."""
        self._shared = torch.zeros(3, dtype=torch.int64).share_memory_()  # type: ignore[no-untyped-call]
        self._delivered = Place(0, 0, 0)

    def move(self, *, epoch: int, batches: int = 0, batch_size: int = 0) -> None:
        """Let the next iteration start there."""
        self._shared[:] = torch.tensor([epoch, batches, batch_size])
        self._delivered = Place(epoch, batches, batch_size)

    def place(self) -> Place:
        """Where the last iteration of this process has come to."""
        return self._delivered

    def counting(self, batches: Iterator[T], batch_size: int) -> Iterator[T]:
        """Count batches just before they are handed out."""
        epoch, taken, size = map(int, self._shared)
        taken = taken * size // batch_size
        for batch in batches:
            taken += 1
            self._delivered = Place(epoch, taken, batch_size)
            yield batch

    def start(
        self,
        plan: Callable[[int], Share],
        *,
        worker: int,
        num_workers: int,
        batch_size: int,
        repeat: bool,
    ) -> Start | None:
        """Where a loader's worker begins.

        A loader always asks its worker 0 first, so that after a resume worker 0 continues
        whichever share's turn it is.

        Args:
            plan: The share of each worker.
            worker: Number of the worker in its loader.
            num_workers: Workers of the loader, 1 without.
            batch_size: Items of a batch, where the position does not say.
            repeat: Whether epochs follow without end.

        Returns:
            The start; None where the worker has delivered all.
        """
        epoch, batches, size = map(int, self._shared)
        size = size or batch_size
        if repeat:
            offsets = [
                worker_offset(batches, num_workers=num_workers, worker=number, batch_size=size)
                for number in range(num_workers)
            ]
            turn = min(range(num_workers), key=lambda number: offsets[number])
            share = plan((worker + turn) % num_workers)
            ahead, item = locate(share.num_items, offsets[(worker + turn) % num_workers])
            return Start(share, epoch + ahead, item)
        shares = [plan(number) for number in range(num_workers)]
        counts = [share.num_items for share in shares]
        offsets = finite_worker_offsets(batches, num_items=counts, batch_size=size)
        turn = min(
            range(num_workers),
            key=lambda number: (offsets[number] == counts[number], offsets[number]),
        )
        mine = (worker + turn) % num_workers
        if offsets[mine] >= counts[mine]:
            return None
        return Start(shares[mine], epoch, offsets[mine])
