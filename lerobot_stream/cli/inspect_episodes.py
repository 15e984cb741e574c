"""``inspect-episodes``: see a dataset before training on it."""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from lerobot_stream.cli.address import RepoId, RepoType, Revision, Root, open_address
from lerobot_stream.cli.episode_list import parse_episodes
from lerobot_stream.cli.progress import format_bytes, show_progress
from lerobot_stream.counted import counted
from lerobot_stream.errors import StreamError

if TYPE_CHECKING:
    from lerobot_stream.inspect.summary import Summary
    from lerobot_stream.source.base import Source

ORDERS = ("episode", "length", "bytes", "drift")
"""What the table of episodes can be sorted by."""
_PLAIN_WIDTH = 200
"""Columns where nobody watches on a terminal, so that nothing is cut off."""
_SHOWN_EPISODES = 40
"""Most lines of the table where no episodes were asked for."""


def command(
    repo_id: RepoId,
    repo_type: RepoType = "dataset",
    revision: Revision = None,
    root: Root = None,
    episodes: Annotated[
        str | None,
        typer.Option("--episodes", help="Show these: the first N, or 0-9,40.", show_default=False),
    ] = None,
    sort: Annotated[
        str, typer.Option("--sort", help="episode, or the largest length, bytes or drift first.")
    ] = "episode",
    findings_only: Annotated[
        bool, typer.Option("--findings-only", help="Show what was found and nothing else.")
    ] = False,
    metadata_only: Annotated[
        bool, typer.Option("--metadata-only", help="Read nothing of data and video files.")
    ] = False,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read all rows, and decode pictures of every camera.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="End with 1 on warnings too.")] = False,
    exclude_file: Annotated[
        Path | None,
        typer.Option(
            "--exclude-file",
            help="Write the episodes with errors, for --dataset.exclude_episodes=@FILE.",
            show_default=False,
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Write a page to look at, one file.", show_default=False),
    ] = None,
    max_thumbnails: Annotated[
        int, typer.Option("--max-thumbnails", min=0, help="Most pictures in that page.")
    ] = 900,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print one JSON object to stdout; its members are described in the README.",
        ),
    ] = False,
) -> None:
    """Show a dataset, its episodes, and what is wrong with them.

    Reads the metadata, the footers of data files, the movie boxes of videos, and rows as far as
    they are few (32 MB). Nothing is written to the dataset. Exit code 1 means that there are
    errors: episodes that cannot be read, or a dataset that is not all there.
    """
    if sort not in ORDERS:
        raise ValueError(f"--sort: wanted {', '.join(ORDERS)}, found {sort!r}")
    if metadata_only and deep:
        raise ValueError("--metadata-only and --deep exclude each other")
    chosen = None if episodes is None else parse_episodes(episodes)
    source = open_address(repo_id, root=root, revision=revision, repo_type=repo_type)
    for output in filter(None, (exclude_file, html)):
        _check_output(output, source)
    from lerobot_stream.inspect.json_report import describe_failure, write_json
    from lerobot_stream.inspect.page_plan import plan_drawn
    from lerobot_stream.inspect.summary import inspect_dataset

    # What the library warns of is a finding here.
    logging.getLogger("lerobot_stream").setLevel(logging.ERROR)
    started = time.monotonic()
    stderr = Console(stderr=True, highlight=False)
    try:
        with show_progress(stderr) as progress:
            summary = inspect_dataset(
                source,
                cost="metadata" if metadata_only else "deep" if deep else "probe",
                draw=plan_drawn if html else None,
                progress=progress,
            )
    except StreamError as error:
        if as_json:
            typer.echo(json.dumps(describe_failure(source.identity, error)))
        raise
    if as_json:
        for text in write_json(summary):
            sys.stdout.write(text)
    else:
        _show(summary, chosen, sort, findings_only=findings_only)
    if html:
        _write_page(summary, source, html, max_thumbnails, stderr)
    if exclude_file:
        _write_excluded(summary, exclude_file, stderr)
    took = f"{counted(source.count.requests, 'request')}, {format_bytes(source.count.bytes)}"
    stderr.print(f"read in {time.monotonic() - started:.1f} s: {took}", style="dim")
    if summary.has("error", *(["warning"] if strict else [])):
        raise typer.Exit(1)


def _check_output(output: Path, source: Source) -> None:
    """Nothing is written to the dataset, not even by mistake."""
    if output.is_dir():
        raise ValueError(f"{output} is a folder; name a file")
    root = Path(source.identity.data_root)
    if root.is_absolute() and output.resolve().is_relative_to(root):
        raise ValueError(f"{output} lies inside the dataset {root}")


def _show(summary: Summary, chosen: list[int] | None, sort: str, *, findings_only: bool) -> None:
    from lerobot_stream.cli import inspect_view
    from lerobot_stream.dataset.metadata import select_episodes
    from lerobot_stream.inspect.cameras import summarise_cameras
    from lerobot_stream.inspect.finding import group_findings
    from lerobot_stream.inspect.json_report import gravest

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _PLAIN_WIDTH
    numbers = select_episodes(summary.table, chosen, None).tolist()
    if not findings_only:
        console.print(inspect_view.overview(summary, summarise_cameras(summary)))
        console.print()
        console.print(inspect_view.length_histogram(summary.table.length.tolist()), end="")
        ordered = inspect_view.order_episodes(summary, numbers, sort)
        shown = ordered if chosen is not None else ordered[:_SHOWN_EPISODES]
        severities: dict[int, str] = {**gravest(summary.findings)}
        console.print(inspect_view.episode_table(summary, shown, severities))
        if len(shown) < len(ordered):
            left = len(ordered) - len(shown)
            console.print(Text(f"and {left} more; --episodes chooses, --json has all\n"))
    inspect_view.show_findings(group_findings(summary.findings), len(summary.table), console)
    if not summary.has("error", "warning"):
        console.print(Text("nothing wrong was found", style="green"))


def _write_page(
    summary: Summary, source: Source, path: Path, max_thumbnails: int, console: Console
) -> None:
    from lerobot_stream.inspect.page import make_page

    with console.status("decoding thumbnails"):
        page = make_page(summary, source, max_thumbnails=max_thumbnails)
    _write(path, page)
    size = format_bytes(path.stat().st_size)
    console.print(f"wrote {path}, {size}", markup=False, soft_wrap=True)


def _write_excluded(summary: Summary, path: Path, console: Console) -> None:
    from lerobot_stream.inspect.finding import lost_episodes

    lost = lost_episodes(summary.findings, summary.table.episode_index.tolist())
    _write(path, json.dumps(lost) + "\n")
    what = f"{len(lost)} of {counted(len(summary.table), 'episode')} cannot be read"
    advice = f"; leave them out with --dataset.exclude_episodes=@{path}" if lost else ""
    console.print(what + advice, markup=False, soft_wrap=True)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StreamError(
            f"cannot be written: {error.strerror or error}",
            path=str(path),
            hint="name a file in a folder that can be written and has space",
        ) from error
