"""Which presented samples of a file are an episode's frames.

Two readings compete: *by count*, where the episodes of a file follow each other without a gap,
and *by time*, where an episode starts at the sample nearest to its ``from_timestamp``. Where
they differ, sync samples and distances tell which one is meant; where they don't tell, nobody
guesses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.counted import counted
from lerobot_stream.sidecar.choices import FramesBy

Severity = Literal["error", "warning"]

_TIME_EVIDENCE = 0.1
"""Distance, in sample spacings, up to which a start by time speaks for itself."""
_WARN = 0.25
_FAR = 0.5
_NEIGHBOURS = np.arange(-4, 4)
"""Gaps around a sample whose median is its local spacing."""
_CHOOSE = (
    "look at the first frames of these episodes, then pass --dataset.frames_by=count or"
    " --dataset.frames_by=time, or exclude the episodes"
)
_EXCLUDE = "exclude the episode, or repair the dataset"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong or odd about one episode of a file."""

    severity: Severity
    """An ``error`` leaves the episode without frames."""
    number: int
    """Position of the episode in the arrays given."""
    message: str
    """What is wrong, with numbers."""
    expected: str
    """What the metadata promise."""
    found: str
    """What the file holds."""
    hint: str
    """What to do about it."""


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Where the episodes of one file start."""

    start: NDArray[np.int64]
    """``(n,)`` Frame number of each episode's first frame; -1 where there is an error."""
    findings: tuple[Finding, ...]
    """Errors and warnings."""


def place_episodes(
    time_s: NDArray[np.float64],
    sync: NDArray[np.bool_],
    from_s: NDArray[np.float64],
    length: NDArray[np.int64],
    *,
    fps: float,
    tolerance_s: float,
    frames_by: FramesBy | None = None,
) -> Placement:
    """Find the first frame of each episode of one file.

    Args:
        time_s: ``(Q,)`` Times of the presented samples, rising.
        sync: ``(Q,)`` True for those that are sync samples.
        from_s: ``(n,)`` ``from_timestamp`` of **all** episodes in the file.
        length: ``(n,)`` Their frames, at least 1 each.
        fps: Frames a second, where the file's own times don't say.
        tolerance_s: Distance of a start that is not worth a warning.
        frames_by: Which reading to use where both or none are plausible.

    Returns:
        Starts and findings, in the order of the arguments.
    """
    start = np.full(len(from_s), -1, np.int64)
    known = np.isfinite(from_s)
    findings = [_no_start(int(i)) for i in np.flatnonzero(~known)]
    if not len(time_s):
        findings += [_no_samples(int(i), int(length[i])) for i in np.flatnonzero(known)]
        return Placement(start, tuple(findings))
    order = np.flatnonzero(known)
    order = order[np.argsort(from_s[order], kind="stable")]
    near, off_s, off = nearest(time_s, from_s[order], fps=fps)
    episodes = _Episodes(order, from_s[order], length[order], near, off_s, off, len(time_s))
    same = (np.diff(episodes.from_s) == 0) & (np.diff(episodes.length) == 0)
    if known.all() and episodes.length.sum() == len(time_s):
        chosen = _place_counted(episodes, sync, frames_by)
        same[:] = False
    else:
        chosen = None
    placed, found = chosen or _place_by_time(episodes, time_s, tolerance_s, same)
    start[order] = placed
    return Placement(start, (*findings, *found))


def nearest(
    time_s: NDArray[np.float64], at_s: NDArray[np.float64], *, fps: float
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Find the sample nearest to each time.

    Args:
        time_s: ``(Q,)`` Rising times of at least one sample.
        at_s: ``(n,)`` The times looked for.
        fps: Samples a second, where the file's own times don't say.

    Returns:
        ``(n,)`` each: the first of the nearest samples, the seconds from it to the time, and the
        same in local sample spacings (the median of the gaps around it).
    """
    right = np.searchsorted(time_s, at_s)
    left = np.maximum(right - 1, 0)
    right = np.minimum(right, len(time_s) - 1)
    near = np.where(at_s - time_s[left] <= time_s[right] - at_s, left, right)
    near = np.searchsorted(time_s, time_s[near])
    off_s = at_s - time_s[near]
    spacing = np.full(len(at_s), 1 / fps)
    if len(time_s) > 1:
        gaps = np.diff(time_s)
        around = np.clip(near[:, None] + _NEIGHBOURS, 0, len(gaps) - 1)  # (n, 8)
        local = np.median(gaps[around], axis=1)
        spacing = np.where(local > 0, local, spacing)
    return near, off_s, off_s / spacing


@dataclass(frozen=True, slots=True, eq=False)
class _Episodes:
    """The episodes of one file by rising start, a column per array."""

    number: NDArray[np.int64]
    """Positions in the caller's arrays."""
    from_s: NDArray[np.float64]
    length: NDArray[np.int64]
    near: NDArray[np.int64]
    """Start by time."""
    off_s: NDArray[np.float64]
    """Seconds from there to ``from_s``."""
    off: NDArray[np.float64]
    """The same in sample spacings."""
    num_samples: int


def _place_counted(
    episodes: _Episodes, sync: NDArray[np.bool_], frames_by: FramesBy | None
) -> tuple[NDArray[np.int64], list[Finding]] | None:
    """Choose between count and time where the lengths add up to the file's samples.

    Returns:
        Starts by count, or an error of each episode; None where time is to be believed.
    """
    near = episodes.near
    count = np.cumsum(episodes.length) - episodes.length
    if np.array_equal(count, near):
        return count, []
    by_count = bool(sync[count].all())
    by_time = bool(sync[near].all() and (np.abs(episodes.off) <= _TIME_EVIDENCE).all())
    if by_count != by_time:
        return (count, [_counted(episodes, count)]) if by_count else None
    if frames_by is None:
        return np.full_like(near, -1), _ambiguous(episodes, count, both=by_count)
    return (count, []) if frames_by == "count" else None


def _place_by_time(
    episodes: _Episodes,
    time_s: NDArray[np.float64],
    tolerance_s: float,
    same: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], list[Finding]]:
    """Place each episode by time.

    Args:
        episodes: By rising start.
        time_s: Times of the presented samples.
        tolerance_s: Distance of a start that is not worth a warning.
        same: ``(n - 1,)`` True where the next episode may share this one's samples.
    """
    off = np.abs(episodes.off)
    far = off > _FAR
    missing = np.where(far, 0, _missing(episodes, same, far))
    start = np.where(far | (missing > 0), -1, episodes.near)
    odd = (off > _WARN) & (np.abs(episodes.off_s) > tolerance_s) & (start >= 0)
    findings = [_far(episodes, int(j), time_s) for j in np.flatnonzero(far)]
    findings += _short(episodes, missing)
    findings += [_odd(episodes, int(j), time_s) for j in np.flatnonzero(odd)]
    return start, findings


