from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pytest

from lerobot_stream.train.settings import check_settings, setting


@dataclass(frozen=True)
class Inner:
    share: float | None = setting(0.5, above=0, below=1, help="a share")


@dataclass(frozen=True)
class Outer:
    count: int = setting(1, least=1, most=9, help="a count")
    kind: Literal["a", "b"] | None = setting(None, help="a kind")
    inner: Inner = field(default_factory=Inner)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (Outer(count=0), r"^--count must be at least 1, got 0$"),
        (Outer(count=10), r"^--count must be at most 9, got 10$"),
        (Outer(inner=Inner(0.0)), r"^--inner\.share must be above 0, got 0\.0$"),
        (Outer(inner=Inner(1.0)), r"^--inner\.share must be below 1, got 1\.0$"),
        (Outer(kind="c"), r"^--kind must be one of a, b, null, got c$"),  # type: ignore[arg-type]
    ],
)
def test_values_out_of_bounds_name_their_flag(record: Outer, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_settings(record)


def test_values_within_bounds_and_null_pass() -> None:
    check_settings(Outer(count=9, kind="b", inner=Inner(None)))
