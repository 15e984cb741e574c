"""Git-LFS pointers: small texts that lie where a file should be."""

from __future__ import annotations

from lerobot_stream.errors import FormatError

_FIRST_LINE = b"version https://git-lfs.github.com/spec/v1"


def refuse_pointer(data: bytes, path: str) -> None:
    """Refuse a file that a clone without Git LFS left in place of the real one.

    Args:
        data: The file's first bytes.
        path: The file.

    Raises:
        FormatError: It is a pointer.
    """
    if data.startswith(_FIRST_LINE):
        raise FormatError(
            "is a git-lfs pointer, not the file itself", path=path, hint="run git lfs pull"
        )
