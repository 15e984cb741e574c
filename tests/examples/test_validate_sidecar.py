"""The workflow for a dataset's continuous integration holds commands that there are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from lerobot_stream.cli.app import COMMANDS
from lerobot_stream.cli.main import run

WORKFLOW = Path(__file__).parents[2] / "examples/validate-sidecar.yml"


@pytest.fixture(scope="module")
def steps() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(WORKFLOW.read_text())["jobs"]["validate"]["steps"]
    return found


def test_every_command_and_flag_exists(
    steps: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    text = "\n".join(step.get("run", "") for step in steps).replace("\\\n", " ")
    calls = re.findall(r"lerobot-stream ([a-z-]+)([^|)\n]*)", text)
    assert [command for command, _ in calls] == ["build-sidecar", "validate-sidecar"]
    for command, arguments in calls:
        assert run("lerobot-stream", list(COMMANDS), [command, "--help"]) == 0
        shown = capsys.readouterr().out
        flags = re.findall(r"--[a-z-]+", arguments)
        assert flags
        assert all(flag in shown for flag in flags)


def test_nothing_is_published(steps: list[dict[str, Any]]) -> None:
    text = "\n".join(step.get("run", "") for step in steps)
    assert "publish" not in text
    assert "--push" not in text


def test_a_failing_check_fails_the_job_though_its_answer_is_kept(
    steps: list[dict[str, Any]],
) -> None:
    (check,) = [step for step in steps if "validate-sidecar" in step.get("run", "")]
    assert check["shell"] == "bash"  # which sets pipefail, so that tee does not hide the exit code
