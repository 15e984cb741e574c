"""A large span fetched as several parts at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from lerobot_stream.source.process import PerProcess
from lerobot_stream.span import Span

A = TypeVar("A")
B = TypeVar("B")

LEAST_PART_BYTES = 1 << 20
"""A span is not split into parts smaller than this."""


def split(span: Span, *, parts: int, least_bytes: int = LEAST_PART_BYTES) -> list[Span]:
    """Cut a span into equal parts.

    Args:
        span: What to cut.
        parts: Parts at most.
        least_bytes: A part is not smaller, unless the span is.

    Returns:
        Spans that touch each other and together are the span.
    """
    count = max(1, min(parts, len(span) // least_bytes))
    edges = [span.start + len(span) * i // count for i in range(count + 1)]
    return [Span(edges[i], edges[i + 1]) for i in range(count)]


class Parts:
    """Threads that fetch the parts of spans; each process has its own.

    Args:
        parts: Parts of a span at most.
        threads: Parts of all spans fetched at a time.
    """

    def __init__(self, *, parts: int, threads: int) -> None:
        if parts < 1:
            raise ValueError(f"subranges must be at least 1, not {parts}")
        self._parts = parts
        self._pool = PerProcess(partial(ThreadPoolExecutor, threads, "lerobot-stream-part"))

    def fetch(self, span: Span, fetch: Callable[[Span], bytes]) -> bytes:
        """Fetch a span whole or in parts; the first failure of a part is raised."""
        spans = split(span, parts=self._parts)
        if len(spans) == 1:
            return fetch(span)
        return b"".join(self.map(fetch, spans))

    def map(self, call: Callable[[A], B], values: list[A]) -> list[B]:
        """Call a function with many values at once."""
        pool = self._pool.get()
        return [done.result() for done in [pool.submit(call, value) for value in values]]

    def close(self) -> None:
        """End the threads; later calls start new ones."""
        pool = self._pool.drop()
        if pool is not None:
            pool.shutdown(cancel_futures=True)
