"""From a dataset's name or address to a source."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from lerobot_stream.source.base import Source
from lerobot_stream.source.home import lerobot_home
from lerobot_stream.source.local import LocalSource
from lerobot_stream.source.paths import leads_outside
from lerobot_stream.source.root import HubRoot, is_hub_root, parse_hub_root

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
        root: A folder, or an address: ``hf://datasets/ID@COMMIT``, ``hf://buckets/ID``, or any
            that fsspec reads. Without it, the folder ``$HF_LEROBOT_HOME/<repo_id>`` where a
            dataset lies there and no revision is asked for (a folder cannot say which one it
            holds), else the Hub.
        revision: Branch, tag or commit.
        repo_type: ``dataset`` or ``bucket``.
        connections: HTTP connections to keep; a folder needs none.
        subranges: Parts to fetch a large span in; a folder needs none.

    Returns:
        A source, to be closed by the caller.

    Raises:
        ValueError: The name or type is none, or they and the address contradict each other.
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
    address = None if root is None else str(root)
    if address is not None and not is_hub_root(address):
        # fsspec is imported only where it is needed
        from lerobot_stream.source.fsspec_url import FsspecSource

        return FsspecSource(
            address,
            repo_id=repo_id,
            revision=revision or "v3.0",
            connections=connections,
            subranges=subranges,
        )
    place = _on_hub(repo_id, address, revision, repo_type)
    return _open_on_hub(place, connections=connections, subranges=subranges)


def _on_hub(repo_id: str, address: str | None, revision: str | None, repo_type: str) -> HubRoot:
    """Bring name, type, revision and address together; they must not disagree."""
    if address is None:
        return HubRoot("bucket" if repo_type == "bucket" else "dataset", repo_id, revision)
    place = parse_hub_root(address)
    if place.repo_id != repo_id:
        raise ValueError(f"root {address} is not the dataset {repo_id}")
    if repo_type == "bucket" and place.kind != "bucket":
        raise ValueError(f"root {address} is not a bucket, as repo_type says")
    if None not in (revision, place.revision) and revision != place.revision:
        raise ValueError(f"root {address} and revision {revision} disagree")
    return HubRoot(place.kind, repo_id, place.revision or revision)


def _open_on_hub(place: HubRoot, *, connections: int | None, subranges: int) -> Source:
    from lerobot_stream.source.bucket import open_bucket
    from lerobot_stream.source.hub import open_hub

    opener = open_bucket if place.kind == "bucket" else open_hub
    return opener(
        place.repo_id, revision=place.revision, connections=connections, subranges=subranges
    )


def _folder(
    repo_id: str, root: str | Path | None, revision: str | None, repo_type: str
) -> Path | None:
    if root is not None:
        address = str(root)
        if address.startswith("file://"):
            return Path(unquote(urlsplit(address).path))
        return None if "://" in address else Path(root).expanduser()
    folder = lerobot_home() / repo_id
    is_there = (folder / "meta" / "info.json").is_file()
    return folder if is_there and revision is None and repo_type == "dataset" else None
