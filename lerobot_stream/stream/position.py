"""Where in its endless order a stream stands, across processes and resumed runs."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import SupportsIndex, TypeVar

import torch

from lerobot_stream.plan.elastic import Base, Bitmap
from lerobot_stream.plan.layers import Layers
from lerobot_stream.plan.offset import finite_worker_offsets, worker_offset

T = TypeVar("T")

_MOST = (1 << 31) - 1
"""Largest epoch, batch or count of batches: products of two of them still have 64 bits."""


def whole_number(name: str, value: SupportsIndex, *, least: int) -> int:
    """Return an argument as the whole number that it must be.

    Raises:
        TypeError: It is no whole number.
        ValueError: It is below ``least``, or larger than anything that can be counted.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r}") from None
    if not least <= number <= _MOST:
        raise ValueError(f"{name} must be at least {least} and at most {_MOST}, got {number}")
    return number


@dataclass(frozen=True, slots=True)
class Place:
    """Batches delivered since the start of an epoch."""

    epoch: int
    """The epoch that the stream started with; after an elastic resume, the first whole one."""
    batches: int
    """Batches of the rank since then."""
    batch_size: int
    """Items of each."""

    def __post_init__(self) -> None:
        """Refuse places before the start."""
        if self.epoch < 0 or self.batches < 0 or self.batch_size < (1 if self.batches else 0):
            raise ValueError(
                f"no place: epoch {self.epoch}, {self.batches} batches of {self.batch_size}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Where one worker begins."""

    layers: Layers
    """What it delivers."""
    epoch: int
    """First epoch."""
    item: int
    """First item of that epoch."""

    def epochs(self, batch_size: int) -> Iterator[list[int]]:
        """The epoch of each item, batch after batch."""
        numbers = self._item_epochs()
        while True:
            yield list(itertools.islice(numbers, batch_size))

    def _item_epochs(self) -> Iterator[int]:
        item = self.item
        for epoch in self.layers.epochs(self.epoch):
            yield from itertools.repeat(epoch, self.layers.share(epoch).num_items - item)
            item = 0


class StreamPosition:
    """The place at which the next iteration starts.

    It is kept in shared memory, so that the persistent workers of a loader see it move. What
    has been seen of unfinished epochs is not: workers must be started after it is known.
    """

    def __init__(self) -> None:
        """Start with epoch 0."""
        self._shared = torch.zeros(4, dtype=torch.int64).share_memory_()  # type: ignore[no-untyped-call]
        self._delivered = Place(0, 0, 0)
        self._unfinished: dict[int, Mapping[int, Bitmap]] = {0: {}}

    def move(
        self,
        *,
        epoch: int,
        batches: int = 0,
        batch_size: int = 0,
        unfinished: Mapping[int, Bitmap] | None = None,
    ) -> None:
        """Let the next iteration start there.

        Args:
            epoch: The first whole epoch.
            batches: Batches of the rank since then, or since the unfinished epochs were left.
            batch_size: Items of each.
            unfinished: What had been seen of epochs before.
        """
        place = Place(epoch, batches, batch_size)
        number = 0
        if unfinished:
            number = max(self._unfinished) + 1
            self._unfinished = {0: {}, number: unfinished}
        self._shared[:] = torch.tensor([epoch, batches, batch_size, number])
        self._delivered = place

    def place(self) -> Place:
        """Where the last iteration of this process has come to."""
        return self._delivered

    def base(self) -> Base:
        """What had been seen before the first of the batches that are counted.

        Raises:
            ValueError: This process was started before that was known.
        """
        epoch, _, _, number = map(int, self._shared)
        if number not in self._unfinished:
            raise ValueError(
                "the loader's workers were started before the state was loaded: make a new loader"
            )
        return Base(self._unfinished[number], epoch)

    def counting(self, batches: Iterator[T], batch_size: int) -> Iterator[T]:
        """Count batches just before they are handed out."""
        epoch, taken, size, _ = map(int, self._shared)
        taken = taken * size // batch_size
        for batch in batches:
            taken += 1
            self._delivered = Place(epoch, taken, batch_size)
            yield batch

    def start(
        self,
        plan: Callable[[int], Layers],
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
            plan: What each worker delivers.
            worker: Number of the worker in its loader.
            num_workers: Workers of the loader, 1 without.
            batch_size: Items of a batch, where the position does not say.
            repeat: Whether epochs follow without end.

        Returns:
            The start; None where the worker has delivered all.
        """
        epoch, batches, size, _ = map(int, self._shared)
        size = size or batch_size
        if repeat:
            offsets = [
                worker_offset(batches, num_workers=num_workers, worker=number, batch_size=size)
                for number in range(num_workers)
            ]
            turn = min(range(num_workers), key=lambda number: offsets[number])
            mine = (worker + turn) % num_workers
            layers = plan(mine)
            return Start(layers, *layers.locate(offsets[mine]))
        of_workers = [plan(number) for number in range(num_workers)]
        counts = [layers.whole.num_items for layers in of_workers]
        offsets = finite_worker_offsets(batches, num_items=counts, batch_size=size)
        turn = min(
            range(num_workers),
            key=lambda number: (offsets[number] == counts[number], offsets[number]),
        )
        mine = (worker + turn) % num_workers
        if offsets[mine] >= counts[mine]:
            return None
        return Start(of_workers[mine], epoch, offsets[mine])
