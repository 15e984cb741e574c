"""The sample tables of a dataset in one immutable file that all processes of a host share."""

from __future__ import annotations

import bisect
import json
import mmap
import os
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import portalocker
from numpy.typing import NDArray

from lerobot_stream.errors import FormatError, SidecarError
from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.sidecar.manifest import parse_movie_record
from lerobot_stream.sidecar.mapped_layout import COLUMNS, RECORD, TYPES, parse_header
from lerobot_stream.source.base import Identity


class MappedIndex:
    """Sample tables as views of a memory-mapped file.

    Nothing is read before it is used, and nothing is copied: pages that several processes look
    at are in memory once. Views stay valid after :meth:`close`, and when the file is replaced
    or removed. The integer columns of an index have the smallest types that hold their values
    (the layout says which sums still fit); where all values are the same, the view has stride 0.

    As long as it is mapped the file has a shared lock, by which others see that it is in use.
    """

    def __init__(self, path: Path) -> None:
        """Map a file and check that it is whole.

        Args:
            path: The file.

        Raises:
            SidecarError: There is no such file, or it cannot be opened.
            FormatError: It is no mapped index, or one of another generation.
        """
        self.path = path
        try:
            with path.open("rb") as file:
                _hold(file, path)
                mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            reason = error.strerror or error
            raise SidecarError(f"cannot be opened: {reason}", path=str(path)) from error
        except ValueError as error:  # an empty file cannot be mapped
            raise FormatError(str(error), path=str(path)) from None
        data = memoryview(mapping)
        header = parse_header(data, path=str(path))
        self._data: memoryview | None = data
        self._columns_stop = header.about_place
        self._records = np.frombuffer(data, RECORD, header.num_files, header.directory_place)
        stop = header.about_place + header.about_size
        about: dict[str, Any] = json.loads(bytes(data[header.about_place : stop]))
        self.identity = Identity(about["repo_id"], about["revision"], about["data_root"])
        self.subset: bool = about["subset"]

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The files described, sorted."""
        return tuple(
            self._name(number).decode("utf-8", "surrogatepass")
            for number in range(len(self._records))
        )

    def index(self, path: str) -> Mp4Index:
        """Open the sample table of one file.

        Args:
            path: A file of :attr:`paths`.

        Returns:
            Read-only views.

        Raises:
            SidecarError: There is no such file here.
            FormatError: The mapped index is damaged.
        """
        self._view()
        name = path.encode("utf-8", "surrogatepass")
        number = bisect.bisect_left(range(len(self._records)), name, key=self._name)
        if number == len(self._records) or self._name(number) != name:
            raise SidecarError(
                f"not among the {len(self._records)} files of {self.path}", path=path
            )
        record = self._records[number]
        text = self._text(record["movie_place"], record["movie_size"])
        movie = parse_movie_record(text, file=path, path=str(self.path))
        columns = {column: self._column(record, i, path) for i, column in enumerate(COLUMNS)}
        return Mp4Index(movie, **columns)

    def close(self) -> None:
        """Let go of the file; it stays mapped as long as a view of it is held."""
        self._data = None
        self._records = self._records[:0].copy()

    def __reduce__(self) -> tuple[type[MappedIndex], tuple[Path]]:
        """Map the same file in another process."""
        return MappedIndex, (self.path,)

    def _view(self) -> memoryview:
        if self._data is None:
            raise ValueError(f"mapped index {self.path} is closed")
        return self._data

    def _name(self, number: int) -> bytes:
        record = self._records[number]
        return self._text(record["name_place"], record["name_size"])

    def _text(self, place: np.integer[Any], size: np.integer[Any]) -> bytes:
        return bytes(self._view()[int(place) : int(place) + int(size)])

    def _column(self, record: np.void, i: int, path: str) -> NDArray[Any]:
        place, stored, kind = (int(record[key][i]) for key in ("place", "stored", "type"))
        length = int(record["num_sync" if COLUMNS[i] == "sync" else "num_samples"])
        if stored not in (1, length) or kind >= len(TYPES):
            message = f"{stored} numbers of type {kind} stand for {length}"
        elif place + stored * TYPES[kind].itemsize > self._columns_stop:
            message = f"{stored} numbers at byte {place} reach byte {self._columns_stop}"
        else:
            column = np.frombuffer(self._view(), TYPES[kind], stored, place)
            return column if stored == length else np.broadcast_to(column, (length,))
        raise FormatError(message, path=str(self.path), where=f"{path}: {COLUMNS[i]}")


def remove_unheld(path: Path) -> bool:
    """Remove a mapped index that no process has mapped.

    Returns:
        True where it is gone; False where it is in use, or cannot be locked or removed.
    """
    try:
        with path.open("r+b") as file:  # some file systems lock only what may be written
            portalocker.lock(file, portalocker.LOCK_EX | portalocker.LOCK_NB)
            path.unlink()
    except (OSError, portalocker.LockException):
        return False
    return True


def _hold(file: BinaryIO, path: Path) -> None:
    """Take a shared lock, which a mapping keeps: it has its own copy of the descriptor."""
    try:
        portalocker.lock(file, portalocker.LOCK_SH | portalocker.LOCK_NB)
    except portalocker.AlreadyLocked:
        raise SidecarError("is being written or removed", path=str(path)) from None
    except portalocker.LockException:
        return  # a file system without locks: nobody removes it either
    if not os.fstat(file.fileno()).st_nlink:
        raise SidecarError("has been removed", path=str(path))
