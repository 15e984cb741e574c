"""Things that belong to one process: made on first use, made anew after a fork or a pickle."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class PerProcess(Generic[T]):
    """Holds one thing a process.

    Args:
        make: Makes it; a class or a function that can be pickled.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._held: dict[int, T] = {}  # by process, as a forked one has its parent's, too

    def get(self) -> T:
        """Return this process's thing, the same to all threads."""
        held = self._held.get(os.getpid())
        # A lock would be copied by a fork, perhaps held. This is as good: of several threads
        # that make the thing at once, what one made is kept.
        return self._held.setdefault(os.getpid(), self._make()) if held is None else held

    def drop(self) -> T | None:
        """Forget the thing; return it if this process had one."""
        return self._held.pop(os.getpid(), None)

    def __getstate__(self) -> dict[str, Any]:
        return {"_make": self._make, "_held": {}}
