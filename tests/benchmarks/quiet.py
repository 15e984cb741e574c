"""When a stream has nothing left to do: its processes have stopped taking CPU time."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

_STEP_S = 0.02
_STILL_S = 0.16
_STILL_SHARE = 0.08
"""Share of one core that counts as nothing."""


def wait_until_quiet() -> float:
    """Wait until this process and its workers do nothing for a while.

    Returns:
        The time of ``perf_counter`` at which they stopped.
    """
    looks = [(time.perf_counter(), cpu_seconds())]
    while True:
        time.sleep(_STEP_S)
        now = time.perf_counter(), cpu_seconds()
        looks = [look for look in looks if now[0] - look[0] <= _STILL_S + 2 * _STEP_S] + [now]
        passed, used = now[0] - looks[0][0], now[1] - looks[0][1]
        if passed >= _STILL_S and used <= _STILL_SHARE * passed:
            return looks[0][0]


def cpu_seconds() -> float:
    """CPU seconds of this process and its workers so far."""
    return time.process_time() + sum(
        _cpu_s_of(child.pid) for child in multiprocessing.active_children() if child.pid
    )


def _cpu_s_of(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
