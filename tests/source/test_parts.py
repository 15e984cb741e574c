from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.source.parts import Parts, split
from lerobot_stream.span import Span


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 20), st.integers(1, 10**5))
def test_parts_touch_and_together_are_the_span(
    start: int, length: int, parts: int, least: int
) -> None:
    span = Span(start, start + length)
    found = split(span, parts=parts, least_bytes=least)
    assert found[0].start == span.start
    assert found[-1].stop == span.stop
    assert all(a.stop == b.start for a, b in pairwise(found))
    assert len(found) <= parts
    assert len(found) == 1 or min(len(part) for part in found) >= least


def test_parts_are_joined_in_order() -> None:
    data = bytes(range(256)) * (1 << 14)
    parts = Parts(parts=3, threads=2)
    seen: list[Span] = []

    def fetch(span: Span) -> bytes:
        seen.append(span)
        return data[span.start : span.stop]

    assert parts.fetch(Span(5, len(data)), fetch) == data[5:]
    assert len(seen) == 3
    parts.close()


def test_less_than_one_part_is_refused() -> None:
    with pytest.raises(ValueError, match="subranges must be at least 1, not 0"):
        Parts(parts=0, threads=1)
