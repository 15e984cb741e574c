"""Charts out of text show the proportions of their numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.cli.chart import bar, histogram, sparkline


def test_the_highest_value_is_a_whole_block_and_none_is_a_line() -> None:
    assert sparkline([0, 4, 8], width=3) == "▁▅█"
    assert sparkline([0, 8], width=4) == "▁▁██"
    assert sparkline([], width=4) == sparkline([0.0], width=4) == ""


def test_a_bar_is_as_long_as_its_share() -> None:
    assert bar(0.5, width=8) == "████"
    assert bar(1.5, width=2) == "██"
    assert bar(0.0, width=2) == ""
    assert bar(1 / 16, width=2) == "▏"


def test_times_are_counted_in_steps_of_one_two_and_five() -> None:
    assert list(histogram([0.0008, 0.001, 0.003], width=4)) == [
        ("up to 1 ms", "████ 2"),
        ("up to 2 ms", "0"),
        ("up to 5 ms", "██ 1"),
    ]


@given(st.lists(st.floats(0, 1e5), max_size=50))
def test_every_time_is_counted_once(seconds: list[float]) -> None:
    lines = [line for _, line in histogram(seconds, width=10)]
    assert sum(int(line.split()[-1]) for line in lines) == len(seconds)
    assert len(lines) <= 12
