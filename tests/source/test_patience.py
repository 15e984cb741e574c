from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.source.patience import Clock, Patience, asked_wait_s

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
DRAWS = st.floats(0, 1, exclude_max=True)


@given(st.integers(1, 60), DRAWS)
def test_a_wait_is_positive_and_never_longer_than_the_limit(tries: int, draw: float) -> None:
    patience = Patience()
    assert 0 < patience.wait_s(tries, draw=draw) <= patience.longest_wait_s


@given(st.integers(1, 5), DRAWS)
def test_waits_double(tries: int, draw: float) -> None:
    patience = Patience()
    first = patience.wait_s(tries, draw=draw)
    assert patience.wait_s(tries + 1, draw=draw) == pytest.approx(2 * first)


@given(st.integers(1, 60), DRAWS, st.floats(0, 1e6))
def test_what_a_server_asks_for_is_waited_for_up_to_the_limit(
    tries: int, draw: float, asked: float
) -> None:
    patience = Patience()
    wait = patience.wait_s(tries, draw=draw, asked_s=asked)
    least = min(asked, patience.longest_retry_after_s)
    assert least <= wait <= least + patience.first_wait_s


def test_two_workers_do_not_come_back_at_once() -> None:
    draws = {Clock().draw() for _ in range(50)}
    assert len(draws) == 50


def test_a_try_gets_time_for_its_bytes() -> None:
    patience = Patience(try_s=10, slowest_rate=1000)
    assert patience.try_deadline_s(5000) == 15


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 120 "}, 120.0),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Thu, 01 Jan 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:09 -0000"}, 9.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"ratelimit": '"api";r=0;t=55'}, 55.0),
        ({"ratelimit": "nonsense"}, None),
        ({"retry-after": "3", "ratelimit": '"api";r=0;t=55'}, 3.0),
    ],
)
def test_what_a_server_asks_for_is_read(headers: dict[str, str], expected: float | None) -> None:
    assert asked_wait_s(headers, now=NOW) == expected


@given(st.text(max_size=40))
def test_no_text_in_retry_after_is_a_fault(text: str) -> None:
    wait = asked_wait_s({"retry-after": text}, now=NOW)
    assert wait is None or wait >= 0
