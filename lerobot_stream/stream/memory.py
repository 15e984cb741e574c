"""Batch memory that belongs to whoever holds it."""

from __future__ import annotations

import ctypes
import math
import sys
import weakref
from collections import deque
from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray


class BatchMemory(Protocol):
    """Where the pictures of a batch are written."""

    def lend(self, shape: tuple[int, ...]) -> torch.Tensor:
        """A uint8 tensor of this shape, uninitialised.

        Its memory is used again only after it, and everything that shares its storage, is gone.
        """
        ...


class RecycledMemory:
    """Memory of this process, lent again once the last tensor over it is gone.

    The lent array is what the tensor's storage keeps alive, so its finalizer is the moment at
    which nobody can see the bytes any more.
    """

    def __init__(self, keep: int) -> None:
        """Make an empty stock.

        Args:
            keep: Most buffers of one size kept for the next batches.
        """
        self._keep = keep
        self._free: dict[int, deque[NDArray[np.uint8]]] = {}

    @property
    def free_bytes(self) -> int:
        """Bytes waiting to be lent again."""
        return sum(size * len(free) for size, free in self._free.items())

    def lend(self, shape: tuple[int, ...]) -> torch.Tensor:
        """See :class:`BatchMemory`."""
        size = math.prod(shape)
        free = self._free.setdefault(size, deque(maxlen=self._keep))
        try:
            buffer = free.pop()
        except IndexError:
            buffer = np.empty(size, dtype=np.uint8)
        lent: NDArray[np.uint8] = np.ndarray(shape, dtype=np.uint8, buffer=buffer.data)
        # The finalizer may run in any thread, also inside our own locks: it only appends.
        finalizer = weakref.finalize(lent, free.append, buffer)
        finalizer.atexit = False
        return torch.from_numpy(lent)


class FreshMemory:
    """New memory for every batch.

    In worker processes the queue sends memory, not values: a buffer filled again would change
    batches that the receiver still holds. On CUDA hosts PyTorch's own pinned allocator knows
    which blocks a copy still reads.
    """

    def __init__(self, make: Callable[[tuple[int, ...]], torch.Tensor]) -> None:
        """Lend what ``make`` makes."""
        self._make = make

    def lend(self, shape: tuple[int, ...]) -> torch.Tensor:
        """See :class:`BatchMemory`."""
        return self._make(shape)


def return_free_memory() -> None:
    """Give what is free but kept by the allocator back to the system.

    glibc's allocator has an arena for almost every thread. The threads of the next stream land on
    other ones, so that without this each stream would leave its share behind.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


def shared_tensor(shape: tuple[int, ...]) -> torch.Tensor:
    """A tensor in shared memory, which a queue sends without another copy."""
    storage = torch.UntypedStorage._new_shared(math.prod(shape))  # type: ignore[no-untyped-call]
    return torch.empty(0, dtype=torch.uint8).set_(storage).view(shape)


def pinned_tensor(shape: tuple[int, ...]) -> torch.Tensor:
    """A tensor in page-locked memory, which copies to a GPU without waiting."""
    return torch.empty(shape, dtype=torch.uint8, pin_memory=True)
