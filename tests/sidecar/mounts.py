"""Folders that are full or cannot be written, for one process alone."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

_MOUNT = 'mount -t tmpfs -o "$1" tmpfs "$2" || exit 99; shift 2; exec "$@"'
_REFUSED = 99


def in_small_folder(
    folder: Path,
    options: str,
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a command that sees an empty file system of its own at a folder.

    The test is skipped where this user may not mount anything.

    Args:
        folder: Where; it is made, and for everyone else it stays as it is.
        options: Of the file system: ``size=4k`` or ``ro``.
        command: What to run.
        environment: Its environment; None for this process's.

    Returns:
        What it printed, to stdout and stderr.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shell = ["unshare", "--mount", "--map-root-user", "sh", "-c", _MOUNT, "sh"]
    try:
        done = subprocess.run(
            [*shell, options, str(folder), *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            cwd=Path(__file__).parents[2],
            env=environment,
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if done.returncode == _REFUSED or done.stdout.startswith("unshare: "):
        pytest.skip(f"nothing may be mounted here: {done.stdout.strip()}")
    return done.stdout
