"""A dataset in a folder."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lerobot_stream.errors import MissingFileError, SourceError
from lerobot_stream.source.base import FileInfo, Identity, RequestCount
from lerobot_stream.source.paths import leads_outside
from lerobot_stream.span import Span


class LocalSource:
    """A source that reads a folder.

    A descriptor lives as long as one read, so nothing is held between reads and a copy in
    another process shares nothing. A file that is not what the listing or an earlier read found
    is an error.

    Args:
        root: The dataset's folder.
        repo_id: The dataset's name.
        revision: Text to file the dataset under; a folder has no commit.

    Raises:
        MissingFileError: There is no such folder.
    """

    def __init__(self, root: Path, *, repo_id: str, revision: str = "v3.0") -> None:
        if not root.is_dir():
            hint = "name the dataset's folder, the one with meta/info.json"
            raise MissingFileError("no such folder", path=str(root), hint=hint)
        self.root = root.resolve()
        self.identity = Identity(repo_id, revision, str(self.root))
        self.count = RequestCount()
        self._known: dict[str, FileInfo] = {}
        self._listing: dict[str, FileInfo] | None = None
        self._lock = threading.Lock()

    def list_files(self) -> Mapping[str, FileInfo]:
        """List the files under the root, once, without what hidden folders hold."""
        with self._lock:
            if self._listing is None:
                self._listing = dict(sorted(_walk(self.root, "", ())))
                self._known = self._listing | self._known
            return self._listing

    def read(self, path: str, span: Span) -> bytes:
        """Read exactly ``len(span)`` bytes.

        Raises:
            MissingFileError: There is no such file.
            SourceError: The path leads outside the root, the bytes are not all there, or the
                file has changed since it was listed or first read.
        """
        if leads_outside(path):
            raise SourceError("the path leads outside the dataset", path=path)
        try:
            data, info = _read(self.root / path, span)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise MissingFileError(f"no such file in {self.root}", path=path) from error
        except OSError as error:
            raise SourceError(f"cannot be read: {error.strerror}", path=path) from error
        with self._lock:
            known = self._known.setdefault(path, info)
            self.count.requests += 1
            self.count.bytes += len(data)
        if known != info:
            raise _changed(path, known, info)
        if len(data) != len(span):
            message = f"wanted {len(span)} bytes at {span.start}, got {len(data)}"
            raise SourceError(message, path=path)
        return data

    def resolve(self, paths: Iterable[str]) -> None:
        """Nothing: a path is its own address."""

    def close(self) -> None:
        """Do nothing: no descriptor outlives a read."""

    def __getstate__(self) -> dict[str, Any]:
        """Take the listing along; counting starts anew."""
        with self._lock:
            return {**self.__dict__, "count": RequestCount(), "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()


def _read(file: Path, span: Span) -> tuple[bytes, FileInfo]:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        parts = []
        at = span.start
        while at < span.stop:
            part = os.pread(descriptor, span.stop - at, at)
            if not part:
                break
            parts.append(part)
            at += len(part)
        info = _info(os.fstat(descriptor))
    finally:
        os.close(descriptor)
    return (parts[0] if len(parts) == 1 else b"".join(parts)), info


def _changed(path: str, known: FileInfo, found: FileInfo) -> SourceError:
    difference = f"{known.size} bytes listed, {found.size} found"
    if known.size == found.size:
        difference = "written to since it was listed"
    return SourceError(
        f"changed while in use: {difference}",
        path=path,
        hint="start again when nothing writes to the dataset",
    )


def _info(status: os.stat_result) -> FileInfo:
    return FileInfo(status.st_size, f"{status.st_size}-{status.st_mtime_ns}")


def _walk(
    folder: Path, prefix: str, above: tuple[tuple[int, int], ...]
) -> Iterator[tuple[str, FileInfo]]:
    """Yield the files below a folder; a link to a folder above is not followed for ever."""
    try:
        status = folder.stat()
        here = (status.st_dev, status.st_ino)
        if here in above:
            return
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                path = f"{prefix}{entry.name}"
                if _leads_to_folder(entry, path):
                    yield from _walk(Path(entry.path), f"{path}/", (*above, here))
                elif entry.is_file():
                    yield path, _info(entry.stat())
    except OSError as error:
        message = f"cannot be listed: {error.strerror}"
        raise SourceError(message, path=prefix.rstrip("/") or str(folder)) from error


def _leads_to_folder(entry: os.DirEntry[str], path: str) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:  # a link that leads in a circle, or through a forbidden folder
        message = f"cannot be followed: {error.strerror}"
        raise SourceError(message, path=path, hint="remove or mend this link") from error
