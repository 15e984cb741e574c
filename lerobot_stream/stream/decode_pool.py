"""Decode threads: one open decoder a visit and camera, its jobs strictly one after another."""

from __future__ import annotations

import heapq
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.stream.decode import MiniDecoder
from lerobot_stream.stream.fill import Job, fill_pictures, first_needed_later
from lerobot_stream.stream.visit import Visit
from lerobot_stream.stream.window import Window

_QueueKey = tuple[tuple[int, int], str]
"""Key of the visit, and the camera."""


@dataclass(slots=True)
class _Queue:
    """The jobs of one visit and camera."""

    waiting: deque[tuple[int, Job, Callable[[BaseException | None], None]]] = field(
        default_factory=deque
    )
    running: bool = False
    tail: dict[int, NDArray[np.uint8]] = field(default_factory=dict)
    """Last pictures decoded, for the windows of the next job."""


class DecodePool:
    """Runs jobs on a fixed number of threads; bounded in open decoders.

    Of the jobs that can run, the one submitted first does: the next batch needs it most.
    """

    def __init__(
        self,
        windows: dict[str, Window],
        *,
        threads: int,
        open_decoders: int | None,
        keep_tail: bool,
    ) -> None:
        """Start with no decoder open.

        Args:
            windows: Frames that an item shows of a camera, where not just its own.
            threads: Jobs run at once.
            open_decoders: Most decoders left open for a later job; None for no other bound than
                the visits that are not forgotten.
            keep_tail: Consecutive jobs of a visit are consecutive frames: keep what windows
                of the next job reach back to, instead of decoding it again.
        """
        self._windows = windows
        self._open_decoders = open_decoders
        self._keep_tail = keep_tail
        self._queues: dict[_QueueKey, _Queue] = {}
        self._idle: OrderedDict[_QueueKey, MiniDecoder] = OrderedDict()
        self._ready: list[tuple[int, _QueueKey, _Queue]] = []
        self._submitted = 0
        self._running = 0
        self._closed = False
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="decode")
        self.threads = threads
        """Jobs run at once."""
        self.pictures = 0
        """Wanted pictures decoded so far."""
        self.decoded = 0
        """Pictures decoded so far, those before the wanted ones included."""

    def submit(self, job: Job, *, done: Callable[[BaseException | None], None]) -> None:
        """Decode a job after the earlier ones of its visit and camera; then call ``done``."""
        queue_key = (job.visit.key, job.key)
        with self._lock:
            queue = self._queues.setdefault(queue_key, _Queue())
            queue.waiting.append((self._submitted, job, done))
            self._submitted += 1
            if not queue.running:
                queue.running = True
                self._make_ready(queue_key, queue)

    def forget(self, visit: Visit) -> None:
        """Close the decoders of a visit that no later job needs."""
        with self._lock:
            for key in [key for key in self._queues if key[0] == visit.key]:
                del self._queues[key]
                self._idle.pop(key, None)

    def close(self) -> None:
        """Wait for the jobs that run, drop the others, and close every decoder."""
        with self._lock:
            self._closed = True
            self._ready.clear()
        self._threads.shutdown(wait=True, cancel_futures=True)
        with self._lock:
            self._queues.clear()
            self._idle.clear()

    def _make_ready(self, queue_key: _QueueKey, queue: _Queue) -> None:
        if self._closed:
            return
        heapq.heappush(self._ready, (queue.waiting[0][0], queue_key, queue))
        if self._running < self.threads:
            self._running += 1
            self._threads.submit(self._run_ready)

    def _run_ready(self) -> None:
        """Run jobs as long as any can: handing each to a thread would take another wake-up."""
        while self._run_first():
            pass

    def _run_first(self) -> bool:
        """Run the first job that can; False when there is none."""
        with self._lock:
            if not self._ready:
                self._running -= 1
                return False
            _, queue_key, queue = heapq.heappop(self._ready)
            _, job, done = queue.waiting.popleft()
            decoder = self._idle.pop(queue_key, None)
        error: BaseException | None = None
        try:
            decoder = self._decode(job, queue, decoder)
        except BaseException as caught:  # noqa: BLE001 - handed to the thread that consumes
            error, decoder = caught, None
        with self._lock:
            if decoder is not None and self._queues.get(queue_key) is queue:
                self._idle[queue_key] = decoder
                while self._open_decoders and len(self._idle) > self._open_decoders:
                    self._idle.popitem(last=False)
            queue.running = bool(queue.waiting)
            if queue.running:
                self._make_ready(queue_key, queue)
        done(error)
        return True

    def _decode(self, job: Job, queue: _Queue, decoder: MiniDecoder | None) -> MiniDecoder | None:
        window = self._windows.get(job.key)
        keep_from = first_needed_later(job, window) if self._keep_tail else job.data.length
        filled = fill_pictures(job, window, decoder=decoder, held=queue.tail, keep_from=keep_from)
        queue.tail = filled.kept
        with self._lock:
            self.pictures += filled.pictures
            self.decoded += filled.decoded
        return filled.decoder
