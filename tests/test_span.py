from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.span import Request, Span, coalesce

spans = st.builds(
    lambda start, size: Span(start, start + size), st.integers(0, 200), st.integers(0, 60)
)
lists = st.lists(spans, max_size=12)
gaps, sizes = st.integers(0, 30), st.integers(1, 150)


@pytest.mark.parametrize(("start", "stop"), [(-1, 3), (5, 4)])
def test_what_no_file_can_hold_is_no_span(start: int, stop: int) -> None:
    with pytest.raises(ValueError, match="is not a byte span"):
        Span(start, stop)


def test_the_length_of_a_span_is_its_bytes() -> None:
    assert len(Span(3, 10)) == 7
    assert len(Span(3, 3)) == 0


@given(lists, gaps, sizes)
def test_each_span_is_a_part_of_exactly_one_request_that_covers_it(
    spans: list[Span], max_gap: int, max_size: int
) -> None:
    requests = coalesce(spans, max_gap=max_gap, max_size=max_size)
    assert sorted(part for request in requests for part in request.parts) == list(range(len(spans)))
    for request in requests:
        for part in request.parts:
            assert request.span.start <= spans[part].start
            assert spans[part].stop <= request.span.stop


@given(lists, gaps, sizes)
def test_requests_rise_and_none_is_wider_than_its_parts(
    spans: list[Span], max_gap: int, max_size: int
) -> None:
    requests = coalesce(spans, max_gap=max_gap, max_size=max_size)
    starts = [request.span.start for request in requests]
    assert starts == sorted(starts)
    for request in requests:
        parts = [spans[part] for part in request.parts]
        assert request.span.start == min(part.start for part in parts)
        assert request.span.stop == max(part.stop for part in parts)


@given(lists, gaps, sizes)
def test_only_a_single_span_exceeds_the_largest_request(
    spans: list[Span], max_gap: int, max_size: int
) -> None:
    for request in coalesce(spans, max_gap=max_gap, max_size=max_size):
        longest = max(len(spans[part]) for part in request.parts)
        assert len(request.span) <= max(max_size, longest)


@given(lists, gaps, sizes)
def test_what_is_fetched_for_nothing_is_at_most_a_gap_a_merge(
    spans: list[Span], max_gap: int, max_size: int
) -> None:
    for request in coalesce(spans, max_gap=max_gap, max_size=max_size):
        wanted = {
            byte for part in request.parts for byte in range(spans[part].start, spans[part].stop)
        }
        assert len(request.span) - len(wanted) <= max_gap * (len(request.parts) - 1)


def test_touching_spans_merge_without_a_gap() -> None:
    merged = coalesce([Span(5, 9), Span(0, 5)], max_gap=0, max_size=100)
    assert merged == [Request(Span(0, 9), (1, 0))]


@pytest.mark.parametrize(("max_gap", "count"), [(2, 2), (3, 1)])
def test_a_gap_is_bridged_only_up_to_the_limit(max_gap: int, count: int) -> None:
    assert len(coalesce([Span(0, 5), Span(8, 9)], max_gap=max_gap, max_size=100)) == count


@pytest.mark.parametrize(("max_size", "count"), [(8, 2), (9, 1)])
def test_a_merge_stops_at_the_largest_request(max_size: int, count: int) -> None:
    assert len(coalesce([Span(0, 5), Span(5, 9)], max_gap=0, max_size=max_size)) == count


@given(lists, gaps, sizes, st.floats(0, 1))
def test_what_a_request_fetches_for_nothing_is_at_most_its_share(
    spans: list[Span], max_gap: int, max_size: int, max_waste: float
) -> None:
    requests = coalesce(spans, max_gap=max_gap, max_size=max_size, max_waste=max_waste)
    for request in requests:
        wanted = {
            byte for part in request.parts for byte in range(spans[part].start, spans[part].stop)
        }
        assert len(request.span) - len(wanted) <= max_waste * len(request.span)


@pytest.mark.parametrize(("max_waste", "count"), [(0.32, 2), (0.34, 1)])
def test_a_gap_is_bridged_only_up_to_its_share(max_waste: float, count: int) -> None:
    spans = [Span(0, 5), Span(8, 9)]
    assert len(coalesce(spans, max_gap=9, max_size=100, max_waste=max_waste)) == count
