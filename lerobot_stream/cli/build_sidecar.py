"""``build-sidecar``: index the videos of a dataset, once for everyone who reads it."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from lerobot_stream.cli.address import AsJson, RepoId, RepoType, Revision, Root, open_address
from lerobot_stream.cli.episode_list import parse_episodes
from lerobot_stream.cli.progress import format_bytes, show_progress
from lerobot_stream.cli.publish_sidecar import show_publication
from lerobot_stream.counted import counted
from lerobot_stream.errors import DatasetError
from lerobot_stream.sidecar.choices import PROBE_BYTES, WORKERS

if TYPE_CHECKING:
    from lerobot_stream.inspect.finding import Finding
    from lerobot_stream.inspect.indexing import BuiltSidecar
    from lerobot_stream.source.base import Source

_SHOWN = 20
"""Faults named in one error."""

logger = logging.getLogger(__name__)

_ARCHIVE = b"PK\3\4"


def command(
    repo_id: RepoId,
    repo_type: RepoType = "dataset",
    revision: Revision = None,
    data_root: Annotated[
        str | None,
        typer.Option("--data-root", help="The address; goes before --root.", show_default=False),
    ] = None,
    root: Root = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="File to write; the cache if not given.")
    ] = None,
    episodes: Annotated[
        str | None,
        typer.Option("--episodes", help="Only the files of the first N, or of 0,4,7-9."),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Files read at once.")] = WORKERS,
    range_backend: Annotated[
        str | None,
        typer.Option("--range-backend", help="fsspec or native-http; from the address if unset."),
    ] = None,
    max_probe_mb: Annotated[
        int, typer.Option("--max-probe-mb", min=1, help="Most MB read of one file's head.")
    ] = PROBE_BYTES >> 20,
    push: Annotated[bool, typer.Option("--push", help="Publish the sidecar afterwards.")] = False,
    as_json: AsJson = False,
) -> None:
    """Build the index of a dataset's videos and print its path.

    Training builds it by itself when it is needed. Building it first shows what is wrong with a
    dataset before a run starts. A sidecar in the cache that still fits is kept.
    """
    chosen = None if episodes is None else parse_episodes(episodes)
    if output is not None:
        _check_output(output)
    source = open_address(repo_id, root=data_root or root, revision=revision, repo_type=repo_type)
    _check_backend(range_backend, source)
    if push:
        from lerobot_stream.sidecar.publish import publishing_place

        publishing_place(source)  # so that nothing is built for nothing
    from lerobot_stream.inspect.indexing import index_videos

    console = Console(stderr=True, highlight=False)
    started = time.monotonic()
    with show_progress(console) as progress, _failures_listed(as_json=as_json):
        built = index_videos(
            source,
            episodes=chosen,
            output=output,
            workers=workers,
            max_probe_bytes=max_probe_mb << 20,
            progress=progress,
        )
    _report(built, source, time.monotonic() - started, console, as_json=as_json)
    if push:
        _publish(built, source, console)


def _report(
    built: BuiltSidecar, source: Source, seconds: float, console: Console, *, as_json: bool
) -> None:
    """Say what was made, and raise what makes it of little use."""
    for finding in built.findings:
        if finding.severity == "warning":
            console.print(f"warning: {finding}", markup=False, soft_wrap=True)
    faults = [finding for finding in built.findings if finding.severity == "error"]
    size = built.path.stat().st_size
    if as_json:
        summary: dict[str, Any] = {
            "path": str(built.path),
            "bytes": size,
            "files": built.num_files,
            "subset": built.subset,
            "requests": source.count.requests,
            "read_bytes": source.count.bytes,
            "seconds": round(seconds, 3),
            "errors": [str(finding) for finding in faults],
        }
        typer.echo(json.dumps(summary))
    if faults:
        raise _refusal(faults)
    what = f"{counted(built.num_files, 'video')}, {format_bytes(size)}, {seconds:.1f} s"
    console.print(f"sidecar of {what}", markup=False, soft_wrap=True)
    if not as_json:
        typer.echo(built.path)


def _check_output(output: Path) -> None:
    """Replace sidecars only, never a file of a dataset."""
    if not output.exists():
        return
    if not output.is_file():
        raise ValueError(f"--output={output} is no file that can be replaced")
    with output.open("rb") as stream:
        start = stream.read(len(_ARCHIVE))
    if start not in (_ARCHIVE, b""):
        raise ValueError(f"--output={output} is there and is no sidecar; name another file")


def _check_backend(range_backend: str | None, source: Source) -> None:
    """Take LeRobot's flag: the address decides, the flag may only agree."""
    if range_backend not in (None, "fsspec", "native-http"):
        raise ValueError(f"--range-backend: wanted fsspec or native-http, found {range_backend!r}")
    root = source.identity.data_root
    on_hub = root.startswith("hf://")
    if range_backend == "native-http" and not on_hub:
        raise ValueError(f"--range-backend=native-http reads the Hub, and {root} is not there")
    if range_backend == "fsspec" and on_hub:
        logger.info("--range-backend=fsspec: the Hub is read with native-http all the same")


@contextmanager
def _failures_listed(*, as_json: bool) -> Iterator[None]:
    """Put the files that could not be indexed into the summary, too."""
    from lerobot_stream.sidecar.build import BuildFailedError

    try:
        yield
    except BuildFailedError as error:
        if as_json:
            errors = [f"{path}: {reason}" for path, reason in error.failures]
            typer.echo(json.dumps({"path": None, "errors": errors}))
        raise


def _publish(built: BuiltSidecar, source: Source, console: Console) -> None:
    from lerobot_stream.sidecar.publish import publish_sidecar

    publication = publish_sidecar(built.path, source, dataset_paths=built.dataset_paths)
    show_publication(publication, dry_run=False)
    console.print(f"published at {publication.address}", markup=False, soft_wrap=True)


def _refusal(faults: list[Finding]) -> DatasetError:
    first, *more = faults
    error = DatasetError(str(first), hint=first.hint)
    for finding in more[:_SHOWN]:
        error.add_note(str(finding))
    if len(more) > _SHOWN:
        error.add_note(f"and {len(more) - _SHOWN} more; inspect-episodes shows them all")
    return error
