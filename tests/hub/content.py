"""What the loopback Hub holds: blobs, commits, repositories, buckets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

LFS_SUFFIXES = frozenset({".mp4", ".parquet", ".npz", ".bin", ".safetensors"})
LFS_SIZE = 10 << 20
_BLOCK = 1 << 20

Content = bytes | Path
"""Bytes of a file, or where on this disk they are."""


@dataclass(frozen=True, slots=True, eq=False)
class Blob:
    """The content of one file."""

    content: Content
    """The bytes, or the file that holds them."""
    size: int
    """Bytes."""
    oid: str
    """Git's own hash: of the pointer text where the file is in LFS."""
    sha256: str
    """Hash of the bytes."""
    lfs: bool
    """Whether the Hub keeps it in LFS, behind a signed address."""

    def read(self, start: int, stop: int) -> bytes:
        """Read the bytes ``[start, stop)``."""
        if isinstance(self.content, bytes):
            return self.content[start:stop]
        with self.content.open("rb") as file:
            file.seek(start)
            return file.read(stop - start)

    @property
    def pointer(self) -> bytes:
        """The text that git keeps in place of an LFS file."""
        return _pointer(self.sha256, self.size)


def _pointer(sha256: str, size: int) -> bytes:
    spec = "https://git-lfs.github.com/spec/v1"
    return f"version {spec}\noid sha256:{sha256}\nsize {size}\n".encode()


def _blocks(content: Content) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block


def _git_oid(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def is_lfs(path: str, size: int) -> bool:
    """Decide as a ``.gitattributes`` of a dataset does."""
    return Path(path).suffix in LFS_SUFFIXES or size > LFS_SIZE


def make_blob(path: str, content: Content, *, lfs: bool | None = None) -> Blob:
    """Hash a file's content once."""
    size = len(content) if isinstance(content, bytes) else content.stat().st_size
    kept_in_lfs = is_lfs(path, size) if lfs is None else lfs
    sha256 = hashlib.sha256()
    for block in _blocks(content):
        sha256.update(block)
    digest = sha256.hexdigest()
    text = _pointer(digest, size) if kept_in_lfs else b"".join(_blocks(content))
    return Blob(content, size, _git_oid(text), digest, kept_in_lfs)


@dataclass(frozen=True, slots=True, eq=False)
class Commit:
    """All files of a repository at one moment."""

    oid: str
    """Forty hex digits."""
    parent: str | None
    """The commit before."""
    files: Mapping[str, Blob]
    """Content by path."""
    title: str
    """First line of its message."""
    date: str
    """When, in ISO 8601."""


def now_iso() -> str:
    """Now, as the Hub writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(slots=True, eq=False)
class Repository:
    """One dataset repository."""

    id: str
    """``OWNER/NAME``."""
    private: bool = False
    """Whether a token is needed to see it."""
    gated: bool = False
    """Whether terms must be accepted to read files; nobody here has."""
    commits: dict[str, Commit] = field(default_factory=dict)
    """Every commit by oid."""
    branches: dict[str, str] = field(default_factory=dict)
    """Head of each branch."""
    tags: dict[str, str] = field(default_factory=dict)
    """Commit of each tag."""

    def commit(self, changes: Mapping[str, Blob | None], *, branch: str, title: str) -> Commit:
        """Put a commit on a branch, which is made if there is none.

        Args:
            changes: New content by path; ``None`` deletes.
            branch: Where to.
            title: First line of the message.
        """
        parent = self.branches.get(branch)
        files = dict(self.commits[parent].files) if parent else {}
        for path, blob in changes.items():
            if blob is None:
                files.pop(path, None)
            else:
                files[path] = blob
        seed = "\n".join([self.id, str(len(self.commits)), str(parent), *sorted(files)])
        oid = hashlib.sha1(seed.encode()).hexdigest()
        made = Commit(oid, parent, files, title, now_iso())
        self.commits[oid] = made
        self.branches[branch] = oid
        return made

    def resolve(self, revision: str) -> Commit | None:
        """Find what a branch, tag, commit or start of a commit means."""
        oid = self.branches.get(revision) or self.tags.get(revision)
        if oid is None and len(revision) >= 7:
            oid = next((known for known in self.commits if known.startswith(revision)), None)
        return self.commits.get(oid) if oid else None


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """One file in a bucket."""

    blob: Blob
    """Its content."""
    xet_hash: str
    """Sixty-four hex digits that change with the content."""
    mtime: str
    """When it was changed, in ISO 8601."""


@dataclass(slots=True, eq=False)
class Bucket:
    """One storage bucket."""

    id: str
    """``OWNER/NAME``."""
    private: bool = False
    """Whether a token is needed to see it."""
    created: str = field(default_factory=now_iso)
    """When it was made."""
    files: dict[str, Stored] = field(default_factory=dict)
    """Content by path."""

    def put(self, path: str, blob: Blob, xet_hash: str) -> None:
        """Store or replace a file."""
        self.files[path] = Stored(blob, xet_hash, now_iso())


def walk(folder: Path) -> dict[str, Content]:
    """List a folder's files by path relative to it."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path for path in found}
