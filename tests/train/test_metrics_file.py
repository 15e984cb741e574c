from __future__ import annotations

import json
from pathlib import Path

import pytest

from lerobot_stream.errors import CheckpointError
from lerobot_stream.train.metrics_file import append_metrics, drop_later_metrics


def steps(path: Path) -> list[int]:
    return [json.loads(line)["step"] for line in path.read_text().splitlines()]


def test_a_resumed_run_continues_the_file(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    for step in (2, 4, 6):
        append_metrics(path, step, {"loss": 1.0})
    with path.open("a") as file:
        file.write('{"step": 8, "lo')
    drop_later_metrics(path, 4)
    append_metrics(path, 6, {"loss": 0.5})
    assert steps(path) == [2, 4, 6]
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_file_stays_missing(tmp_path: Path) -> None:
    drop_later_metrics(tmp_path / "metrics.jsonl", 4)
    assert not list(tmp_path.iterdir())


def test_what_the_disk_damaged_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 2}\n{"step": \xff\n')
    drop_later_metrics(path, 4)
    assert steps(path) == [2]


def test_what_the_disk_refuses_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be written"):
        append_metrics(tmp_path / "gone" / "metrics.jsonl", 1, {})
