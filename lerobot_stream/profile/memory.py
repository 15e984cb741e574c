"""How much memory a process and its workers take."""

from __future__ import annotations

import multiprocessing
import resource
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Memory of this process and its children."""

    size: int
    """Bytes."""
    kind: Literal["pss", "rss"]
    """``pss``: now, pages shared by processes counted once. ``rss``: the peak so far, shared pages
    counted for each process, where the system does not tell more."""


def read_memory() -> MemoryUse:
    """Memory of this process and of the worker processes that it has started."""
    pids = ["self", *(str(child.pid) for child in multiprocessing.active_children())]
    try:
        return MemoryUse(sum(_pss(pid) for pid in pids), "pss")
    except (OSError, StopIteration):
        unit = 1 if sys.platform == "darwin" else 1024
        who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        return MemoryUse(sum(resource.getrusage(one).ru_maxrss for one in who) * unit, "rss")


def _pss(pid: str) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    line = next(line for line in lines if line.startswith("Pss:"))
    return int(line.split()[1]) * 1024
