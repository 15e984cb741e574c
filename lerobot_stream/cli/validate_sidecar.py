"""``validate-sidecar``: everything that is wrong with a sidecar."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lerobot_stream.cli.address import AsJson, RepoType, Revision, Root, open_address

if TYPE_CHECKING:
    from lerobot_stream.sidecar.validate import Problem


def command(
    file: Annotated[Path, typer.Argument(help="The sidecar, an .npz file.", show_default=False)],
    repo_id: Annotated[
        str | None,
        typer.Option("--repo-id", help="The dataset it should describe.", show_default=False),
    ] = None,
    repo_type: RepoType = "dataset",
    revision: Revision = None,
    root: Root = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read every movie box again and compare all arrays.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a sidecar: its structure and, with --repo-id, whether it fits the dataset as it is.

    Prints every problem. Exit code 0 means valid, 1 that there are problems or that the dataset
    cannot be read.
    """
    if repo_id is None and (root or revision or deep):
        raise ValueError("--root, --revision and --deep need --repo-id")
    from lerobot_stream.sidecar.validate import validate_sidecar

    source, paths = None, None
    if repo_id is not None:
        from lerobot_stream.inspect.indexing import read_video_paths

        source = open_address(repo_id, root=root, revision=revision, repo_type=repo_type)
        paths = read_video_paths(source)
    problems = validate_sidecar(file, source, paths=paths, recheck=deep)
    if as_json:
        typer.echo(
            json.dumps({"valid": not problems, "problems": [asdict(p) for p in problems]}, indent=2)
        )
    else:
        _show(file, problems, checked=repo_id)
    if problems:
        raise typer.Exit(1)


def _show(file: Path, problems: list[Problem], *, checked: str | None) -> None:
    console = Console(highlight=False)
    if not problems:
        about = f"it describes {checked} as it is" if checked else "its structure is right"
        console.print(Text.assemble(("valid", "bold green"), f": {file}: {about}"), soft_wrap=True)
        return
    table = Table(title=f"{len(problems)} problems", title_justify="left")
    for heading in ("file", "place", "expected", "found"):
        table.add_column(heading, overflow="fold")
    for problem in problems:
        row = (problem.file, problem.place, problem.expected, problem.found)
        table.add_row(*map(Text, row))
    console.print(table)
