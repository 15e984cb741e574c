"""JSON objects among the metadata."""

from __future__ import annotations

import json

from lerobot_stream.dataset.pointer import refuse_pointer
from lerobot_stream.errors import FormatError


def parse_json(data: bytes, path: str) -> dict[str, object]:
    """Parse a file that holds one JSON object.

    Args:
        data: The whole file.
        path: The file, for errors.

    Raises:
        FormatError: It is empty, a git-lfs pointer, not JSON or not an object.
    """
    if not data:
        raise FormatError("is empty", path=path)
    refuse_pointer(data, path)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"is not JSON: {error}", path=path) from error
    if not isinstance(value, dict):
        raise FormatError(f"wanted a JSON object, found {type(value).__name__}", path=path)
    return value
