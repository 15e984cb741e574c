from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.train.records import record_from_json, record_to_json


@dataclass(frozen=True)
class Inner:
    pair: tuple[float, float] = (1.0, 2.0)
    numbers: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Outer:
    name: str = "x"
    rate: float = 0.5
    on: bool = False
    kind: Literal["a", "b"] = "a"
    names: Mapping[str, str] = field(default_factory=dict)
    anything: Mapping[str, Any] = field(default_factory=dict)
    inner: Inner = field(default_factory=Inner)


@given(
    st.builds(
        Outer,
        name=st.text(max_size=4),
        rate=st.floats(allow_nan=False),
        on=st.booleans(),
        kind=st.sampled_from(["a", "b"]),
        names=st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
        inner=st.builds(Inner, numbers=st.none() | st.lists(st.integers(), max_size=3).map(tuple)),
    )
)
def test_parsing_undoes_writing(record: Outer) -> None:
    assert record_from_json(Outer, record_to_json(record)) == record


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"nam": "y"}, "unknown setting nam, did you mean name"),
        ({"inner": {"pairs": 1}}, "unknown setting inner.pairs, did you mean inner.pair"),
        ({"on": 1}, "on: wanted bool, found 1"),
        ({"rate": "fast"}, 'rate: wanted float, found "fast"'),
        ({"kind": "c"}, 'kind: wanted a or b, found "c"'),
        ({"inner": 3}, "inner: wanted an object, found 3"),
        ({"inner": {"pair": [1.0]}}, "inner.pair: wanted 2 values, found"),
        ({"inner": {"numbers": [1, "two"]}}, 'inner.numbers: wanted int, found "two"'),
        ({"names": {"a": 1}}, "names.a: wanted str, found 1"),
        ({"names": []}, "names: wanted an object, found"),
    ],
)
def test_what_does_not_fit_is_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        record_from_json(Outer, values)


def test_whole_numbers_are_numbers() -> None:
    assert record_from_json(Outer, {"rate": 2}) == Outer(rate=2.0)
