"""Paths that stay inside a dataset's root."""

from __future__ import annotations

import re

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def leads_outside(path: str) -> bool:
    """Tell whether a path could name something other than a file below the root.

    The text alone decides, so every source refuses the same paths.

    Args:
        path: A path as metadata gives it.

    Returns:
        True for an empty or absolute path, one with a scheme or drive, with ``..`` as a part,
        or with a character that some systems take as a separator or an end.
    """
    return (
        not path
        or path.startswith("/")
        or "\\" in path
        or "\0" in path
        or ".." in path.split("/")
        or _SCHEME.match(path) is not None
    )


def is_hidden(path: str) -> bool:
    """Tell whether a path has a part that starts with a dot; such files are no part of a dataset.

    Args:
        path: A path relative to the root.
    """
    return any(part.startswith(".") for part in path.split("/"))
