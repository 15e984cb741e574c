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
from lerobot_stream.counted import counted
from lerobot_stream.errors import SidecarError, StreamError

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
        bool,
        typer.Option(
            "--deep", help="Compare every array with the videos, and sampled pictures too."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a sidecar: its structure and, with --repo-id, whether it fits the dataset as it is.

    Prints every problem. Exit code 0 means valid, 1 that there are problems, or that the dataset
    cannot be read, so that nothing was decided ("valid" is null then).
    """
    if repo_id is None and (root or revision or deep):
        raise ValueError("--root, --revision and --deep need --repo-id")
    if not as_json and not file.is_file():
        message = "is a folder, wanted an .npz file" if file.is_dir() else "no such file"
        raise SidecarError(message, path=str(file))
    from lerobot_stream.sidecar.validate import Undecided, undecided, validate_sidecar

    problems: list[Problem]
    try:
        if repo_id is None:
            problems = validate_sidecar(file, None)
        else:
            from lerobot_stream.inspect.sidecar_check import check_sidecar

            source = open_address(repo_id, root=root, revision=revision, repo_type=repo_type)
            problems = check_sidecar(file, source, deep=deep)
    except StreamError as error:
        if not as_json:
            error.add_note(f"nothing was decided about {file}")
            raise
        problems = [undecided(error, file=root or repo_id or str(file))]
    wrong = [problem for problem in problems if not isinstance(problem, Undecided)]
    if as_json:
        valid = False if wrong else (None if problems else True)
        typer.echo(
            json.dumps({"valid": valid, "problems": [asdict(p) for p in problems]}, indent=2)
        )
    else:
        _show(file, problems, num_wrong=len(wrong), checked=repo_id)
    if problems:
        raise typer.Exit(1)


def _show(file: Path, problems: list[Problem], *, num_wrong: int, checked: str | None) -> None:
    console = Console(highlight=False)
    if not problems:
        about = f"it describes {checked} as it is" if checked else "its structure is right"
        console.print(Text.assemble(("valid", "bold green"), f": {file}: {about}"), soft_wrap=True)
        return
    title = counted(num_wrong, "problem")
    if num_wrong < len(problems):
        open_ones = "the dataset could not be read, nothing was decided there"
        title = f"{title}; {open_ones}" if num_wrong else open_ones
    table = Table(title=title, title_justify="left")
    for heading in ("file", "place", "expected", "found"):
        table.add_column(heading, overflow="fold")
    for problem in problems:
        row = (problem.file, problem.place, problem.expected, problem.found)
        table.add_row(*map(Text, row))
    console.print(table)
