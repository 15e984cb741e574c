"""Faults of loader workers, raised in this process with their place, notes and hint.

PyTorch makes a worker's error anew from the text of its traceback, without any of these. So a
fault travels as if it were a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from torch.utils.data import Dataset, IterableDataset, default_collate

from lerobot_stream.errors import StreamError


@dataclass(frozen=True, slots=True)
class _Fault:
    error: StreamError


class FaultsAsBatches(IterableDataset[Any]):
    """Batches of a dataset, the last of which may be a fault."""

    def __init__(self, dataset: Iterable[Any]) -> None:
        """Wrap a dataset that makes batches itself."""
        super().__init__()
        self._dataset = dataset

    def __iter__(self) -> Iterator[Any]:
        """Yield batches; end with the first fault."""
        try:
            yield from self._dataset
        except StreamError as error:
            yield _Fault(error)


class FaultsAsItems(Dataset[Any]):
    """Items of a dataset, each of which may be a fault; for :func:`collate`."""

    def __init__(self, dataset: Dataset[Any]) -> None:
        """Wrap a dataset that is asked for items."""
        self._dataset = dataset

    def __getitem__(self, number: Any) -> Any:
        """One item, or what is wrong with it."""
        try:
            return self._dataset[number]
        except StreamError as error:
            return _Fault(error)


def collate(items: list[Any]) -> Any:
    """Make a batch as PyTorch does; the first fault, where there is one."""
    faults = [item for item in items if isinstance(item, _Fault)]
    return faults[0] if faults else default_collate(items)


def raising(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield batches up to the first fault, and raise it.

    Raises:
        StreamError: The worker's, without its cause and traceback.
    """
    for batch in batches:
        if isinstance(batch, _Fault):
            raise batch.error
        yield batch
