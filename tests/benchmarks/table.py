"""The measurements as tables in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.benchmarks.datasets import ENCODINGS
from tests.benchmarks.grid import WAYS, Cell
from tests.benchmarks.network import LATENCY_MS, MB_PER_S
from tests.benchmarks.pairs import Standing

Measured = Mapping[Cell, Standing]


def speed_table(measured: Measured) -> str:
    """Each way's pictures a second as a share of the limit, and how many times map-style's that is.

    Args:
        measured: What was measured.
    """
    ways = [way for way in WAYS if any(cell.way == way for cell in measured)]
    rows = [["video", "cameras", "workers", "limit, pictures/s", *ways]]
    places = dict.fromkeys(
        (cell.encoding, cell.cameras, cell.workers) for cell in measured if cell.way != "map-style"
    )
    for encoding, cameras, workers in places:
        here = {way: Cell(encoding, cameras, workers, way) for way in ways}
        map_style = measured.get(Cell(encoding, cameras, 0, "map-style"))
        standings = [measured[cell] for cell in here.values() if cell in measured]
        limit = sorted(standing.limit for standing in standings)[len(standings) // 2]
        texts = [
            _text(measured.get(cell), map_style) if way != "map-style" else _alone(map_style)
            for way, cell in here.items()
        ]
        title = ENCODINGS[encoding].title
        rows.append([title, str(cameras), str(workers), f"{limit:,.0f}", *texts])
    return markdown(rows)


def _text(standing: Standing | None, map_style: Standing | None) -> str:
    if standing is None:
        return ""
    share = f"{standing.of_limit:.2f}"
    if standing.decoded_each > 1.005:
        share += f" (decodes {standing.decoded_each:.2f} each)"
    return share + (f", {standing.of_limit / map_style.of_limit:.1f}×" if map_style else "")


def _alone(standing: Standing | None) -> str:
    return "" if standing is None else f"{standing.of_limit:.2f}"


def run_table(profiles: Mapping[str, Mapping[str, Any]]) -> str:
    """Memory, waits and mixing of one run of each strategy."""
    rows = [
        [
            "strategy",
            "first batch",
            "batch wait p50 / p95 / p99",
            "peak memory",
            "decoded pictures held",
            "effective episodes (worst)",
            "near neighbours",
        ]
    ]
    for strategy, told in profiles.items():
        waits = " / ".join(f"{1000 * told['wait_s'][name]:.0f}" for name in ("p50", "p95", "p99"))
        kind = "pss" if "pss_bytes" in told else "rss"
        mixing = told["mixing"]
        rows.append(
            [
                strategy,
                f"{told['first_batch_s']:.2f} s",
                f"{waits} ms",
                f"{told[f'{kind}_bytes'] / 1e9:.2f} GB {kind.upper()}",
                f"{told['open_bytes'] / 1e9:.2f} GB",
                f"{mixing['effective_episodes']:.1f} ({mixing['worst_effective_episodes']:.1f})",
                f"{mixing['near_neighbours']:.1%}",
            ]
        )
    return markdown(rows)


def network_table(figures: Mapping[str, Mapping[str, float]]) -> str:
    """A run from a slow Hub beside the same run from a folder."""
    rows = [
        [
            f"from a Hub with {LATENCY_MS} ms and {MB_PER_S} MB/s a connection",
            "first batch (folder)",
            "the batches after it (folder)",
            "ratio",
            "waiting for the network",
            "fetched / needed for pictures",
            "requests",
        ]
    ]
    for strategy, told in figures.items():
        rows.append(
            [
                strategy,
                f"{told['hub_first_s']:.2f} s ({told['folder_first_s']:.2f} s)",
                f"{told['hub_s']:.2f} s ({told['folder_s']:.2f} s)",
                f"{told['ratio']:.2f}",
                f"{told['hub_network_share']:.1%}",
                f"{told['fetched_bytes'] / 1e6:.1f} / {told['wanted_bytes'] / 1e6:.1f} MB",
                f"{told['requests']:.0f}",
            ]
        )
    return markdown(rows)


def planning_table(figures: Mapping[str, Mapping[str, float]]) -> str:
    """Seconds and memory of planning, a row a strategy."""
    names = [name for name in next(iter(figures.values())) if name != "peak_bytes"]
    rows = [["strategy", *names, "peak memory"]]
    for strategy, told in figures.items():
        seconds = [f"{told[name]:.2f} s" for name in names]
        rows.append([strategy, *seconds, f"{told['peak_bytes'] / 1e9:.2f} GB"])
    return markdown(rows)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table; the first row is its heading."""
    heading, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([heading, "|" + " --- |" * len(rows[0]), *body])
