"""Whether the values of the rows make sense, and whether stats.json describes them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.counted import counted
from lerobot_stream.dataset.episodes import EpisodeTable
from lerobot_stream.dataset.stats import PATH
from lerobot_stream.inspect.checks.statistics import BOOKKEEPING, Statistic
from lerobot_stream.inspect.facts import Facts
from lerobot_stream.inspect.finding import Finding
from lerobot_stream.inspect.kinds import (
    ROW_TIMES,
    ROWS_DISORDER,
    STATS_QUANTILES,
    STATS_VALUES,
    TIMES_STILL,
    VALUES_NAN,
)
from lerobot_stream.inspect.moments import Moments
from lerobot_stream.inspect.row_values import RowValues

_MEAN_OFF = 0.02
"""Distance of means and deviations, in deviations, that is not worth a word."""
_EDGE_OFF = 1e-4
"""Distance of a smallest or largest value, as a share of the range."""
_QUANTILES = {"q01": (0.01, 0.04), "q10": (0.1, 0.1), "q90": (0.9, 0.1), "q99": (0.99, 0.04)}
"""Quantiles that policies normalise by, as shares of the rows, and how far they may be off.
Writers average them over episodes, which is never exact."""


def check_row_order(values: RowValues, table: EpisodeTable) -> Iterator[Finding]:
    """Find episodes whose rows are all there but do not count their frames from 0."""
    total = np.append(0, np.cumsum(values.seen))
    seen = total[values.frame_start[1:]] - total[values.frame_start[:-1]]
    held = np.diff(values.frame_start)
    for number in np.flatnonzero(values.whole & (held == table.length) & (seen < held)).tolist():
        start = int(values.frame_start[number])
        frame = int(np.argmin(values.seen[start : start + int(held[number])]))
        yield Finding(
            ROWS_DISORDER,
            f"no row of {held[number]} has frame_index {frame}",
            "episode",
            _path(table, number),
            (int(table.episode_index[number]),),
            expected=f"frame_index 0 to {held[number] - 1}",
            found=f"{seen[number]} of them",
        )


def check_row_times(
    values: RowValues, table: EpisodeTable, *, fps: float, tolerance_s: float, has_video: bool
) -> Iterator[Finding]:
    """Find timestamps that do not rise inside an episode or, without video, are not even."""
    start = values.frame_start
    step = np.diff(values.timestamp)
    still = np.isfinite(step) & (step <= 0)
    borders = start[1:-1] - 1
    still[borders[(borders >= 0) & (borders < len(still))]] = False
    where = np.flatnonzero(still)
    numbers, first = np.unique(np.searchsorted(start, where, "right") - 1, return_index=True)
    for number, place in zip(numbers.tolist(), where[first].tolist(), strict=True):
        frame = place - int(start[number]) + 1
        before, at = values.timestamp[place : place + 2]
        yield Finding(
            TIMES_STILL,
            f"frame {frame} is at {at:.6g} s, the one before it at {before:.6g} s",
            "episode",
            _path(table, number),
            (int(table.episode_index[number]),),
            expected=f"more than {before:.6g} s",
            found=f"{at:.6g} s",
        )
    if not has_video:
        yield from _uneven(values, table, fps, tolerance_s)


def _uneven(
    values: RowValues, table: EpisodeTable, fps: float, tolerance_s: float
) -> Iterator[Finding]:
    start, time = values.frame_start, values.timestamp
    count = np.diff(start)
    frame = np.arange(len(time)) - np.repeat(start[:-1], count)
    off = np.abs(time - frame / fps)
    beyond = np.flatnonzero(off > tolerance_s + np.spacing(np.abs(time).astype(np.float32)))
    number = np.searchsorted(start, beyond, "right") - 1
    order = np.lexsort((-off[beyond], number))
    found, first = np.unique(number[order], return_index=True)
    for row, place in zip(found.tolist(), beyond[order][first].tolist(), strict=True):
        yield Finding(
            ROW_TIMES,
            f"frame {frame[place]} is at {time[place]:.6g} s, {off[place]:.3g} s off",
            "episode",
            _path(table, row),
            (int(table.episode_index[row]),),
            expected=f"{frame[place] / fps:.6g} s",
            found=f"{time[place]:.6g} s",
        )


def check_numbers(values: RowValues) -> Iterator[Finding]:
    """Find columns with NaN or infinite values."""
    for key, episodes in values.not_numbers.items():
        message = f"{key} has NaN or infinite values in {counted(len(episodes), 'episode')}"
        yield Finding(VALUES_NAN, message, episodes=tuple(sorted(episodes)))


def check_row_statistics(facts: Facts, values: RowValues) -> Iterator[Finding]:
    """Compare stats.json with the rows that were read."""
    for key, moments in values.moments.items():
        said = (facts.stats or {}).get(key, {})
        fits = {name: v.ravel() for name, v in said.items() if v.size == len(moments.low)}
        if not moments.count.all():
            continue
        yield from _compare(key, fits, moments, complete=values.complete)
        yield from _compare_quantiles(key, fits, moments)


def _compare(key: str, said: Statistic, found: Moments, *, complete: bool) -> Iterator[Finding]:
    reach = _EDGE_OFF * (found.high - found.low)
    reach += 1e-6 * np.maximum(np.abs(found.low), np.abs(found.high))
    limit = np.maximum(_MEAN_OFF * found.std, reach)
    truth = {"min": found.low, "max": found.high, "mean": found.mean, "std": found.std}
    wrong = []
    for name, true in truth.items():
        if name not in said:
            continue
        off = said[name] - true
        if complete:
            bad = np.abs(off) > (reach if name in ("min", "max") else limit)
        else:  # a part of the rows can only show that some lie outside
            bad = {"min": off, "max": -off}.get(name, np.zeros(len(off))) > reach
        if bad.any():
            wrong.append(_describe_worst(name, np.where(bad, np.abs(off), -1), said[name], true))
    if wrong:
        yield Finding(STATS_VALUES, f"{key}: {'; '.join(wrong)}", path=PATH, found=key)


def _describe_worst(
    name: str, off: NDArray[np.float64], said: NDArray[np.float64], true: NDArray[np.float64]
) -> str:
    worst, count = int(np.argmax(off)), int((off >= 0).sum())
    which = f" of dimension {worst}" if len(off) > 1 else ""
    more = f" ({count} of {len(off)} differ)" if len(off) > 1 else ""
    return f"{name}{which} is {said[worst]:.6g}, that of the rows {true[worst]:.6g}{more}"


def _compare_quantiles(key: str, said: Statistic, found: Moments) -> Iterator[Finding]:
    for name, (share, allowed) in _QUANTILES.items():
        if name not in said or key in BOOKKEEPING:
            continue
        below, up_to = found.share_below(said[name])
        off = np.maximum(below - share, share - up_to)
        worst = int(np.argmax(off))
        if off[worst] > allowed:
            which = f", dimension {worst}" if len(off) > 1 else ""
            yield Finding(
                STATS_QUANTILES,
                f"{key}{which}: {name} is {said[name][worst]:.6g}, which "
                f"{100 * below[worst]:.3g} % of the rows lie below",
                path=PATH,
                expected=f"{100 * share:g} % of the rows",
                found=f"{100 * below[worst]:.3g} %",
            )


def _path(table: EpisodeTable, number: int) -> str:
    file = int(table.data_file[number])
    return table.data_paths[file] if file >= 0 else ""
