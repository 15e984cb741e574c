"""What a command line does in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence


def imported_by(arguments: Sequence[str], modules: Sequence[str]) -> set[str]:
    """Run a command line in a fresh process.

    Args:
        arguments: What stands behind ``lerobot-stream``.
        modules: Names to look for.

    Returns:
        Those that the process had imported at its end.
    """
    code = (
        "import sys\n"
        "from lerobot_stream.cli.app import COMMANDS\n"
        "from lerobot_stream.cli.main import run\n"
        f"run('lerobot-stream', list(COMMANDS), {list(arguments)!r})\n"
        f"found = [name for name in {list(modules)!r} if name in sys.modules]\n"
        "print('imported:', *found, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stderr.splitlines()[-1].removeprefix("imported:").split())
