"""Commands whose output is closed, full, or of an encoding that lacks letters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lerobot import write_dataset

ROOT = Path(__file__).parents[2]
MAIN = "from lerobot_stream.cli.main import main; main()"


def inspect(root: Path, redirection: str, **env: str) -> subprocess.CompletedProcess[str]:
    write_dataset(root, lengths=[2])
    command = f'exec "$0" -c "$1" inspect-episodes --repo-id=local/x --root="$2" {redirection}'
    return subprocess.run(
        ["sh", "-c", command, sys.executable, MAIN, root],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        cwd=ROOT,
        env={**os.environ, **env},
    )


def test_a_closed_output_is_no_fault(tmp_path: Path) -> None:
    done = inspect(tmp_path / "set", ">&-")
    assert "Traceback" not in done.stderr
    assert done.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_output_is_one_line(tmp_path: Path) -> None:
    done = inspect(tmp_path / "set", ">/dev/full")
    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert errors == ["error: the output cannot be written: No space left on device"]
    assert "Traceback" not in done.stderr


def test_letters_that_a_terminal_lacks_are_written_otherwise(tmp_path: Path) -> None:
    done = inspect(tmp_path / "ünï", "", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert r"\xfcn\xef" in done.stdout
