"""Ratios are medians of what was measured side by side, and tables show them as they are."""

from __future__ import annotations

import pytest

from lerobot_stream.profile.limit import Decoded
from tests.benchmarks.grid import Cell, all_cells, chosen, few_cells
from tests.benchmarks.pairs import Pair, Standing, stand
from tests.benchmarks.streams import Slice
from tests.benchmarks.table import markdown, speed_table


def pair(limit: float, rate: float, *, decoded_each: float = 1.0) -> Pair:
    pictures = int(2 * rate)
    return Pair(
        Decoded(int(limit), 1.0, 2.0),
        Slice(seconds=2.0, cpu_s=4.0, pictures=pictures, decoded=int(decoded_each * pictures)),
    )


def test_a_slow_moment_of_the_machine_does_not_change_the_ratio() -> None:
    standing = stand([pair(1000, 900), pair(500, 450), pair(1000, 890), pair(100, 99)])
    assert standing.of_limit == pytest.approx(0.9)
    assert standing.lowest == pytest.approx(0.89)
    assert standing.highest == pytest.approx(0.99)
    assert standing.cpu_of_limit == pytest.approx(0.9)


def test_pictures_before_the_wanted_ones_count_as_work_and_not_as_delivered() -> None:
    standing = stand([pair(1000, 500, decoded_each=1.5)])
    assert standing.of_limit == pytest.approx(0.5)
    assert standing.busy == pytest.approx(0.75)
    assert standing.decoded_each == pytest.approx(1.5)


def test_no_pairs_have_no_median() -> None:
    with pytest.raises(ValueError, match="no pair"):
        stand([])


def standing(of_limit: float) -> Standing:
    return Standing(
        rate=1000 * of_limit,
        limit=1000,
        of_limit=of_limit,
        lowest=of_limit,
        highest=of_limit,
        cpu_of_limit=of_limit,
        busy=of_limit,
        decoded_each=1.0,
    )


def test_a_table_shows_shares_of_the_limit_and_multiples_of_map_style() -> None:
    measured = {
        Cell("h264-g2", 1, 0, "map-style"): standing(0.3),
        Cell("h264-g2", 1, 0, "clip"): standing(0.9),
        Cell("h264-g2", 1, 2, "clip"): standing(0.6),
    }
    assert speed_table(measured).splitlines()[2:] == [
        "| H.264 g=2 | 1 | 0 | 1,000 | 0.90, 3.0× | 0.30 |",
        "| H.264 g=2 | 1 | 2 | 1,000 | 0.60, 2.0× | 0.30 |",
    ]


def test_a_table_has_a_heading_and_a_line_below_it() -> None:
    assert markdown([["a", "b"], ["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


def test_every_strategy_meets_every_encoding_number_of_cameras_and_workers() -> None:
    cells = list(all_cells())
    assert len({cell.name for cell in cells}) == len(cells)
    for way in ("remaining", "round_robin", "clip"):
        met = {(cell.encoding, cell.cameras, cell.workers) for cell in cells if cell.way == way}
        assert len(met) == 4 * 2 * 2
    assert set(few_cells()) <= set(cells)
    assert [cell.name for cell in chosen(cells, ["g250", "2cam/2w", "clip"])] == [
        "h264-g250/2cam/2w/clip"
    ]
