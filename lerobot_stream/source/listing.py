"""Looking a file up in a source's listing, before any of its bytes are asked for."""

from __future__ import annotations

from lerobot_stream.errors import MissingFileError, SourceError
from lerobot_stream.source.base import FileInfo, Source
from lerobot_stream.source.paths import leads_outside
from lerobot_stream.span import Span


def find_file(source: Source, path: str) -> FileInfo:
    """Look a file up.

    Raises:
        MissingFileError: There is no such file.
    """
    info = source.list_files().get(path)
    if info is None:
        raise MissingFileError(f"no such file in {source.identity.data_root}", path=path)
    return info


def find_span(source: Source, path: str, span: Span) -> FileInfo:
    """Look up a file of which some bytes are wanted.

    Raises:
        MissingFileError: There is no such file.
        SourceError: The path leads outside the root, or the bytes are not all there.
    """
    if leads_outside(path):
        raise SourceError("the path leads outside the dataset", path=path)
    info = find_file(source, path)
    if span.stop > info.size:
        found = max(0, info.size - span.start)
        message = f"wanted {len(span)} bytes at {span.start}, got {found}"
        raise SourceError(message, path=path)
    return info
