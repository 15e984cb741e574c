"""``metrics.jsonl``: the metrics of a run, one JSON object a line, each with its step."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from lerobot_stream.train.checkpoint import disk_faults

METRICS = "metrics.jsonl"
"""Its name in the output folder."""


def append_metrics(path: Path, step: int, metrics: Mapping[str, float]) -> None:
    """Add the metrics of a step.

    Args:
        path: The file; it is made if it is not there.
        step: The step.
        metrics: Numbers by name.

    Raises:
        CheckpointError: The disk does not take it.
    """
    with disk_faults(path), path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"step": step, **metrics}) + "\n")


def drop_later_metrics(path: Path, step: int) -> None:
    """Remove lines of steps that a resumed run makes again, and a torn last line.

    Args:
        path: ``metrics.jsonl``; it need not be there.
        step: The last step to keep.

    Raises:
        CheckpointError: The disk does not take it.
    """
    if not path.is_file():
        return
    kept = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            if json.loads(line)["step"] > step:
                continue
        except (ValueError, KeyError, TypeError):
            continue
        kept.append(line + "\n")
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    with disk_faults(path):
        temporary.write_text("".join(kept), encoding="utf-8")
        temporary.replace(path)
