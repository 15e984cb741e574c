"""Settling follows from how far pictures are reordered, and only for H.264."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.mp4.settling import settling_samples


@given(st.permutations(range(12)), st.sampled_from(["hvc1", "hev1", "av01", "vp09", "mp4v"]))
def test_other_codecs_settle_at_once(rank: list[int], codec: str) -> None:
    assert settling_samples(codec, np.array(rank)) == 0


@pytest.mark.parametrize(
    ("rank", "wanted"),
    [
        pytest.param([0, 1, 2, 3], 0, id="not reordered"),
        pytest.param([], 0, id="no samples"),
        pytest.param([0, 2, 1, 3], 2 * (1 + 4) + 1, id="one B-frame"),
        pytest.param([0, 8, 1, 2, 3, 4, 5, 6, 7], 2 * (7 + 4) + 1, id="seven B-frames"),
        pytest.param([6, 5, 4, 3, 2, 1, 0], 2 * (6 + 6) + 1, id="backwards"),
    ],
)
def test_h264_settles_twice_its_delay_behind_a_sync_sample(rank: list[int], wanted: int) -> None:
    assert settling_samples("avc1", np.array(rank, dtype=np.int64)) == wanted
    assert settling_samples("avc3", np.array(rank, dtype=np.int64)) == wanted
