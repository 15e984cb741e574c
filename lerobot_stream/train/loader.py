"""PyTorch's loader, set up so that it leaves global random generators alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

from lerobot_stream.stream.worker_faults import (
    FaultsAsBatches,
    FaultsAsItems,
    collate,
    raising,
)
from lerobot_stream.train.map_order import Number
from lerobot_stream.train.worker_signals import leave_signals_to_the_rank, signals_held


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderSettings:
    """How worker processes are run."""

    num_workers: int
    """Worker processes; 0 for none."""
    context: str
    """How they are started."""
    prefetch_factor: int | None
    """Batches each makes ahead; None for PyTorch's own number."""
    persistent_workers: bool
    """Keep them from one pass to the next."""


def make_loader(
    dataset: Dataset[Any],
    settings: LoaderSettings,
    *,
    device: torch.device,
    numbers: Iterator[list[Number]] | None = None,
) -> DataLoader[Any]:
    """Make a loader.

    Args:
        dataset: Whole batches to iterate, or items to look up by ``numbers``.
        settings: How workers are run.
        device: Where the batches are wanted.
        numbers: The items of each batch; None where ``dataset`` makes batches itself.
    """
    workers = settings.num_workers
    shared: dict[str, Any] = {
        "num_workers": workers,
        "pin_memory": device.type == "cuda",
        # Seeding workers would otherwise draw from the generator that training uses.
        "generator": torch.Generator(),
    }
    if workers:
        shared |= {
            "multiprocessing_context": settings.context,
            "prefetch_factor": settings.prefetch_factor,
            "persistent_workers": settings.persistent_workers,
            "worker_init_fn": leave_signals_to_the_rank,
        }
    if numbers is not None:
        items = FaultsAsItems(dataset)
        return _Loader(items, batch_sampler=_Once(numbers), collate_fn=collate, **shared)
    if not isinstance(dataset, IterableDataset):
        raise TypeError("which items a batch has must be said by numbers")
    return _Loader(FaultsAsBatches(dataset), batch_size=None, **shared)


class _Loader(DataLoader[Any]):
    """A loader whose workers leave signals to this process, and whose faults it raises."""

    def __iter__(self) -> Any:
        if not self.num_workers:
            return raising(super().__iter__())
        with signals_held():
            return raising(super().__iter__())


class _Once(torch.utils.data.Sampler[list[Number]]):
    """An iterator as PyTorch wants it."""

    def __init__(self, numbers: Iterator[list[Number]]) -> None:
        self._numbers = numbers

    def __iter__(self) -> Iterator[list[Number]]:
        return self._numbers
