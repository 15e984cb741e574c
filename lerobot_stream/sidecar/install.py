"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import portalocker

from lerobot_stream.errors import SidecarError
from lerobot_stream.source.home import lerobot_home

_TRIES = 16
_NOW = portalocker.LOCK_EX | portalocker.LOCK_NB


def disk_fault(error: OSError, path: Path) -> SidecarError:
    """Say what the disk refused, and where else the file may lie."""
    in_cache = path.absolute().is_relative_to(lerobot_home().absolute())
    place = "set HF_LEROBOT_HOME to" if in_cache else "name with --output a file in"
    return SidecarError(
        f"cannot be written: {error.strerror or error}",
        path=str(path),
        hint=f"{place} a folder that can be written and has space",
    )


@contextmanager
def atomic_file(path: Path, *, check: Callable[[Path], None] | None = None) -> Iterator[BinaryIO]:
    """Write a file that replaces ``path`` when the block ends without an error.

    The bytes go to a locked temporary file beside it, which an error removes. One that a
    killed process left behind is removed by the next call for the same path.

    Args:
        path: The file to make; its folder is made too.
        check: Looks at the finished temporary file; what it raises keeps ``path`` as it was.

    Raises:
        SidecarError: The disk refuses.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep(path)
        stream, temporary = _create(path)
        try:
            with stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
                if check is not None:
                    check(temporary)
                temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        _sync_folder(path.parent)
    except OSError as error:
        raise disk_fault(error, path) from error


def sweep(path: Path) -> None:
    """Remove temporary files for ``path`` that no living process holds."""
    for left in path.parent.glob(f"{glob.escape(path.name)}.*.tmp"):
        with contextlib.suppress(OSError, portalocker.LockException), left.open("ab") as stream:
            portalocker.lock(stream, _NOW)
            left.unlink()


def _create(path: Path) -> tuple[BinaryIO, Path]:
    """A temporary file of our own, locked so that no sweep takes it."""
    for _ in range(_TRIES):
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
        try:
            descriptor = os.open(
                temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666
            )
        except FileExistsError:
            continue
        stream = os.fdopen(descriptor, "w+b")
        try:
            portalocker.lock(stream, _NOW)
        except portalocker.AlreadyLocked:  # a sweep came between, and is about to remove it
            stream.close()
            continue
        except portalocker.LockException:  # a file system without locks: no sweep takes it either
            return stream, temporary
        if os.fstat(descriptor).st_nlink:
            return stream, temporary
        stream.close()
    raise SidecarError(f"no temporary file in {_TRIES} tries", path=str(path))


def _sync_folder(folder: Path) -> None:
    """Make a rename last; file systems that can't are left alone."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
