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
        self._held: tuple[int, T] | None = None

    def get(self) -> T:
        """Return this process's thing."""
        held = self._held
        if held is None or held[0] != os.getpid():
            held = self._held = (os.getpid(), self._make())
        return held[1]

    def drop(self) -> T | None:
        """Forget the thing; return it if this process had one."""
        held, self._held = self._held, None
        return held[1] if held is not None and held[0] == os.getpid() else None

    def __getstate__(self) -> dict[str, Any]:
        return {"_make": self._make, "_held": None}
