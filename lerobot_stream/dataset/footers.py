"""Footers of data files, the last used kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass

from lerobot_stream.dataset.groups import Groups, read_groups
from lerobot_stream.dataset.parquet import Footer, read_footer
from lerobot_stream.source.base import Source
from lerobot_stream.source.ranges import SourceFile

_MAX_BYTES = 32 << 20
"""Serialized footers kept; parsed ones take a few times as much memory."""


@dataclass(frozen=True, slots=True, eq=False)
class DataFile:
    """What is known of a data file before its rows are read."""

    footer: Footer
    """Its footer."""
    groups: Groups
    """The range of episodes in each of its row groups."""


class FooterCache:
    """Reads each footer once, however many threads ask, and keeps the last used.

    Args:
        source: Where the files are read from.
        max_bytes: Serialized footers to keep; the last one stays whatever its size.
    """

    def __init__(self, source: Source, *, max_bytes: int = _MAX_BYTES) -> None:
        self._source = source
        self._max_bytes = max_bytes
        self._files: OrderedDict[str, Future[DataFile]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: str) -> DataFile:
        """Return what is known of a file, reading its footer if need be.

        Raises:
            MissingFileError: There is no such file.
            FormatError: It is torn or not Parquet.
        """
        with self._lock:
            known = self._files.get(path)
            future = known or Future()
            self._files[path] = future
            self._files.move_to_end(path)
        if known is None:
            self._read(path, future)
        return future.result()

    def _read(self, path: str, future: Future[DataFile]) -> None:
        try:
            with SourceFile(self._source, path) as file:
                footer = read_footer(file)
                future.set_result(DataFile(footer, read_groups(file, footer)))
        except BaseException as error:
            with self._lock:
                self._files.pop(path, None)
            future.set_exception(error)
            raise
        with self._lock:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        sizes = {
            path: future.result().footer.metadata.serialized_size
            for path, future in self._files.items()
            if future.done() and not future.exception()
        }
        kept = sum(sizes.values())
        for path, size in list(sizes.items())[:-1]:
            if kept <= self._max_bytes:
                break
            del self._files[path]
            kept -= size
