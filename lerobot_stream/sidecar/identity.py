"""Which sidecar belongs to which dataset: its name, and whether it may be used."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping

from lerobot_stream.sidecar.manifest import SCHEMA_VERSION, SidecarHeader
from lerobot_stream.source.base import FileInfo, Identity

_PINNED = re.compile(r"@[0-9a-f]{40}$")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_REVISION_LETTERS = 32
_DIGEST_LETTERS = 16


def is_pinned(data_root: str) -> bool:
    """True where the address ends in a commit, so that its content can't change."""
    return _PINNED.search(data_root) is not None


def sidecar_folder(repo_id: str) -> str:
    """Name of the folder that holds a dataset's sidecars."""
    name = _NOT_IN_NAMES.sub("--", repo_id).strip("-")
    return name if name.strip(".") else "_"


def sidecar_name(
    identity: Identity,
    fingerprints: Mapping[str, str],
    subset_paths: Collection[str] | None = None,
) -> str:
    """File name of a dataset's sidecar.

    Args:
        identity: The dataset.
        fingerprints: Per path, of the files that have one.
        subset_paths: The files of a sidecar that doesn't hold all of the dataset's.

    Returns:
        A name that differs for every identity, content and subset.
    """
    revision = _NOT_IN_NAMES.sub("-", identity.revision).strip("-")[:_REVISION_LETTERS]
    facts: dict[str, object] = {
        "schema_version": SCHEMA_VERSION,
        "repo_id": identity.repo_id,
        "revision": identity.revision,
        "data_root": identity.data_root,
    }
    if fingerprints:
        facts["source_fingerprints"] = dict(fingerprints)
    name = f"mp4-v{SCHEMA_VERSION}-{revision}-{_digest(facts)}"
    if subset_paths is not None:
        name += f"-subset-{_digest(sorted(subset_paths))}"
    return f"{name}.npz"


def _digest(facts: object) -> str:
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LETTERS]


def source_fingerprints(files: Mapping[str, FileInfo], paths: Collection[str]) -> dict[str, str]:
    """Fingerprints of those ``paths`` that have one, by path."""
    found = {path: files[path].fingerprint for path in sorted(paths) if path in files}
    return {path: text for path, text in found.items() if text}


def can_change_unseen(
    identity: Identity, files: Mapping[str, FileInfo], paths: Collection[str]
) -> bool:
    """True where neither a commit nor a fingerprint tells one content from the next."""
    if is_pinned(identity.data_root):
        return False
    return any(not files[path].fingerprint for path in paths if path in files)


def usable(
    header: SidecarHeader,
    identity: Identity,
    files: Mapping[str, FileInfo],
    paths: Collection[str],
) -> str | None:
    """Decide whether a sidecar describes these files of a dataset.

    Args:
        header: What the sidecar says about itself.
        identity: The dataset.
        files: The source's listing.
        paths: The video files wanted.

    Returns:
        None where it does, else the first reason why not.
    """
    theirs = header.identity
    for what, found, wanted in (
        ("repo_id", theirs.repo_id, identity.repo_id),
        ("data_root", theirs.data_root, identity.data_root),
    ):
        if found != wanted:
            return f"{what} is {found!r}, wanted {wanted!r}"
    if theirs.revision != identity.revision and not is_pinned(identity.data_root):
        return f"revision is {theirs.revision!r}, wanted {identity.revision!r}"
    if can_change_unseen(identity, files, paths):
        return "the source has neither a commit nor fingerprints, so its files may have changed"
    sizes = dict(header.source_files)
    for path in sorted(paths):
        reason = _file_differs(path, sizes.get(path), header.fingerprints.get(path, ""), files)
        if reason is not None:
            return f"{path}: {reason}"
    return None


def _file_differs(
    path: str, size: int | None, fingerprint: str, files: Mapping[str, FileInfo]
) -> str | None:
    if size is None:
        return "not in the sidecar"
    info = files.get(path)
    if info is None:
        return "not in the dataset"
    if info.size != size:
        return f"has {info.size} bytes, the sidecar says {size}"
    if info.fingerprint != fingerprint:
        return f"fingerprint is {info.fingerprint!r}, the sidecar says {fingerprint!r}"
    return None
