"""Half-open byte spans of one file, merged into requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The bytes ``[start, stop)`` of a file."""

    start: int
    """First byte."""
    stop: int
    """One past the last byte."""

    def __post_init__(self) -> None:
        """Refuse what no file can hold."""
        if not 0 <= self.start <= self.stop:
            raise ValueError(f"span [{self.start}, {self.stop}) is not a byte span")

    def __len__(self) -> int:
        """Bytes in the span."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Request:
    """One range request and the spans it serves."""

    span: Span
    """The bytes to ask for."""
    parts: tuple[int, ...]
    """Positions, in the list given to :func:`coalesce`, of the spans inside."""


def coalesce(
    spans: Sequence[Span], *, max_gap: int, max_size: int, max_waste: float = 1.0
) -> list[Request]:
    """Merge neighbouring spans so that few requests fetch them all.

    Args:
        spans: Spans of one file, in any order; they may touch or overlap.
        max_gap: Bytes worth fetching for nothing to save a request.
        max_size: Bytes a merged request may not exceed. A span longer than this
            still gets a request of its own.
        max_waste: Share of a merged request that may be fetched for nothing.

    Returns:
        Requests by rising ``start``; each span is a part of exactly one.
    """
    requests: list[Request] = []
    wasted = 0
    for number in sorted(range(len(spans)), key=lambda i: spans[i]):
        span = spans[number]
        if requests:
            last = requests[-1]
            merged = Span(last.span.start, max(last.span.stop, span.stop))
            gap = max(0, span.start - last.span.stop)
            bearable = gap <= max_gap and wasted + gap <= max_waste * len(merged)
            if bearable and len(merged) <= max_size:
                wasted += gap
                requests[-1] = Request(merged, (*last.parts, number))
                continue
        wasted = 0
        requests.append(Request(span, (number,)))
    return requests
