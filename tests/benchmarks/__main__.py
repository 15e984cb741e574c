"""``python -m tests.benchmarks``: measure everything and print it as tables."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

ROOT = Path(__file__).parents[2]
FAR_BATCHES = 200
"""Batches of 64 that are taken from the slow Hub, a quarter of an epoch."""
STRATEGIES = ("remaining", "round_robin", "clip")
PRELOADED = ["torch", "torchcodec.decoders", "lerobot_stream.stream.worker"]


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="WORD",
        help="cells whose name holds every WORD, e.g. --only h264-g30 --only 0w/clip; "
        "or run, network, planning, sidecar",
    )
    parser.add_argument("--quick", action="store_true", help="a few cells, in under 3 minutes")
    parser.add_argument("--list", action="store_true", help="print the names of the cells")
    parser.add_argument(
        "--pairs", type=int, help="pairs a cell (5; quick: 3); twice that for clip by threads"
    )
    parser.add_argument(
        "--slice-s", type=float, help="seconds a slice (2; quick: 0.5); also twice for clip"
    )
    parser.add_argument("--work-dir", type=Path, default=ROOT / ".bench", help="for datasets")
    options = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True, markup=False)
    # Sidecars of what is encoded here are nobody else's business.
    os.environ["HF_LEROBOT_HOME"] = str(options.work_dir / "home")
    _run(options, console)


def _run(options: argparse.Namespace, console: Console) -> None:
    from tests.benchmarks import network, once, table
    from tests.benchmarks.datasets import make_dataset
    from tests.benchmarks.footage import find_footage
    from tests.benchmarks.grid import CLOSER, Bench, all_cells, chosen, few_cells

    multiprocessing.set_forkserver_preload(PRELOADED)
    footage = find_footage()
    cells = chosen(list(few_cells() if options.quick else all_cells()), options.only)
    if options.list:
        console.print("\n".join(cell.name for cell in cells))
        return
    started = time.monotonic()
    pairs = options.pairs or (3 if options.quick else 5)
    slice_s = options.slice_s or (0.5 if options.quick else 2.0)
    bench = Bench(options.work_dir, footage, pairs=pairs, slice_s=slice_s)
    measured, results = {}, {}
    for number, cell in enumerate(cells, 1):
        standing = measured[cell] = bench.measure(cell)
        results[cell.name] = asdict(standing)
        console.print(
            f"{number:3} of {len(cells)}  {cell.name:34} {standing.of_limit:.2f} "
            f"({standing.lowest:.2f} to {standing.highest:.2f}) of {standing.limit:.0f}/s, "
            f"{standing.cpu_of_limit:.2f} by CPU time"
        )
    told: dict[str, Any] = {"cells": results}
    parts = [
        f"{footage.name}, {os.cpu_count()} cores, medians of {pairs} interleaved pairs, "
        f"for clip without workers of {CLOSER * pairs}."
    ]
    if measured:
        parts.append(table.speed_table(measured))
    strategies = ("clip",) if options.quick else STRATEGIES
    if _asked(options, "run"):
        root = make_dataset(options.work_dir, "h264-g30", footage, cameras=1)
        flags = ["--batch-size=64", "--batches=60", "--limit"]
        told["run"] = {
            name: once.profile([f"--root={root}", f"--strategy={name}", *flags])
            for name in strategies
        }
        parts.append(table.run_table(told["run"]))
    if _asked(options, "network"):
        root = make_dataset(options.work_dir, "h264-g30", footage, cameras=1)
        told["network"] = {
            name: network.slow_hub_figures(
                root, strategy=name, batches=FAR_BATCHES, pairs=1 if options.quick else 3
            )
            for name in ("remaining", "clip")
            if name in strategies
        }
        parts.append(table.network_table(told["network"]))
    if _asked(options, "planning"):
        told["planning"] = {name: once.planning(name) for name in strategies}
        parts.append(table.planning_table(told["planning"]))
    if _asked(options, "sidecar"):
        root = make_dataset(options.work_dir, "av1-g2", footage, cameras=1)
        build = told["sidecar"] = once.sidecar_build(root)
        parts.append(
            f"Building the sidecar of {build['files']} files takes {build['requests']} requests "
            f"and {build['bytes']:,} of {build['video_bytes']:,} bytes."
        )
    told |= {"machine": platform.processor(), "seconds": round(time.monotonic() - started)}
    text = "\n\n".join(parts)
    console.print(f"\n{text}\n\n{told['seconds']} s")
    (options.work_dir / "results.md").write_text(f"{text}\n")
    (options.work_dir / "results.json").write_text(json.dumps(told, indent=2))


def _asked(options: argparse.Namespace, name: str) -> bool:
    return not options.only or name in options.only


if __name__ == "__main__":
    main()
