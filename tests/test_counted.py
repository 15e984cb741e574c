from __future__ import annotations

import numpy as np
import pytest

from lerobot_stream.counted import counted


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 videos"), (1, "1 video"), (np.int64(1), "1 video"), (21, "21 videos")],
    ids=["none", "one", "one of numpy's", "many"],
)
def test_only_one_is_singular(count: int, text: str) -> None:
    assert counted(count, "video") == text


def test_a_number_may_be_formatted_already() -> None:
    assert counted("1", "frame") == "1 frame"
    assert counted("1,234", "frame") == "1,234 frames"
