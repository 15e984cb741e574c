"""The flags that say which dataset a command is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lerobot_stream.source.base import Source

RepoId = Annotated[
    str, typer.Option("--repo-id", help="The dataset's name, OWNER/NAME.", show_default=False)
]
RepoType = Annotated[str, typer.Option("--repo-type", help="dataset or bucket.")]
Revision = Annotated[
    str | None, typer.Option("--revision", help="Branch, tag or commit.", show_default=False)
]
Root = Annotated[
    str | None,
    typer.Option("--root", help="Folder or URL that holds the dataset.", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object to stdout.")]


def open_address(repo_id: str, *, root: str | None, revision: str | None, repo_type: str) -> Source:
    """Open the dataset that the flags name.

    Args:
        repo_id: As ``--repo-id``.
        root: As ``--root``.
        revision: As ``--revision``.
        repo_type: As ``--repo-type``.

    Returns:
        The open source.

    Raises:
        ValueError: ``repo_type`` is neither of the two.
        StreamError: The dataset is not there or cannot be read.
    """
    from lerobot_stream.source.open import open_source

    if repo_type not in ("dataset", "bucket"):
        raise ValueError(f"--repo-type: wanted dataset or bucket, found {repo_type!r}")
    return open_source(repo_id, root=root, revision=revision, repo_type=repo_type)
