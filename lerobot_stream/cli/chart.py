"""Small charts out of text."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

_HEIGHTS = "▁▂▃▄▅▆▇█"
_WIDTHS = " ▏▎▍▌▋▊▉█"
_MOST_ROWS = 12
_EDGES_S = [digit * 10.0**power for power in range(-6, 4) for digit in (1, 2, 5)]


def sparkline(values: Sequence[float], *, width: int) -> str:
    """Draw values over time, a column each, from 0 to the largest.

    Args:
        values: Not negative.
        width: Columns at most; each value takes as many as fit equally.
    """
    if not values or max(values) <= 0:
        return ""
    columns = max(1, width // len(values))
    top = len(_HEIGHTS) - 1
    return "".join(
        _HEIGHTS[min(top, int(value / max(values) * len(_HEIGHTS)))] * columns
        for value in values[:width]
    )


def bar(share: float, *, width: int) -> str:
    """Draw a share of 1 as a bar, to an eighth of a character."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    return "█" * (eighths // 8) + _WIDTHS[eighths % 8].strip()


def histogram(seconds: Sequence[float], *, width: int) -> Iterator[tuple[str, str]]:
    """Draw how often each length of time occurs.

    Args:
        seconds: Lengths of time.
        width: Characters of the longest bar.

    Yields:
        A label and a bar for each step, in 1, 2, 5, from the shortest to the longest; what is
        shorter than a dozen steps counts for the first.
    """
    if not seconds:
        return
    steps = [bisect_left(_EDGES_S, value) for value in seconds]
    last = min(max(steps), len(_EDGES_S) - 1)
    first = min(max(min(steps), last - _MOST_ROWS + 1), last)
    counts = dict.fromkeys(range(first, last + 1), 0)
    for step in steps:
        counts[min(max(step, first), last)] += 1
    for step, count in counts.items():
        drawn = bar(count / max(counts.values()), width=width)
        yield f"up to {_duration(_EDGES_S[step])}", f"{drawn} {count}".strip()


def _duration(seconds: float) -> str:
    if seconds < 0.0009:
        return f"{1e6 * seconds:.0f} µs"
    return f"{1000 * seconds:.0f} ms" if seconds < 0.9 else f"{seconds:.0f} s"
