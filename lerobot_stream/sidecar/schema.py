"""Reading a schema-3 sidecar, one file's arrays at a time."""

from __future__ import annotations

import hashlib
import io
import os
import weakref
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from lerobot_stream.errors import FormatError, SidecarError
from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.sidecar.manifest import SidecarHeader, parse_manifest
from lerobot_stream.sidecar.members import (
    MEMBERS,
    member_limit,
    member_name,
    parse_array,
    parse_index,
)
from lerobot_stream.source.base import Identity

MANIFEST = "manifest_json.npy"
MAX_MANIFEST_BYTES = 1 << 28
"""Largest manifest, about 300,000 files."""
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    RuntimeError,
    NotImplementedError,
    ValueError,
)
"""What reading a damaged archive may raise."""


class Sidecar:
    """The index of a dataset's videos, in an open file.

    Only the manifest stays in memory. May be used from many threads and after a fork;
    pickling it reopens the file by path.
    """

    def __init__(self, path: Path) -> None:
        """Open a sidecar and check its manifest and the declared size of every array.

        Args:
            path: The ``.npz`` file.

        Raises:
            SidecarError: There is no such file, or it cannot be opened.
            FormatError: It is not a schema-3 sidecar.
        """
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise SidecarError(
                f"cannot be opened: {error.strerror or error}", path=str(path)
            ) from error
        self._closing = weakref.finalize(self, os.close, self._descriptor)
        try:
            self._archive = self._open_archive()
            self._owner = os.getpid()
            self.header = self._read_header()
            self._check_members()
        except BaseException:
            self._closing()
            raise
        self._numbers = {name: i for i, name in enumerate(self.header.paths)}

    @property
    def identity(self) -> Identity:
        """The dataset it describes."""
        return self.header.identity

    @property
    def source_files(self) -> tuple[tuple[str, int], ...]:
        """Path and bytes of each file, sorted by path."""
        return self.header.source_files

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """Text that changes with a file's content, by path."""
        return self.header.fingerprints

    @property
    def paths(self) -> tuple[str, ...]:
        """The files described, sorted."""
        return self.header.paths

    @property
    def subset(self) -> bool:
        """True where it doesn't hold all video files of the dataset."""
        return self.header.subset

    def content_digest(self) -> str:
        """Hash of what it holds, in hex; the same however its members are compressed."""
        members = sorted((i.filename, i.file_size, i.CRC) for i in self._archive.infolist())
        return hashlib.sha256(repr((self._manifest_hash, members)).encode()).hexdigest()

    def index(self, path: str) -> Mp4Index:
        """Read and check the sample table of one file.

        Args:
            path: A file of :attr:`paths`.

        Raises:
            SidecarError: The sidecar doesn't hold this file.
            FormatError: Its arrays are damaged or say what no file can hold.
        """
        number = self._numbers.get(path)
        if number is None:
            raise SidecarError(
                f"not among the {len(self._numbers)} files of sidecar {self.path}", path=path
            )
        members = {member: self._read_member(member_name(number, member)) for member in MEMBERS}
        movie = self.header.movies[path]
        try:
            return parse_index(movie, members, path=str(self.path), place=path)
        except FormatError as error:
            error.hint = self._hint
            raise

    def close(self) -> None:
        """Close the file; nothing can be read afterwards."""
        self._closing()

    def __reduce__(self) -> tuple[type[Sidecar], tuple[Path]]:
        """Reopen by path in another process."""
        return Sidecar, (self.path,)

    @property
    def _hint(self) -> str:
        return f"delete {self.path}; it is made anew at the next start"

    def _open_archive(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(io.BufferedReader(_PlacedReader(self._descriptor)))
        except _BROKEN as error:
            raise FormatError(f"no archive: {error}", path=str(self.path)) from None

    def _own_archive(self) -> zipfile.ZipFile:
        """The archive, opened anew after a fork: a lock taken over may have lost its thread."""
        if not self._closing.alive:
            raise ValueError(f"sidecar {self.path} is closed")
        if self._owner != os.getpid():
            self._archive = self._open_archive()
            self._owner = os.getpid()
        return self._archive

    def _read_header(self) -> SidecarHeader:
        path = str(self.path)
        info = self._archive.NameToInfo.get(MANIFEST)
        if info is None:
            raise FormatError("not in the archive", path=path, where=MANIFEST)
        if info.file_size > MAX_MANIFEST_BYTES:
            raise FormatError(
                f"declares {info.file_size} bytes, at most {MAX_MANIFEST_BYTES}",
                path=path,
                where=MANIFEST,
            )
        data = self._read_member(MANIFEST)
        self._manifest_hash = hashlib.sha256(data).hexdigest()
        array = parse_array(data, path=path, where=MANIFEST)
        if array.ndim or array.dtype.kind != "S":
            found = f"{array.dtype} of shape {array.shape}"
            raise FormatError(f"wanted one text of bytes, got {found}", path=path, where=MANIFEST)
        return parse_manifest(array.tobytes().rstrip(b"\0"), path=path)

    def _check_members(self) -> None:
        """Refuse missing arrays and declared sizes that no file of that size can need."""
        known = self._archive.NameToInfo
        for number, (path, file_size) in enumerate(self.header.source_files):
            limit = member_limit(file_size)
            for member in MEMBERS:
                name = member_name(number, member)
                info = known.get(name)
                fault = None
                if info is None:
                    fault = "not in the archive"
                elif info.file_size > limit:
                    fault = f"declares {info.file_size} bytes, at most {limit} for this file"
                if fault is not None:
                    raise FormatError(fault, path=str(self.path), where=f"{path}: {name}")

    def _read_member(self, name: str) -> bytes:
        archive = self._own_archive()
        try:
            with archive.open(name) as stream:
                return stream.read()
        except _BROKEN as error:
            raise FormatError(
                f"cannot be read: {error}", path=str(self.path), where=name, hint=self._hint
            ) from None


class _PlacedReader(io.RawIOBase):
    """A descriptor read by place, so that processes that share it don't move each other."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._at = 0
        self._size = os.fstat(descriptor).st_size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise OSError(f"seek to byte {base + offset}")
        self._at = base + offset
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = os.pread(self._descriptor, len(buffer), self._at)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
