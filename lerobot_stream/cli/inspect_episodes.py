"""``inspect-episodes``: see a dataset before training on it."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lerobot_stream.cli.address import AsJson, RepoId, RepoType, Revision, Root, open_address
from lerobot_stream.cli.progress import format_bytes, show_progress

if TYPE_CHECKING:
    from lerobot_stream.inspect.summary import CameraOfEpisode, EpisodeSummary, Summary

_STYLES = {"error": "bold red", "warning": "yellow"}


def command(
    repo_id: RepoId,
    repo_type: RepoType = "dataset",
    revision: Revision = None,
    root: Root = None,
    as_json: AsJson = False,
) -> None:
    """Show a dataset, its episodes, and what is wrong with them.

    Reads the metadata, the footers of data files and the movie boxes of videos: no row and no
    picture. Exit code 1 means that some episode cannot be read.
    """
    source = open_address(repo_id, root=root, revision=revision, repo_type=repo_type)
    from lerobot_stream.inspect.summary import inspect_dataset

    # What the library warns of is a finding here.
    logging.getLogger("lerobot_stream").setLevel(logging.ERROR)
    with show_progress(Console(stderr=True)) as progress:
        summary = inspect_dataset(source, progress=progress)
    if as_json:
        typer.echo(json.dumps(_to_json(summary), indent=2))
    else:
        _show(summary, Console(highlight=False))
    if summary.has_errors:
        raise typer.Exit(1)


def _show(summary: Summary, console: Console) -> None:
    console.print(_overview(summary))
    console.print(_episode_table(summary))
    for finding in summary.findings:
        label = Text(finding.severity, style=_STYLES[finding.severity])
        console.print(Text.assemble(label, f": {finding}"), soft_wrap=True)
    if not summary.findings:
        console.print(Text("nothing wrong was found", style="green"))


def _overview(summary: Summary) -> Table:
    info, identity = summary.info, summary.identity
    table = Table.grid(padding=(0, 2))
    hours = summary.num_frames / info.fps / 3600
    table.add_row("dataset", Text(f"{identity.repo_id} ({identity.revision})"))
    table.add_row("place", Text(identity.data_root))
    table.add_row(
        "episodes",
        f"{len(summary.episodes)} with {summary.num_frames} frames at {info.fps:g} per second, "
        f"{_duration(hours)}",
    )
    tasks = _tasks(summary)
    table.add_row("task", Text(tasks[0] if len(tasks) == 1 else f"{len(tasks)} different ones"))
    table.add_row("rows", format_bytes(summary.rows_bytes))
    for camera in summary.cameras:
        size = f"{camera.width}×{camera.height} " if camera.width else ""
        about = f"{size}{camera.codec or 'unreadable'}, {format_bytes(camera.size)}"
        table.add_row(Text(camera.video_key), f"{about} in {camera.num_files} files")
    return table


def _tasks(summary: Summary) -> list[str]:
    return list(dict.fromkeys("; ".join(episode.tasks) for episode in summary.episodes))


def _duration(hours: float) -> str:
    return f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.1f} minutes"


def _episode_table(summary: Summary) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    several = len(_tasks(summary)) > 1
    for heading in ("episode", "frames"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("rows", *(_short(camera.video_key) for camera in summary.cameras)):
        table.add_column(heading, no_wrap=True)
    for heading in ("video", "drift"):
        table.add_column(heading, justify="right", no_wrap=True)
    if several:
        table.add_column("task")
    for episode in summary.episodes:
        bad = any(finding.severity == "error" for finding in episode.findings)
        table.add_row(
            str(episode.episode_index),
            str(episode.length),
            Text(_file(episode.rows_path)),
            *(Text(_view(view)) for view in episode.cameras),
            format_bytes(sum(view.size for view in episode.cameras)),
            _worst_drift(episode),
            *([Text("; ".join(episode.tasks))] if several else []),
            style=_STYLES["error"] if bad else None,
        )
    return table


def _short(key: str) -> str:
    return key.rsplit(".", 1)[-1]


def _file(path: str) -> str:
    """The last two parts, which tell the files of one kind apart: ``000/004``."""
    if not path:
        return "none"
    names = path.rsplit(".", 1)[0].split("/")[-2:]
    return "/".join(name.removeprefix("chunk-").removeprefix("file-") for name in names)


def _view(view: CameraOfEpisode) -> str:
    if view.first_frame < 0:
        return f"{_file(view.path)} ?"
    return f"{_file(view.path)} @{view.first_frame}"


def _worst_drift(episode: EpisodeSummary) -> str:
    drifts = [view.drift_s for view in episode.cameras if view.drift_s is not None]
    return f"{1000 * max(drifts):.1f} ms" if drifts else ""


def _to_json(summary: Summary) -> dict[str, Any]:
    from dataclasses import asdict

    info = summary.info
    return {
        "repo_id": summary.identity.repo_id,
        "revision": summary.identity.revision,
        "data_root": summary.identity.data_root,
        "codebase_version": info.codebase_version,
        "robot_type": info.robot_type,
        "fps": info.fps,
        "num_episodes": len(summary.episodes),
        "num_frames": summary.num_frames,
        "rows_bytes": summary.rows_bytes,
        "cameras": [asdict(camera) for camera in summary.cameras],
        "episodes": [asdict(episode) for episode in summary.episodes],
        "findings": [asdict(finding) for finding in summary.findings],
    }
