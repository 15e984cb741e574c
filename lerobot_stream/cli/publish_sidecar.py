"""``publish-sidecar``: put a sidecar where everyone who trains on the dataset finds it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from lerobot_stream.cli.address import RepoId, RepoType, Revision, Root, open_address
from lerobot_stream.errors import SidecarError

if TYPE_CHECKING:
    from lerobot_stream.sidecar.publish import Publication


def command(
    file: Annotated[Path, typer.Argument(help="The sidecar, an .npz file.", show_default=False)],
    repo_id: RepoId,
    repo_type: RepoType = "dataset",
    revision: Revision = None,
    root: Root = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing, only say what would be done.")
    ] = False,
) -> None:
    """Publish a sidecar beside its dataset, and print its address.

    It is checked first. It goes to the branch lerobot-sidecars of the repository, or into the
    bucket; the dataset's own branches and tags stay as they are, and so do earlier sidecars.
    A folder has no such place: training from it finds the sidecar in the local cache.
    """
    if not file.is_file():
        raise SidecarError("no such file", path=str(file))
    source = open_address(repo_id, root=root, revision=revision, repo_type=repo_type)
    from lerobot_stream.sidecar.publish import publish_sidecar, publishing_place

    publishing_place(source)
    from lerobot_stream.inspect.indexing import read_video_paths

    paths = read_video_paths(source)
    publication = publish_sidecar(file, source, dataset_paths=paths, dry_run=dry_run)
    show_publication(publication, dry_run=dry_run)
    typer.echo(publication.address)


def show_publication(publication: Publication, *, dry_run: bool) -> None:
    """Say on stderr what was done."""
    console = Console(stderr=True, highlight=False)
    for step in publication.steps:
        console.print(f"{'would make' if dry_run else 'made'} {step}", markup=False, soft_wrap=True)
    if not publication.steps:
        console.print("already published, with equal content: nothing was done", soft_wrap=True)
