from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lerobot_stream.plan.capacity import MOST_ROWS, plan_capacity
from tests.plan.shares import CONFIG, make_episodes, make_share

CLIP = replace(CONFIG, strategy="clip")


@pytest.mark.parametrize(
    ("decoded_bytes", "lanes", "rows", "spread"),
    [(1000, 32, 226, 169), (640, 32, 106, 79), (639, 16, 159, 119), (25, 1, 5, 3), (20, 1, 3, 2)],
)
def test_lanes_are_halved_until_their_tails_leave_room(
    decoded_bytes: int, lanes: int, rows: int, spread: int
) -> None:
    found = plan_capacity(
        lanes=32, decoded_bytes=decoded_bytes, tail_bytes=10, item_bytes=3, num_workers=1
    )
    assert (found.lanes, found.rows, found.spread) == (lanes, rows, spread)


@example(lanes=2, decoded_bytes=100, tail_bytes=20, item_bytes=70, num_workers=1)
@given(
    st.integers(1, 100),
    st.integers(0, 10**6),
    st.integers(0, 99),
    st.integers(1, 99),
    st.integers(1, 4),
)
def test_rows_and_tails_fit_the_part_of_a_worker(
    lanes: int, decoded_bytes: int, tail_bytes: int, item_bytes: int, num_workers: int
) -> None:
    try:
        found = plan_capacity(
            lanes=lanes,
            decoded_bytes=decoded_bytes,
            tail_bytes=tail_bytes,
            item_bytes=item_bytes,
            num_workers=num_workers,
        )
    except ValueError:
        needed = max(2 * tail_bytes, tail_bytes + item_bytes) * num_workers
        assert decoded_bytes < needed
        return
    assert 1 <= found.lanes <= lanes
    assert 1 <= found.spread <= found.rows <= MOST_ROWS
    held = found.rows * item_bytes + found.lanes * tail_bytes
    assert held * num_workers <= decoded_bytes


def test_a_window_above_the_decoded_budget_says_how_much_it_needs() -> None:
    config = replace(
        CLIP,
        num_workers=2,
        first_offset=-9,
        frame_bytes=10**8,
        item_bytes=10**9,
        decoded_bytes=2 * 10**9,
    )
    with pytest.raises(ValueError, match=r"at least 3\.81 GB for decoded frames, .* is 2 GB"):
        config.capacity(8)
    assert replace(config, decoded_bytes=38 * 10**8).capacity(8).lanes == 1


def test_a_share_that_cannot_hold_one_lane_is_refused_before_it_is_planned() -> None:
    config = replace(CLIP, first_offset=-30, decoded_bytes=40)
    with pytest.raises(ValueError, match="clip needs at least"):
        make_share(make_episodes([50, 60]), config)
