"""What the address of a dataset's root names, and how it may be shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

_COMMIT = re.compile(r"[0-9a-f]{40}")
_HUB = "hf://"
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+")
_CONTAINER_FIRST = ("abfs", "abfss", "wasb", "wasbs")  # CONTAINER@ACCOUNT, not a user


@dataclass(frozen=True, slots=True)
class HubRoot:
    """A dataset or bucket on the Hub."""

    kind: Literal["dataset", "bucket"]
    """Which of the two."""
    repo_id: str
    """``OWNER/NAME``."""
    revision: str | None = None
    """Branch, tag or commit, if the address says one."""


def is_commit(revision: str) -> bool:
    """Say whether a revision is a commit written out."""
    return _COMMIT.fullmatch(revision) is not None


def parse_hub_root(root: str) -> HubRoot:
    """Parse ``hf://datasets/OWNER/NAME[@REVISION]`` or ``hf://buckets/OWNER/NAME``.

    Raises:
        ValueError: It is neither, or leads into a folder of it.
    """
    parts = root.removeprefix(_HUB).rstrip("/").split("/")
    if parts[0] not in ("datasets", "buckets") or len(parts) < 3 or not all(parts):
        wanted = "hf://datasets/OWNER/NAME@COMMIT or hf://buckets/OWNER/NAME"
        raise ValueError(f"{root!r} is not an address like {wanted}")
    if parts[0] == "buckets":
        if len(parts) > 3:
            raise ValueError(f"{root!r} leads into a bucket; a dataset lies at a bucket's root")
        return HubRoot("bucket", "/".join(parts[1:3]))
    repo_id, at, revision = "/".join(parts[1:]).partition("@")
    if repo_id.count("/") != 1 or (at and not revision):
        raise ValueError(f"{root!r} leads into a dataset; its root is wanted")
    return HubRoot("dataset", repo_id, revision or None)


def is_hub_root(root: str) -> bool:
    """Say whether an address is on the Hub."""
    return root.startswith(_HUB)


def without_credentials(url: str) -> str:
    """Take user, password, query and fragment out of an address.

    Args:
        url: An address for fsspec; chained ones (``simplecache::s3://…``) are cleaned link by
            link.

    Returns:
        What may be shown and stored, without a slash at the end.
    """
    return "::".join(_clean(link) for link in url.split("::"))


def shown(text: str) -> str:
    """Take credentials out of every address in a text, such as another library's message.

    Args:
        text: May name signed addresses, or ones with a password.
    """
    return _ADDRESS.sub(_shown_address, text)


def _shown_address(match: re.Match[str]) -> str:
    try:
        return without_credentials(match[0])
    except ValueError:  # no address after all, so that no part of it is known to be harmless
        return f"{match[0].partition('://')[0]}://…"


def _clean(link: str) -> str:
    if "://" not in link:
        return link
    parts = urlsplit(link)
    user, _, netloc = parts.netloc.rpartition("@")
    if parts.scheme in _CONTAINER_FIRST and ":" not in user:
        netloc = parts.netloc
    return urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), "", ""))
