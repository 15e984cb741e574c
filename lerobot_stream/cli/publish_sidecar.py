"""``publish-sidecar``: put a sidecar where everyone who trains on the dataset finds it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from lerobot_stream.cli.address import RepoId, RepoType, Revision, Root, open_address
from lerobot_stream.errors import SidecarError

if TYPE_CHECKING:
    from lerobot_stream.source.base import Source


def command(
    file: Annotated[Path, typer.Argument(help="The sidecar, an .npz file.", show_default=False)],
    repo_id: RepoId,
    repo_type: RepoType = "dataset",
    revision: Revision = None,
    root: Root = None,
) -> None:
    """Publish a sidecar beside its dataset.

    Only repositories and buckets can hold a published sidecar. A folder has no such place:
    training from it finds the sidecar in the local cache.
    """
    if not file.is_file():
        raise SidecarError("no such file", path=str(file))
    refuse_to_publish(open_address(repo_id, root=root, revision=revision, repo_type=repo_type))


def refuse_to_publish(source: Source) -> NoReturn:
    """Explain why a sidecar has no place beside this dataset.

    Raises:
        SidecarError: Always.
    """
    address = source.identity.data_root
    if "://" in address:
        raise SidecarError("nothing can be published there so far", path=address)
    raise SidecarError(
        "there is nothing to publish to: this dataset is a folder",
        path=address,
        hint="nothing needs to be done, training from a folder uses the sidecar in the cache",
    )
