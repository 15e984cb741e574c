"""A run from a slow Hub beside the same run from a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from tests.benchmarks.once import profile

LATENCY_MS, MB_PER_S = 60, 50
_REPO = "bench/mark"


def slow_hub_figures(root: Path, *, strategy: str, batches: int, pairs: int) -> dict[str, Any]:
    """Stream a dataset from a folder and from a Hub, in turn.

    Args:
        root: The dataset's folder.
        strategy: How frames are mixed.
        batches: Batches of 64 a run.
        pairs: How many runs of each.

    Returns:
        Medians: seconds from the first batch to the last, their ratio, seconds to the first
        batch; and what the last run fetched.
    """
    flags = [f"--strategy={strategy}", "--batch-size=64", f"--batches={batches}"]
    folder, hub = [], []
    with _slow_hub(root) as environment:
        for _ in range(pairs):
            folder.append(profile([f"--root={root}", *flags]))
            hub.append(profile(flags, environment=environment))
    ratios = [_rest(far) / _rest(near) for near, far in zip(folder, hub, strict=True)]
    return {
        "folder_s": median(_rest(told) for told in folder),
        "hub_s": median(_rest(told) for told in hub),
        "ratio": median(ratios),
        "folder_first_s": median(told["first_batch_s"] for told in folder),
        "hub_first_s": median(told["first_batch_s"] for told in hub),
        "hub_network_share": median(told["waiting_shares"]["network"] for told in hub),
        **{name: hub[-1][name] for name in ("requests", "fetched_bytes", "wanted_bytes")},
    }


def _rest(told: Mapping[str, Any]) -> float:
    """Seconds from the first batch to the last."""
    return float(told["run_s"] - told["first_batch_s"])


@contextmanager
def _slow_hub(root: Path) -> Iterator[dict[str, str]]:
    """Serve a dataset from a process of its own; yields what its readers' environment needs."""
    command = [sys.executable, "-m", "tests.hub", f"--dataset={_REPO}={root}"]
    rates = [f"--latency-ms={LATENCY_MS}", f"--mb-per-s={MB_PER_S}"]
    with subprocess.Popen(
        [*command, *rates], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        if server.stdin is None or server.stdout is None:
            raise RuntimeError("the server has no pipes")
        url = server.stdout.readline().strip()
        if not url:
            raise RuntimeError("the server did not start")
        yield {
            **os.environ,
            "HF_ENDPOINT": url,
            "HF_HUB_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "NO_PROXY": "127.0.0.1,localhost",
        }
