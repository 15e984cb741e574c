"""A summary of a dataset on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lerobot_stream.cli.progress import format_bytes
from lerobot_stream.counted import counted
from lerobot_stream.dataset.holders import format_numbers

if TYPE_CHECKING:
    from lerobot_stream.inspect.cameras import CameraSummary
    from lerobot_stream.inspect.finding import Finding, Group
    from lerobot_stream.inspect.summary import Summary


STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}
_SHOWN_FINDINGS = 3
"""Findings of a group that are written out."""
_BINS, _BAR = 10, 40
_EIGHTHS = " ▏▎▍▌▋▊▉"


def overview(summary: Summary, cameras: Sequence[CameraSummary]) -> Table:
    """Name, extent, bytes and cameras."""
    info, identity, table = summary.info, summary.identity, summary.table
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_row("dataset", Text(f"{identity.repo_id} ({identity.revision})"))
    grid.add_row("place", Text(identity.data_root))
    robot = f", {info.robot_type}" if info.robot_type else ""
    grid.add_row("format", Text(f"LeRobotDataset {info.codebase_version}{robot}"))
    extent = f"{len(table)} with {counted(summary.num_frames, 'frame')} at {info.fps:g} per second"
    grid.add_row("episodes", f"{extent}, {_duration(summary.num_frames / info.fps)}")
    tasks = list(dict.fromkeys("; ".join(texts) for texts in table.tasks))
    if tasks:
        grid.add_row("task", Text(tasks[0] if len(tasks) == 1 else f"{len(tasks)} different ones"))
    grid.add_row("rows", _rows(summary))
    for camera in cameras:
        grid.add_row(Text(camera.video_key), _camera(camera))
    drift = _drift(summary)
    if drift:
        grid.add_row("drift", drift)
    return grid


def _rows(summary: Summary) -> str:
    rows, videos = summary.rows_bytes, summary.video_bytes
    text = format_bytes(rows)
    if rows and videos:
        text += f", {videos / rows:.3g} times as much video"
    if summary.values is not None and not summary.values.complete:
        text += f"; {counted(summary.values.num_rows, 'row')} looked at, --deep reads all"
    return text


def _camera(camera: CameraSummary) -> str:
    size = f"{camera.width}×{camera.height}" if camera.width else "unknown size"
    if camera.stored == "image":
        return f"{size} images inside the rows"
    parts = [f"{size} {camera.codec or ''}".rstrip()]
    if camera.gop:
        longest = f" (up to {camera.longest_gop})" if camera.longest_gop != camera.gop else ""
        parts.append(f"GOP {camera.gop}{longest}")
    parts.append(f"{format_bytes(camera.bytes)} in {counted(camera.num_files, 'file')}")
    return ", ".join(parts)


def _drift(summary: Summary) -> str:
    drift = summary.drift_s()
    known = drift[np.isfinite(drift)]
    if not len(known):
        return ""
    middle, most, worst = (1000 * np.quantile(known, q) for q in (0.5, 0.95, 1))
    return f"median {middle:.1f} ms, 95 % of episodes {most:.1f} ms, worst {worst:.1f} ms"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} seconds"
    return f"{seconds / 60:.1f} minutes" if seconds < 3600 else f"{seconds / 3600:.1f} hours"


def length_histogram(lengths: Sequence[int]) -> Text:
    """Episodes by length, a bar a line."""
    if not lengths:
        return Text()
    low, high = min(lengths), max(lengths)
    if low == high:
        return Text(f"every episode has {counted(low, 'frame')}\n")
    width = -(-(high - low + 1) // _BINS)
    starts = list(range(low, high + 1, width))
    counts = np.bincount((np.array(lengths) - low) // width, minlength=len(starts)).tolist()
    labels = [
        f"{start}–{min(start + width - 1, high)}" if width > 1 else f"{start}" for start in starts
    ]
    text, pad = Text("frames an episode\n", style="dim"), max(map(len, labels))
    for label, count in zip(labels, counts, strict=True):
        eighths = -(-8 * _BAR * count // max(counts))
        bar = "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
        text.append(f"{label:>{pad}} ", style="dim")
        text.append(bar, style="blue")
        text.append(f" {count}\n" if count else "\n")
    return text


def order_episodes(summary: Summary, numbers: Sequence[int], order: str) -> list[int]:
    """Sort rows of the episode table by ``episode``, or largest length, bytes or drift first."""
    if order == "episode":
        return list(numbers)
    columns = {
        "length": summary.table.length.astype(float),
        "bytes": summary.episode_bytes().astype(float),
        "drift": np.nan_to_num(summary.drift_s(), nan=-1.0),
    }
    chosen = np.asarray(numbers, np.int64)
    ranked: list[int] = chosen[np.argsort(-columns[order][chosen], kind="stable")].tolist()
    return ranked


def episode_table(summary: Summary, numbers: Sequence[int], severities: dict[int, str]) -> Table:
    """One line an episode: where it lies, its bytes, its drift, its worst finding."""
    table, spans = summary.table, summary.videos.spans if summary.videos else None
    keys = summary.info.video_keys
    several = len(set(table.tasks)) > 1
    size, drift = summary.episode_bytes(), summary.drift_s()
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("episode", "frames"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for heading in ("rows", *(key.rsplit(".", 1)[-1] for key in keys)):
        shown.add_column(heading, no_wrap=True)
    for heading in ("bytes", "drift"):
        shown.add_column(heading, justify="right", no_wrap=True)
    if several:
        shown.add_column("task")
    for number in numbers:
        episode = int(table.episode_index[number])
        views = []
        for camera, key in enumerate(keys):
            place = _file(table.video_paths[key], int(table.video_file[key][number]))
            if spans is not None:
                first = int(spans.first_frame[number, camera])
                place += f" @{first}" if first >= 0 else " ?"
            views.append(Text(place))
        severity = severities.get(episode)
        shown.add_row(
            str(episode),
            str(table.length[number]),
            Text(_file(table.data_paths, int(table.data_file[number]))),
            *views,
            format_bytes(int(size[number])) if size[number] else "",
            f"{1000 * drift[number]:.1f} ms" if np.isfinite(drift[number]) else "",
            *([Text("; ".join(table.tasks[number]))] if several else []),
            style=STYLES[severity] if severity in ("error", "warning") else None,
        )
    return shown


def _file(paths: Sequence[str], number: int) -> str:
    """The last two parts, which tell the files of one kind apart: ``000/004``."""
    if number < 0:
        return "none"
    names = paths[number].rsplit(".", 1)[0].split("/")[-2:]
    return "/".join(name.removeprefix("chunk-").removeprefix("file-") for name in names)


def show_findings(groups: Iterable[Group], num_episodes: int, console: Console) -> None:
    """A line for a lone finding; for several a headline, the first of them, and the rest counted.

    Args:
        groups: What was found.
        num_episodes: Episodes of the dataset.
        console: Where to show it.
    """
    for group in groups:
        label = Text(group.kind.severity, style=STYLES[group.kind.severity])
        if len(group.findings) == 1:
            console.print(Text.assemble(label, f": {group.findings[0]}"), soft_wrap=True)
        else:
            headline = group.describe(num_episodes)
            console.print(Text.assemble(label, f": {headline}"), soft_wrap=True)
            for finding in group.findings[:_SHOWN_FINDINGS]:
                console.print(Text(f"  {finding}"), soft_wrap=True)
            _show_rest(group.findings, group.episodes, console)
        for hint in group.hints:
            console.print(Text(f"  → {hint}", style="dim"), soft_wrap=True)


def _show_rest(findings: Sequence[Finding], episodes: tuple[int, ...], console: Console) -> None:
    left = len(findings) - _SHOWN_FINDINGS
    if left > 0:
        plural = "s" if len(episodes) > 1 else ""
        named = f"; episode{plural} {_clipped(format_numbers(list(episodes)))}" if episodes else ""
        console.print(Text(f"  and {left} more{named}"), soft_wrap=True)


def _clipped(text: str, most: int = 120) -> str:
    return text if len(text) <= most else text[:most].rsplit(",", 1)[0] + ", …"
