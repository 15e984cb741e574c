"""Numbers of the steps between two log lines, averaged."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from lerobot_stream.train.distributed import Ranks


class Meter:
    """Collects without waiting for the device; :meth:`take` is where numbers are read."""

    def __init__(
        self, *, step: int, items: int, items_per_step: int, num_frames: int, ranks: Ranks
    ) -> None:
        """Begin to measure.

        Args:
            step: Steps made before.
            items: Items of those steps, over all ranks.
            items_per_step: Items of a step, over all ranks.
            num_frames: Frames of an epoch, over all ranks.
            ranks: All of them take part in :meth:`take`.
        """
        self._items_per_step = items_per_step
        self._num_frames = num_frames
        self._ranks = ranks
        self._values: dict[str, list[Tensor]] = {}
        self._reset(step, items)

    def add(self, **values: Tensor) -> None:
        """Note scalars of this rank, as they are on the device."""
        for name, value in values.items():
            self._values.setdefault(name, []).append(value.detach())

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count what happens inside as waiting for data."""
        start = time.perf_counter()
        yield
        self._waited_s += time.perf_counter() - start

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do not count what happens inside, such as evaluating."""
        start = time.perf_counter()
        yield
        self._start_s += time.perf_counter() - start

    def take(self, *, step: int, steps: int) -> dict[str, float]:
        """Average since the last time, over all ranks, and begin anew.

        Args:
            step: Steps made.
            steps: Steps of the whole run.
        """
        names = sorted(self._values)
        means = [torch.stack(self._values[name]).float().mean() for name in names]
        summed = self._ranks.sum(torch.stack(means)) / self._ranks.world_size
        metrics = dict(zip(names, summed.tolist(), strict=True))
        elapsed_s = max(time.perf_counter() - self._start_s, 1e-9)
        made = step - self._first_step
        items = self._first_item + made * self._items_per_step
        metrics |= {
            "items": items,
            "epoch": items / self._num_frames,
            "items_per_s": made * self._items_per_step / elapsed_s,
            "step_s": elapsed_s / max(1, made),
            "data_wait_share": min(1.0, self._waited_s / elapsed_s),
            "eta_s": (steps - step) * elapsed_s / max(1, made),
        }
        self._reset(step, items)
        return metrics

    def _reset(self, step: int, items: int) -> None:
        self._values.clear()
        self._first_step = step
        self._first_item = items
        self._waited_s = 0.0
        self._start_s = time.perf_counter()
