"""From planned tasks to finished batches: fetching, decoding and filling side by side.

One thread walks the tasks in plan order. It waits for a task's bytes, fills the columns of its
items, and hands its pictures to the decode threads, which write each frame straight to the rows
that show it. Batches are therefore open while they fill; how far ahead of the delivered batch a
task may reach is the bound on memory. The order of items is fixed before anything runs here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.stream.batch import Batch, OpenBatch
from lerobot_stream.stream.cache import EpisodeByteCache
from lerobot_stream.stream.columns import OpenColumns
from lerobot_stream.stream.decode_pool import DecodePool
from lerobot_stream.stream.episode import EpisodeData
from lerobot_stream.stream.fill import Job
from lerobot_stream.stream.layout import Layout
from lerobot_stream.stream.memory import BatchMemory
from lerobot_stream.stream.stats import WaitClock
from lerobot_stream.stream.visit import Visit


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """Items of one visit whose frames are decoded together."""

    visit: Visit
    """Where they are from."""
    positions: NDArray[np.int64]
    """``(m,)`` Places of the items in the stream, from 0 at its start."""
    frames: NDArray[np.int64]
    """``(m,)`` Frame of each item."""
    last: bool
    """No later task needs the visit."""


class Pipeline:
    """Runs the tasks of one stream. Iterate it once, then close it."""

    def __init__(
        self,
        tasks: Iterator[Task],
        cache: EpisodeByteCache,
        decoders: DecodePool,
        layout: Layout,
        memory: BatchMemory,
        *,
        batch_size: int,
        num_items: int | None,
        open_items: int,
        ready_batches: int,
        as_uint8: bool,
    ) -> None:
        """Prepare, without starting a thread.

        Args:
            tasks: In the order in which they are decoded.
            cache: Gives the bytes of their visits.
            decoders: Turns bytes into pictures.
            layout: What an item consists of.
            memory: Where batches are written.
            batch_size: Items a batch.
            num_items: Items of the stream; None if it never ends. The last batch may be short.
            open_items: Items from the next one delivered to the last one that a task may touch.
            ready_batches: Finished batches beside which no more is started, but for what the next
                batch needs.
            as_uint8: See :meth:`OpenBatch.finish`.
        """
        self._tasks = tasks
        self._cache = cache
        self._decoders = decoders
        self._layout = layout
        self._memory = memory
        self._batch_size = batch_size
        self._num_items = num_items
        self._open_items = max(open_items, batch_size)
        self._ready_batches = ready_batches
        self._as_uint8 = as_uint8
        self._open: dict[int, OpenBatch] = {}
        self._columns = OpenColumns(layout, self._open_items + batch_size)
        self._delivered = 0
        self._error: BaseException | None = None
        self._ended = False
        self._running = 0
        self._closed = False
        self._lock = threading.Lock()
        self._settled = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        self.waited = WaitClock(decoders.threads)
        """What batches were waited for."""
        self._walker = threading.Thread(target=self._walk, name="plan", daemon=True)

    def __iter__(self) -> Iterator[Batch]:
        """Yield finished batches in order.

        Raises:
            StreamError: What stopped the stream. Before it come the batches that show nothing of
                it, nor of what was decoded together with it.
        """
        self._walker.start()
        while self._num_items is None or self._delivered * self._batch_size < self._num_items:
            with self._lock:
                self.waited.ask()
                self._settled.wait_for(self._next_is_settled)
                batch = self._open.get(self._delivered)
                if batch is None or batch.missing:
                    if self._error is not None:
                        raise self._error
                    if self._closed:
                        return
                    raise RuntimeError("the plan ended before its last item")
                del self._open[self._delivered]
                self._delivered += 1
                self.waited.finish()
            start = (self._delivered - 1) * self._batch_size
            columns = self._columns.take(start, start + batch.rows)
            finished = batch.finish(columns, as_uint8=self._as_uint8)
            with self._lock:
                self._room.notify()
                self.waited.hand_out()
            yield finished

    @property
    def delivered_items(self) -> int:
        """Items handed out so far."""
        items = self._delivered * self._batch_size
        return items if self._num_items is None else min(items, self._num_items)

    @property
    def open_bytes(self) -> int:
        """Bytes of the pictures of batches that are not handed out yet."""
        with self._lock:
            rows = sum(batch.rows for batch in self._open.values())
        return rows * self._layout.picture_bytes

    def close(self) -> None:
        """Stop every thread and give back what is held."""
        with self._lock:
            self._closed = True
            self._wake()
        self._cache.close()
        if self._walker.ident is not None:
            self._walker.join()
        self._decoders.close()
        self._open.clear()

    def _next_is_settled(self) -> bool:
        batch = self._open.get(self._delivered)
        done = batch is not None and not batch.missing
        # After an error, what was already being decoded may still complete the batch.
        failed = self._error is not None and not self._running
        return done or failed or self._closed or (self._ended and batch is None)

    def _walk(self) -> None:
        try:
            for task in self._tasks:
                if not self._wait_for_room(task):
                    return
                self._start(task)
            with self._lock:
                self._ended = True
                self._settled.notify()
        except BaseException as error:  # noqa: BLE001 - handed to the thread that consumes
            self._fail(error)

    def _wait_for_room(self, task: Task) -> bool:
        """Wait until the task's items are near the delivered ones; False when closed."""
        last, first = int(task.positions.max()), int(task.positions.min())

        def settled() -> bool:
            head = self._delivered * self._batch_size
            few = last < head + self._open_items and self._num_ready() < self._ready_batches
            needed_next = first < head + self._batch_size
            # The next batch may also wait for a task behind this one.
            stuck = not self._running and not self._num_ready()
            stopped = self._closed or self._error is not None
            return few or needed_next or stuck or stopped

        with self._lock:
            self._room.wait_for(settled)
            return not self._closed and self._error is None

    def _num_ready(self) -> int:
        """Finished batches that nobody has asked for yet."""
        number = self._delivered
        while (batch := self._open.get(number)) is not None and not batch.missing:
            number += 1
        return number - self._delivered

    def _start(self, task: Task) -> None:
        data = self._fetched(task.visit)
        self._columns.put(task.positions, task.frames, data)
        places = np.divmod(task.positions, self._batch_size)
        numbers, rows = (place.tolist() for place in places)
        for number in set(numbers):
            if number not in self._open:  # only this thread opens batches
                self._open_batch(number)
        filled = [(self._open[number], row) for number, row in zip(numbers, rows, strict=True)]
        with self._lock:
            self._running += len(self._layout.cameras)
            self.waited.run(self._running)
        remaining = _Countdown(len(self._layout.cameras), self._finished(task))
        if not self._layout.cameras:
            self._filled(filled)
            remaining.finish()
        for key in self._layout.cameras:
            job = Job(task.visit, key, task.frames, filled, data)
            self._decoders.submit(job, done=self._job_done(job, remaining))

    def _fetched(self, visit: Visit) -> EpisodeData:
        with self._lock:
            self.waited.fetch(True)
        data = self._cache.get(visit)
        with self._lock:
            self.waited.fetch(False)
        return data

    def _finished(self, task: Task) -> Callable[[], None]:
        def finish() -> None:
            if task.last:
                self._decoders.forget(task.visit)
                self._cache.release(task.visit)

        return finish

    def _job_done(self, job: Job, remaining: _Countdown) -> Callable[[BaseException | None], None]:
        def done(error: BaseException | None) -> None:
            try:
                if error is None:
                    self._filled(job.rows)
                    remaining.count_down()
            except BaseException as late:  # noqa: BLE001 - handed to the thread that consumes
                error = late
            if error is not None:
                self._fail(error)
            with self._lock:
                self._running -= 1
                self.waited.run(self._running)
                if not self._running:
                    self._wake()

        return done

    def _open_batch(self, number: int) -> None:
        rows = self._batch_size
        if self._num_items is not None:
            rows = min(rows, self._num_items - number * self._batch_size)
        batch = OpenBatch(self._layout, rows, self._memory)
        with self._lock:
            self._open[number] = batch

    def _filled(self, rows: Sequence[tuple[OpenBatch, int]]) -> None:
        """Count rows as written. Wakes the consumer only for the batch that it waits for."""
        with self._lock:
            for batch, _ in rows:
                batch.missing -= 1
            if self._next_is_settled():
                self._settled.notify()

    def _wake(self) -> None:
        """Let both who may wait look again; the caller holds the lock."""
        self._settled.notify()
        self._room.notify()

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            if self._error is None and not self._closed:
                self._error = error
            self._wake()


class _Countdown:
    """Calls ``finish`` when a task's last camera is done."""

    def __init__(self, count: int, finish: Callable[[], None]) -> None:
        self._count = count
        self.finish = finish
        self._lock = threading.Lock()

    def count_down(self) -> None:
        with self._lock:
            self._count -= 1
            done = self._count == 0
        if done:
            self.finish()
