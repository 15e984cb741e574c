"""From a dataset's name or address to a source."""

from __future__ import annotations

import os
from pathlib import Path

from lerobot_stream.errors import SourceError
from lerobot_stream.source.base import Source
from lerobot_stream.source.local import LocalSource
from lerobot_stream.source.paths import leads_outside

REPO_TYPES = ("dataset", "bucket")


def open_source(
    repo_id: str,
    *,
    root: str | Path | None = None,
    revision: str | None = None,
    repo_type: str = "dataset",
    connections: int | None = None,
    subranges: int = 1,
) -> Source:
    """Open the place that a dataset's files are read from.

    Args:
        repo_id: The dataset's name, ``OWNER/NAME``.
        root: A folder, or an address such as ``hf://datasets/ID@COMMIT``. Without it, the folder
            ``$HF_LEROBOT_HOME/<repo_id>`` where a dataset lies there and no revision is asked
            for (a folder cannot say which one it holds), else the Hub.
        revision: Branch, tag or commit.
        repo_type: ``dataset`` or ``bucket``.
        connections: HTTP connections to keep; a folder needs none.
        subranges: Parts to fetch a large span in; a folder needs none.

    Returns:
        A source, to be closed by the caller.

    Raises:
        ValueError: The name or type is none.
        MissingFileError: The folder is not there.
        SourceError: Nothing can read this address.
    """
    if leads_outside(repo_id):
        raise ValueError(f"repo_id {repo_id!r} is not a dataset's name")
    if repo_type not in REPO_TYPES:
        raise ValueError(f"repo_type {repo_type!r} is none of {', '.join(REPO_TYPES)}")
    folder = _folder(repo_id, root, revision, repo_type)
    if folder is not None:
        return LocalSource(folder, repo_id=repo_id, revision=revision or "v3.0")
    raise SourceError(
        "only folders can be read so far",
        path=str(root or repo_id),
        hint="download the dataset and name its folder with root",
    )


def lerobot_home() -> Path:
    """Return the folder that LeRobot keeps datasets and caches in."""
    home = os.environ.get("HF_LEROBOT_HOME")
    if home:
        return Path(home).expanduser()
    hub = os.environ.get("HF_HOME")
    if not hub:
        hub = str(Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    return Path(hub).expanduser() / "lerobot"


def _folder(
    repo_id: str, root: str | Path | None, revision: str | None, repo_type: str
) -> Path | None:
    if root is not None:
        return None if "://" in str(root) else Path(root).expanduser()
    folder = lerobot_home() / repo_id
    is_there = (folder / "meta" / "info.json").is_file()
    return folder if is_there and revision is None and repo_type == "dataset" else None