def _missing(
    episodes: _Episodes, same: NDArray[np.bool_], far: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Frames of each episode that lie behind the start of the next, or the file's end.

    A ``far`` episode starts nowhere in the file, so it takes no frame from the one before.
    """
    starts = np.append(episodes.near, episodes.num_samples)
    starts[:-1][far] = episodes.num_samples
    starts = np.minimum.accumulate(starts[::-1])[::-1]
    last = np.flatnonzero(np.append(~same, True))
    after = last[np.searchsorted(last, np.arange(len(episodes.near)))] + 1
    missing: NDArray[np.int64] = np.maximum(episodes.near + episodes.length - starts[after], 0)
    return missing


def _short(episodes: _Episodes, missing: NDArray[np.int64]) -> list[Finding]:
    findings = []
    for j in np.flatnonzero(missing):
        gone, length = int(missing[j]), int(episodes.length[j])
        message = f"{counted(gone, 'frame')} missing ({length - gone} of {length})"
        if episodes.near[j] + length <= episodes.num_samples:
            message += ": the next episode starts there"
        findings.append(
            Finding(
                "error",
                int(episodes.number[j]),
                message,
                expected=counted(length, "frame"),
                found=counted(length - gone, "frame"),
                hint=_EXCLUDE,
            )
        )
    return findings


def _ambiguous(episodes: _Episodes, count: NDArray[np.int64], *, both: bool) -> list[Finding]:
    plausible = "both are plausible" if both else "neither is plausible"
    return [
        Finding(
            "error",
            int(number),
            f"starts at frame {by_count} by count, at frame {by_time} by time; for this file"
            f" {plausible}",
            expected=f"frame {by_count} by count",
            found=f"frame {by_time} by time",
            hint=_CHOOSE,
        )
        for number, by_count, by_time in zip(episodes.number, count, episodes.near, strict=True)
    ]


def _counted(episodes: _Episodes, count: NDArray[np.int64]) -> Finding:
    differs = count - episodes.near
    j = int(np.flatnonzero(differs)[0])
    worst = int(np.abs(differs).max())
    return Finding(
        "warning",
        int(episodes.number[j]),
        f"starts at frame {count[j]} by count, at frame {episodes.near[j]} by time; this file is"
        f" read by count, as its sync samples say (time is up to {worst} frames off)",
        expected=f"frame {count[j]}",
        found=f"frame {episodes.near[j]} by time",
        hint="nothing to do; from_timestamp drifts from the times in the video",
    )


def _far(episodes: _Episodes, j: int, time_s: NDArray[np.float64]) -> Finding:
    at, sample = float(episodes.from_s[j]), float(time_s[episodes.near[j]])
    return Finding(
        "error",
        int(episodes.number[j]),
        f"from_timestamp is {at:.6g} s, but the nearest frame is at {sample:.6g} s,"
        f" {abs(float(episodes.off[j])):.3g} frames away",
        expected=f"a frame at {at:.6g} s",
        found=f"a frame at {sample:.6g} s",
        hint=_EXCLUDE,
    )


def _odd(episodes: _Episodes, j: int, time_s: NDArray[np.float64]) -> Finding:
    at, sample = float(episodes.from_s[j]), float(time_s[episodes.near[j]])
    return Finding(
        "warning",
        int(episodes.number[j]),
        f"from_timestamp is {at:.6g} s, {abs(float(episodes.off[j])):.3g} frames from the frame"
        f" at {sample:.6g} s that is used",
        expected=f"a frame at {at:.6g} s",
        found=f"a frame at {sample:.6g} s",
        hint="look at the episode's first frame, or exclude the episode",
    )


def _no_start(number: int) -> Finding:
    return Finding(
        "error",
        number,
        "from_timestamp is not a number",
        expected="seconds",
        found="no number",
        hint=_EXCLUDE,
    )


def _no_samples(number: int, length: int) -> Finding:
    return Finding(
        "error",
        number,
        f"{counted(length, 'frame')} missing (0 of {length}): the file presents no sample",
        expected=counted(length, "frame"),
        found="0 frames",
        hint=_EXCLUDE,
    )
