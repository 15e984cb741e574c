"""One process at a time, on this host and on others that share the folder."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import portalocker

from lerobot_stream.errors import LockTimeoutError, SidecarError
from lerobot_stream.sidecar.install import disk_fault

_CHECK_INTERVAL_S = 0.2

logger = logging.getLogger(__name__)


@contextmanager
def locked(file: Path, *, timeout_s: float) -> Iterator[None]:
    """Hold the one lock of a file while the block runs; it is LeRobot's own for sidecars.

    The lock dies with its process. Its folder is made if need be.

    Args:
        file: What is to be made; the lock lies beside it, ``<file>.lock``.
        timeout_s: How long to wait for another process.

    Raises:
        LockTimeoutError: Another process held the lock for too long.
        SidecarError: The disk refuses, or has no locks.
    """
    path = file.with_name(f"{file.name}.lock")
    lock = portalocker.Lock(
        path,
        "a",
        timeout=timeout_s,
        check_interval=_CHECK_INTERVAL_S,
        flags=portalocker.LOCK_EX | portalocker.LOCK_NB,
    )
    waited = False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(fail_when_locked=True)
        except portalocker.AlreadyLocked:
            waited = True
            logger.info("waiting up to %g s for another process: %s", timeout_s, path)
            lock.acquire()
    except portalocker.LockException as error:
        if waited:
            raise LockTimeoutError(
                f"another process kept the lock for {timeout_s:g} seconds",
                path=str(path),
                hint="wait for its build to end, or raise"
                " --dataset.streaming_sidecar_lock_timeout_s",
            ) from None
        raise SidecarError(
            f"cannot be locked: {error}",
            path=str(path),
            hint="set HF_LEROBOT_HOME to a folder on a file system with locks",
        ) from error
    except OSError as error:
        raise disk_fault(error, path) from error
    try:
        yield
    finally:
        lock.release()
