from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from rich.console import Console

from lerobot_stream.errors import StreamError
from lerobot_stream.train.logs import RunLog, describe

METRICS = {"loss": 1.23456, "items_per_s": 987.6, "data_wait_share": 0.034, "eta_s": 61.0}


class FakeTracker:
    """Records what it is told."""

    def __init__(self) -> None:
        self.logged: list[tuple[int, Mapping[str, float]]] = []
        self.closed = False

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self.logged.append((step, metrics))

    def close(self) -> None:
        self.closed = True


def test_metrics_go_to_lines_the_file_and_trackers(tmp_path: Path) -> None:
    said, tracker = io.StringIO(), FakeTracker()
    console = Console(file=said, width=30)
    with RunLog(console, folder=tmp_path, trackers=[tracker], step=0, steps=9) as log:
        log.say("a [bold] path/that/is/longer/than/the/console")
        log.advance(3)
        log.log(3, METRICS)
    assert said.getvalue().splitlines() == [
        "a [bold] path/that/is/longer/than/the/console",
        "step 3/9  loss 1.2346  988 items/s  3% waiting for data  61 s left",
    ]
    (line,) = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(line) == {"step": 3, **METRICS}
    assert tracker.logged == [(3, METRICS)]
    assert tracker.closed


def test_a_terminal_gets_a_bar(tmp_path: Path) -> None:
    said = io.StringIO()
    console = Console(file=said, width=120, force_terminal=True)
    with RunLog(console, folder=tmp_path, trackers=[], step=0, steps=9) as log:
        log.log(3, METRICS)
        log.advance(3)
    assert "3/9" in said.getvalue()
    assert "loss 1.2346" in said.getvalue()
    assert "step 3/9  loss" not in said.getvalue()


def test_other_ranks_are_silent(tmp_path: Path) -> None:
    said = io.StringIO()
    with RunLog(Console(file=said), folder=None, trackers=[], step=0, steps=9) as log:
        log.say("hello")
        log.advance(3)
        log.log(3, METRICS)
    assert said.getvalue() == ""
    assert not list(tmp_path.iterdir())


def test_trackers_are_closed_after_an_error(tmp_path: Path) -> None:
    tracker = FakeTracker()
    log = RunLog(Console(file=io.StringIO()), folder=tmp_path, trackers=[tracker], step=0, steps=9)
    with pytest.raises(StreamError), log:
        raise StreamError("broken")
    assert tracker.closed


def test_evaluations_are_shown_by_their_ratio() -> None:
    assert describe({"eval/action_error_ratio": 0.5}) == "held-out error 0.500 of the mean's"
