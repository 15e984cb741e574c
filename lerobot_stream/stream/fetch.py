"""The bytes of several visits with few requests, each visit ready as soon as its own are there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from lerobot_stream.dataset.rows import Rows
from lerobot_stream.source.ranges import MAX_GAP_BYTES, MAX_REQUEST_BYTES, MAX_WASTE
from lerobot_stream.span import Request, Span, coalesce
from lerobot_stream.stream.episode import EpisodeData, EpisodeReader, Payload, reading
from lerobot_stream.stream.visit import Visit


@dataclass(frozen=True, slots=True)
class _Part:
    """One camera's bytes of one visit."""

    visit: int
    """Position in the list of visits."""
    camera: int
    """Number of the camera."""
    span: Span
    """Its bytes."""


class VisitFetcher:
    """Fetches visits on threads of its own.

    Visits asked for together share requests where they are neighbours in a file. A file holds
    one camera, so cameras never share one.
    """

    def __init__(self, reader: EpisodeReader, *, threads: int) -> None:
        """Fetch with at most ``threads`` requests at once."""
        self._reader = reader
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="fetch")
        self.wanted_bytes = 0
        """Coded bytes of the pictures of every visit asked for so far."""

    def fetch(self, visits: Sequence[Visit]) -> list[Future[EpisodeData]]:
        """Start to fetch visits; what the first of them needs is asked for first.

        Returns:
            A future each, in the order given.
        """
        arrivals = [_Arrival(self._reader, visit) for visit in visits]
        jobs: list[tuple[int, Callable[[], None]]] = [
            (number, arrival.read_rows) for number, arrival in enumerate(arrivals)
        ]
        for path, parts in self._parts(visits).items():
            spans = [part.span for part in parts]
            for request in coalesce(
                spans, max_gap=MAX_GAP_BYTES, max_size=MAX_REQUEST_BYTES, max_waste=MAX_WASTE
            ):
                wanted = [parts[number] for number in request.parts]
                first = min(part.visit for part in wanted)
                jobs.append((first, _job(self._reader, path, request, wanted, arrivals)))
        for _, job in sorted(jobs, key=lambda job: job[0]):
            self._threads.submit(job)
        return [arrival.future for arrival in arrivals]

    def close(self) -> None:
        """Wait for the requests under way and drop the others."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _parts(self, visits: Sequence[Visit]) -> dict[str, list[_Part]]:
        parts: dict[str, list[_Part]] = {}
        for number, visit in enumerate(visits):
            for camera, (path, span) in enumerate(self._reader.camera_spans(visit)):
                parts.setdefault(path, []).append(_Part(number, camera, span))
                self.wanted_bytes += len(span)
        return parts


class _Arrival:
    """Collects what belongs to one visit."""

    def __init__(self, reader: EpisodeReader, visit: Visit) -> None:
        self.visit = visit
        self.future: Future[EpisodeData] = Future()
        self._reader = reader
        self._rows: Rows | None = None
        self._payloads: dict[int, Payload] = {}
        self._lock = threading.Lock()

    def read_rows(self) -> None:
        """Read the visit's rows."""
        try:
            self._rows = self._reader.read_rows(self.visit)
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            self.fail(error)
            return
        self._assemble_if_whole()

    def add(self, camera: int, payload: Payload) -> None:
        """Take one camera's bytes."""
        with self._lock:
            self._payloads[camera] = payload
        self._assemble_if_whole()

    def fail(self, error: BaseException) -> None:
        """Give the visit up."""
        with self._lock:
            if not self.future.done():
                self.future.set_exception(error)

    def _assemble_if_whole(self) -> None:
        with self._lock:
            whole = self._rows is not None and len(self._payloads) == self._reader.num_cameras
            if not whole or not self.future.set_running_or_notify_cancel():
                return
            payloads, self._payloads = self._payloads, {}
        try:
            if self._rows is not None:
                data = self._reader.assemble(self.visit, self._rows, payloads)
                self.future.set_result(data)
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            self.future.set_exception(error)


def _job(
    reader: EpisodeReader,
    path: str,
    request: Request,
    parts: Sequence[_Part],
    arrivals: Sequence[_Arrival],
) -> Callable[[], None]:
    def run() -> None:
        first = parts[0]
        try:
            with reading(*reader.name(arrivals[first.visit].visit, first.camera)):
                data = memoryview(reader.read_bytes(path, request.span))
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            for part in parts:
                arrivals[part.visit].fail(error)
            return
        for part in parts:
            arrivals[part.visit].add(part.camera, (request.span.start, data))

    return run
