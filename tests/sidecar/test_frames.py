"""Which samples are an episode's frames: every rule, and nothing but the rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from lerobot_stream.sidecar.choices import FramesBy
from lerobot_stream.sidecar.frames import Placement, nearest, place_episodes

FPS = 30.0
Outcome = tuple[list[int], set[tuple[str, int]]]


def place(
    time_s: ArrayLike,
    sync: Sequence[int] | NDArray[np.int64],
    from_s: ArrayLike,
    lengths: Sequence[int],
    *,
    frames_by: FramesBy | None = None,
    tolerance_s: float = 1e-4,
    fps: float = FPS,
) -> Placement:
    times = np.asarray(time_s, np.float64)
    flags = np.zeros(len(times), np.bool_)
    flags[list(sync)] = True
    return place_episodes(
        times,
        flags,
        np.asarray(from_s, np.float64),
        np.asarray(lengths, np.int64),
        fps=fps,
        tolerance_s=tolerance_s,
        frames_by=frames_by,
    )


def outcome(placement: Placement) -> Outcome:
    found: set[tuple[str, int]] = {(f.severity, f.number) for f in placement.findings}
    starts: list[int] = placement.start.tolist()
    return starts, found


def by_definition(
    time_s: Sequence[float],
    sync: set[int],
    from_s: Sequence[float],
    lengths: Sequence[int],
    frames_by: FramesBy | None,
) -> Outcome:
    """The definition, episode by episode, for files of an even rate of 1."""
    num_samples = len(time_s)
    order = sorted(range(len(lengths)), key=lambda j: from_s[j])
    near = [min(range(num_samples), key=lambda i: abs(time_s[i] - from_s[j])) for j in order]
    off = [abs(from_s[j] - time_s[i]) for j, i in zip(order, near, strict=True)]
    length = [lengths[j] for j in order]
    starts = list(near)
    found: set[tuple[str, int]] = set()

    def by_time(*, sharing: bool) -> None:
        for j in range(len(order)):
            me = (from_s[order[j]], length[j])
            after = j + 1
            while sharing and after < len(order) and (from_s[order[after]], length[after]) == me:
                after += 1
            later = [near[i] for i in range(after, len(order)) if off[i] <= 0.5]
            if off[j] > 0.5 or near[j] + length[j] > min(later, default=num_samples):
                found.add(("error", order[j]))
            elif off[j] > 0.25:
                found.add(("warning", order[j]))

    counted = sum(length) == num_samples
    count = [sum(length[:j]) for j in range(len(order))]
    if counted and count == near:
        pass
    elif counted:
        for_count = all(start in sync for start in count)
        for_time = all(start in sync for start in near) and all(d <= 0.1 for d in off)
        choice = {(True, False): "count", (False, True): "time"}.get((for_count, for_time))
        if choice == "count":
            starts = count
            first = next(j for j in range(len(order)) if count[j] != near[j])
            found.add(("warning", order[first]))
        elif choice is None and frames_by is None:
            found |= {("error", j) for j in order}
        elif choice is None and frames_by == "count":
            starts = count
        else:
            by_time(sharing=False)
    else:
        by_time(sharing=True)
    result = [-1] * len(order)
    for j, number in enumerate(order):
        if ("error", number) not in found:
            result[number] = starts[j]
    return result, found


@st.composite
def files(draw: st.DrawFn) -> dict[str, Any]:
    """Files at rate 1 whose episodes follow each other, more or less."""
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=6))
    extra = draw(st.sampled_from([0, 0, 0, -2, 3]))
    num_samples = max(1, sum(lengths) + extra)
    starts = np.cumsum([0, *lengths[:-1]])
    # sixteenths are exact in floats and keep off the thresholds 0.1, 1/4 and 1/2
    off = st.sampled_from([0.0, 0.0, 0.0, 0.0625, 0.1875, -0.1875, 0.3125, -0.3125, 0.5625, -1, 2])
    from_s = [float(start) + draw(off) for start in starts]
    if draw(st.booleans()) and len(lengths) > 1:
        i = draw(st.integers(1, len(lengths) - 1))
        lengths[i], from_s[i] = lengths[i - 1], from_s[i - 1]
    if draw(st.booleans()):
        order = draw(st.permutations(range(len(lengths))))
        lengths, from_s = [lengths[i] for i in order], [from_s[i] for i in order]
    gop = draw(st.integers(1, 4))
    sync = set(range(0, num_samples, gop)) | draw(st.sets(st.sampled_from(starts.tolist())))
    return {
        "time_s": [float(i) for i in range(num_samples)],
        "sync": {int(i) for i in sync if i < num_samples},
        "from_s": from_s,
        "lengths": lengths,
        "frames_by": draw(st.sampled_from([None, "count", "time"])),
    }


@settings(max_examples=400)
@given(files())
def test_every_file_is_read_as_defined(file: dict[str, Any]) -> None:
    found = place(
        file["time_s"],
        sorted(file["sync"]),
        file["from_s"],
        file["lengths"],
        frames_by=file["frames_by"],
        fps=1,
    )
    assert outcome(found) == by_definition(**file)


@given(files())
def test_frames_lie_in_the_file_and_are_shared_only_by_equal_episodes(
    file: dict[str, Any],
) -> None:
    found = place(file["time_s"], sorted(file["sync"]), file["from_s"], file["lengths"], fps=1)
    owner: dict[int, tuple[float, int]] = {}
    for start, length, from_s in zip(
        found.start.tolist(), file["lengths"], file["from_s"], strict=True
    ):
        if start < 0:
            continue
        assert start + length <= len(file["time_s"])
        for frame in range(start, start + length):
            assert owner.setdefault(frame, (from_s, length)) == (from_s, length)


def even(count: int, start_s: float = 0.0) -> NDArray[np.float64]:
    return start_s + np.arange(count) / FPS


def test_a_plain_file_is_silent() -> None:
    found = place(even(12), range(0, 12, 2), [0, 4 / FPS, 9 / FPS], [4, 5, 3])
    assert outcome(found) == ([0, 4, 9], set())


def test_eighty_joined_clips_that_drift_are_read_by_count_with_one_warning() -> None:
    lengths = np.random.default_rng(0).integers(20, 41, 80)
    starts = np.cumsum(lengths) - lengths
    clip = np.repeat(np.arange(80), lengths)
    times = even(int(lengths.sum())) + clip * 0.00035  # 28 ms later at the end
    found = place(times, starts, starts / FPS, lengths.tolist())
    assert found.start.tolist() == starts.tolist()
    (finding,) = found.findings
    assert finding.severity == "warning"
    assert "up to 1 frames off" in finding.message
    by_time, _, off = nearest(times, starts / FPS, fps=FPS)
    assert finding.number == np.flatnonzero(by_time != starts)[0]
    assert (by_time < starts).sum() > 20  # each of them would have been wrong without a word
    assert np.abs(off).max() < 0.51


def test_a_file_whose_first_sample_is_late_is_read_by_count() -> None:
    # no edit list: everything is two frames late, so later starts hit a sample exactly
    found = place(even(40, 2 / FPS), range(0, 40, 2), np.array([0, 10, 24]) / FPS, [10, 14, 16])
    assert outcome(found) == ([0, 10, 24], {("warning", 1)})


def test_starts_that_lose_a_frame_an_episode_are_read_by_count() -> None:
    lengths = [11, 9, 12, 8]
    from_s = np.cumsum([0, *(n - 1 for n in lengths[:-1])]) / FPS
    found = place(even(40), [0, 11, 20, 32], from_s, lengths)
    assert outcome(found) == ([0, 11, 20, 32], {("warning", 1)})


def test_starts_that_only_time_can_explain_leave_the_overlapping_episode_out() -> None:
    # the second episode lost two frames, the file holds two more at its end
    found = place(even(20), [0, 8, 12], np.array([0, 8, 12]) / FPS, [8, 6, 6])
    assert outcome(found) == ([0, -1, 12], {("error", 1)})
    assert found.findings[0].message == "2 frames missing (4 of 6): the next episode starts there"


@pytest.mark.parametrize(("sync", "which"), [(range(20), "both are"), ([0], "neither is")])
def test_what_cannot_be_told_is_an_error_of_each_episode(sync: Sequence[int], which: str) -> None:
    arguments = (even(20), list(sync), np.array([0, 7, 14]) / FPS, [8, 6, 6])
    found = place(*arguments)
    assert outcome(found) == ([-1, -1, -1], {("error", 0), ("error", 1), ("error", 2)})
    assert f"frame 8 by count, at frame 7 by time; for this file {which}" in (
        found.findings[1].message
    )
    assert "--dataset.frames_by=count" in found.findings[1].hint
    assert outcome(place(*arguments, frames_by="count")) == ([0, 8, 14], set())
    assert outcome(place(*arguments, frames_by="time")) == ([-1, 7, 14], {("error", 0)})


def test_frames_missing_at_the_end_are_counted() -> None:
    found = place(even(36), range(0, 36, 2), np.array([0, 19]) / FPS, [19, 20])
    assert outcome(found) == ([0, -1], {("error", 1)})
    finding = found.findings[0]
    assert finding.message == "3 frames missing (17 of 20)"
    assert (finding.expected, finding.found) == ("20 frames", "17 frames")


def test_frames_dropped_in_the_middle_are_not_taken_from_the_next_episode() -> None:
    found = place(even(36), range(36), np.array([0, 17, 20]) / FPS, [20, 3, 16])
    assert outcome(found) == ([-1, 17, 20], {("error", 0)})
    assert found.findings[0].message == "3 frames missing (17 of 20): the next episode starts there"


def test_equal_episodes_share_samples() -> None:
    found = place(even(20), range(0, 20, 2), np.array([0, 4, 4, 4]) / FPS, [4, 6, 6, 6])
    assert outcome(found) == ([0, 4, 4, 4], set())


def test_an_episode_that_starts_with_another_but_is_shorter_is_an_error() -> None:
    found = place(even(21), range(0, 21, 2), np.array([0, 4, 4]) / FPS, [4, 6, 9])
    assert outcome(found) == ([0, -1, 4], {("error", 1)})


def test_a_start_behind_the_file_is_an_error_with_both_times() -> None:
    found = place(even(20), range(0, 20, 2), [0, 2.0], [10, 5])
    assert outcome(found) == ([0, -1], {("error", 1)})
    assert found.findings[0].message == (
        "from_timestamp is 2 s, but the nearest frame is at 0.633333 s, 41 frames away"
    )


def test_a_start_behind_the_file_takes_nothing_from_the_episode_before() -> None:
    found = place(even(20), range(0, 20, 2), [0, 20 / FPS], [20, 5])
    assert outcome(found) == ([0, -1], {("error", 1)})


def test_a_start_between_two_frames_is_a_warning_unless_tolerated() -> None:
    arguments = (even(20), range(0, 20, 2), np.array([0, 10.3]) / FPS, [9, 9])
    assert outcome(place(*arguments)) == ([0, 10], {("warning", 1)})
    assert outcome(place(*arguments, tolerance_s=0.3 / FPS + 1e-9)) == ([0, 10], set())


def test_a_gap_does_not_hide_how_far_a_start_is() -> None:
    times = np.delete(even(40), range(20, 26))
    found = place(times, range(34), np.array([0, 22.5]) / FPS, [20, 10])
    assert outcome(found) == ([0, -1], {("error", 1)})


def test_an_episode_without_a_start_is_an_error_and_others_are_read_by_time() -> None:
    found = place(even(20), range(20), [0, np.nan, 10 / FPS], [5, 5, 10])
    assert outcome(found) == ([0, -1, 10], {("error", 1)})
    assert found.findings[0].message == "from_timestamp is not a number"


def test_a_file_that_presents_nothing_is_an_error_of_each_episode() -> None:
    found = place([], [], [0, 1.0], [5, 7])
    assert outcome(found) == ([-1, -1], {("error", 0), ("error", 1)})


def test_one_sample_is_a_whole_episode() -> None:
    assert outcome(place([0.0], [0], [0.0], [1])) == ([0], set())
    assert outcome(place([0.0], [0], [0.02], [1])) == ([0], set())


@given(
    st.lists(st.integers(0, 200), min_size=1, max_size=30),
    st.lists(st.floats(-5, 15), min_size=1, max_size=10),
)
def test_no_sample_is_nearer_than_the_nearest(ticks: list[int], at_s: list[float]) -> None:
    times = np.sort(np.array(ticks) / 16)
    near, off_s, off = nearest(times, np.array(at_s), fps=16)
    for i, at, seconds in zip(near.tolist(), at_s, off_s.tolist(), strict=True):
        assert abs(at - times[i]) == np.abs(times - at).min()
        assert seconds == at - times[i]
        assert i == 0 or times[i - 1] < times[i]
    assert np.isfinite(off).all()
