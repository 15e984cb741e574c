from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.stream.window import Window, plan_windows

KEYS = ["action", "cam"]


@given(
    st.integers(1, 30),
    st.lists(st.integers(-40, 40), min_size=1, max_size=6),
)
def test_a_window_is_clamped_into_its_episode_and_says_where(
    length: int, offsets: list[int]
) -> None:
    window = Window(np.array(offsets))
    frames = np.arange(length)
    for frame, shown, padded in zip(
        frames, window.numbers(frames, length), window.is_pad(frames, length), strict=True
    ):
        for offset, number, is_pad in zip(offsets, shown, padded, strict=True):
            inside = 0 <= frame + offset < length
            assert is_pad != inside
            assert number == (frame + offset if inside else (0 if offset < 0 else length - 1))


@pytest.mark.parametrize("fps", [10, 15, 30, 50, 29.97])
def test_seconds_become_frames(fps: float) -> None:
    wanted = list(range(-20, 21))
    window = plan_windows({"cam": [n / fps for n in wanted]}, keys=KEYS, fps=fps, tolerance_s=1e-4)[
        "cam"
    ]
    assert window.offset.tolist() == wanted


def test_a_delta_exactly_at_the_tolerance_is_taken() -> None:
    assert plan_windows({"cam": [0.125]}, keys=KEYS, fps=1, tolerance_s=0.125)


@pytest.mark.parametrize(
    ("deltas", "message"),
    [
        ({"cam": [0.05]}, r"'cam' has 0.05 s, which is 0.05\d* s from a multiple of 1/10 s"),
        ({"cam": []}, "'cam' has no steps"),
        ({"cam": [1e300]}, "'cam' has 1e\\+300 s, no episode is as long"),
        ({"cam": [float("inf")]}, "'cam' has inf s"),
        ({"cam": [float("nan")]}, "'cam' has nan s"),
        ({"cam": 0.1}, "'cam' must be a list of seconds, got 0.1"),
        ({"cam": ["now"]}, r"'cam' must be a list of seconds, got \['now'\]"),
        ({"cam": [[0.1]]}, r"'cam' must be a list of seconds, got \[\[0.1\]\]"),
        ([0.1], r"delta_timestamps must map features to seconds, got \[0.1\]"),
        ({"lid": [0.0]}, "no feature 'lid'; there are action, cam"),
        ({"cam.pad_masking": [0.0]}, "padding is in '<key>_is_pad'"),
    ],
)
def test_what_no_window_can_be_is_refused(deltas: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan_windows(deltas, keys=KEYS, fps=10, tolerance_s=1e-4)
