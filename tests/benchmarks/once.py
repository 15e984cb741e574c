"""Figures that need no pairs: memory and waits of a run, planning, the build of a sidecar."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lerobot_stream.dataset.metadata import read_metadata
from lerobot_stream.sidecar.build import build_sidecar
from lerobot_stream.source.open import open_source

_PROGRAM = "from lerobot_stream.cli.main import main; main()"


def profile(
    flags: Sequence[str], *, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run ``lerobot-stream profile`` in a process of its own."""
    command = ["-c", _PROGRAM, "profile", "--repo-id=bench/mark", "--json", *flags]
    return _run(command, environment)


def planning(strategy: str) -> dict[str, Any]:
    """Plan a very large dataset in a process of its own."""
    return _run(["-m", "tests.benchmarks.planning", strategy], None)


def sidecar_build(root: Path) -> dict[str, Any]:
    """Requests and bytes that the index of a dataset's videos takes."""
    source = open_source("bench/mark", root=root)
    table = read_metadata(source).episodes
    paths = sorted({path for paths in table.video_paths.values() for path in paths})
    requests, size = source.count.requests, source.count.bytes
    with tempfile.TemporaryDirectory() as folder:
        build_sidecar(source, paths, output=Path(folder) / "sidecar.npz")
    return {
        "files": len(paths),
        "requests": source.count.requests - requests,
        "bytes": source.count.bytes - size,
        "video_bytes": sum((root / path).stat().st_size for path in paths),
    }


def _run(arguments: Sequence[str], environment: Mapping[str, str] | None) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}:\n{done.stderr}")
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures
