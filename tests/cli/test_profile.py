"""Profiling from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lerobot_stream.cli.app import COMMANDS
from lerobot_stream.cli.main import run
from tests.cli.processes import imported_by
from tests.lerobot import Camera, Written, write_dataset
from tests.media import encode

TOP = "observation.images.top"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    camera = Camera(lambda path, numbers: encode(path, numbers), width=96)
    root: Path = tmp_path_factory.mktemp("profile") / "set"
    return write_dataset(root, lengths=[20, 30, 25], cameras={TOP: camera})


def profile(written: Written, *flags: str) -> int:
    address = ["--repo-id=local/arm", f"--root={written.root}", "--batches=10", "--batch-size=4"]
    return run("lerobot-stream", list(COMMANDS), ["profile", *address, *flags])


def test_a_profile_is_one_json_object(written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    assert profile(written, "--json", "--strategy=clip", "--limit") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["items"] == 40
    assert told["limit"]["pictures_per_s"] > 0


def test_people_see_rates_waits_bytes_mixing_and_a_plot(
    written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    assert profile(written) == 0
    shown = capsys.readouterr().out
    for word in ("items", "p95", "for network", "requests", "reserved", "effective", "over time"):
        assert word in shown
    assert "decode limit" not in shown
    assert "█" in shown


def test_windows_are_read_from_json(written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    window = f'--delta-timestamps={{"{TOP}": [-0.1, 0]}}'
    assert profile(written, "--json", "--strategy=clip", window) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["open_bytes"] % (2 * 64 * 96 * 3) == 0


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--delta-timestamps=x", "error: --delta-timestamps: wanted a JSON object"),
        ('--delta-timestamps={"nothing": [0]}', "no feature 'nothing'"),
        ("--strategy=fast", "--strategy must be one of remaining, round_robin, clip"),
        ("--byte-budget-gb=-1", "--byte-budget-gb must be above 0"),
        ("--episodes=none", "--episodes: wanted a count or a list"),
    ],
)
def test_wrong_flags_are_named(
    written: Written, flag: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert profile(written, flag) == 2
    assert message in capsys.readouterr().err


def test_help_does_not_wait_for_torch() -> None:
    assert imported_by(["profile", "--help"], ["torch"]) == set()
