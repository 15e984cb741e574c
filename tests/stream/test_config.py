"""Settings that mean nothing are refused before anything is read."""

from __future__ import annotations

from typing import Any

import pytest

from lerobot_stream.stream.config import ReadConfig, StreamConfig
from lerobot_stream.stream.position import Place


@pytest.mark.parametrize(
    "setting",
    [
        {"frames_by": "guess"},
        {"tolerance_s": -1.0},
        {"tolerance_s": float("nan")},
        {"native_http_connections": 0},
        {"native_http_subranges": 0},
    ],
)
def test_a_reading_that_means_nothing_is_refused(setting: dict[str, Any]) -> None:
    (name,) = setting
    with pytest.raises(ValueError, match=f"^{name} must be"):
        ReadConfig("a/b", **setting)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), 1e300])
@pytest.mark.parametrize("name", ["byte_budget_gb", "decoded_pool_gb"])
def test_a_budget_is_a_number_of_bytes(name: str, value: float) -> None:
    setting: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=f"^{name} must be above 0"):
        StreamConfig(**setting)


@pytest.mark.parametrize("place", [(-1, 0, 1), (0, -1, 1), (0, 1, 0), (0, 1, -2)])
def test_no_place_lies_before_the_start(place: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="no place"):
        Place(*place)
