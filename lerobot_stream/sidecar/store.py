"""The cache of sidecars: one valid file opens without a lock, one process builds for all."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import portalocker

from lerobot_stream.errors import FormatError, LockTimeoutError, SidecarError
from lerobot_stream.sidecar.build import (
    DEFAULT_PROBE_BYTES,
    DEFAULT_WORKERS,
    BuildProgress,
    build_sidecar,
)
from lerobot_stream.sidecar.identity import (
    sidecar_folder,
    sidecar_name,
    source_fingerprints,
    usable,
)
from lerobot_stream.sidecar.install import disk_fault
from lerobot_stream.sidecar.schema import Sidecar
from lerobot_stream.source.base import Source

DEFAULT_LOCK_TIMEOUT_S = 1800.0
"""How long another process may build."""
_CHECK_INTERVAL_S = 0.2

logger = logging.getLogger(__name__)


def lerobot_home() -> Path:
    """LeRobot's folder: ``$HF_LEROBOT_HOME``, else ``lerobot`` in Hugging Face's own."""
    home = os.environ.get("HF_LEROBOT_HOME")
    if home:
        return Path(home).expanduser()
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    hugging_face = os.environ.get("HF_HOME") or f"{caches}/huggingface"
    return Path(os.path.expandvars(hugging_face)).expanduser() / "lerobot"


def sidecar_cache_dir() -> Path:
    """Where sidecars are kept, a folder for each dataset."""
    return lerobot_home() / "streaming-sidecars"


@dataclass(frozen=True, slots=True)
class SidecarPlaces:
    """Where a dataset's sidecar may lie in the cache."""

    complete: Path
    """The sidecar of all video files."""
    own: Path
    """The sidecar of the files wanted: the same, or that of a subset."""

    @property
    def subset(self) -> bool:
        """True where not all video files are wanted."""
        return self.own != self.complete


def sidecar_places(
    source: Source,
    paths: Collection[str],
    *,
    dataset_paths: Collection[str],
    cache_dir: Path | None = None,
) -> SidecarPlaces:
    """Name the files that may hold the index of ``paths``.

    Args:
        source: Where the dataset is.
        paths: The video files wanted.
        dataset_paths: All video files of the dataset.
        cache_dir: Folder of all datasets' sidecars; None for :func:`sidecar_cache_dir`.
    """
    files = source.list_files()
    folder = cache_dir if cache_dir is not None else sidecar_cache_dir()
    folder = folder / sidecar_folder(source.identity.repo_id)
    complete = folder / sidecar_name(source.identity, source_fingerprints(files, dataset_paths))
    if set(paths) >= set(dataset_paths):
        return SidecarPlaces(complete, complete)
    own = sidecar_name(source.identity, source_fingerprints(files, paths), paths)
    return SidecarPlaces(complete, folder / own)


def open_sidecar(
    source: Source,
    paths: Collection[str],
    *,
    dataset_paths: Collection[str],
    lock_timeout_s: float = DEFAULT_LOCK_TIMEOUT_S,
    workers: int = DEFAULT_WORKERS,
    max_probe_bytes: int = DEFAULT_PROBE_BYTES,
    cache_dir: Path | None = None,
    progress: Callable[[BuildProgress], None] | None = None,
) -> Sidecar:
    """Open the sidecar of a dataset's video files, and build it first if need be.

    A usable file in the cache is opened without a lock, so that the cache may be read-only.
    Otherwise one process builds while the others wait. A sidecar of all files serves any
    part of them; that of a part has its own name and serves only itself.

    Args:
        source: Where the dataset is.
        paths: The video files wanted.
        dataset_paths: All video files of the dataset.
        lock_timeout_s: How long to wait for another process that builds.
        workers: Files read at once.
        max_probe_bytes: Most bytes read of one file to find its movie box.
        cache_dir: Folder of all datasets' sidecars; None for :func:`sidecar_cache_dir`.
        progress: Called after each file that is indexed.

    Returns:
        A sidecar that describes these files as they are now. The caller closes it.

    Raises:
        LockTimeoutError: Another process held the lock for too long.
        SidecarError: Files cannot be indexed, or the cache cannot be written.
    """
    places = sidecar_places(source, paths, dataset_paths=dataset_paths, cache_dir=cache_dir)
    found = _open_usable(places, source, paths)
    if found is not None:
        return found
    with _locked(places.own, lock_timeout_s):
        found = _open_usable(places, source, paths)
        if found is not None:
            return found
        logger.info("indexing %d video files into %s", len(set(paths)), places.own)
        build_sidecar(
            source,
            paths,
            output=places.own,
            workers=workers,
            max_probe_bytes=max_probe_bytes,
            progress=progress,
            subset=places.subset,
        )
        return Sidecar(places.own)


def _open_usable(places: SidecarPlaces, source: Source, paths: Collection[str]) -> Sidecar | None:
    """The first cached sidecar that describes these files, if there is one."""
    for place in dict.fromkeys((places.complete, places.own)):
        try:
            sidecar = Sidecar(place)
        except SidecarError as error:
            logger.debug("not used: %s", error)
            continue
        except FormatError as error:
            logger.info("not used: %s", error)
            continue
        reason = usable(sidecar.header, source.identity, source.list_files(), paths)
        if reason is None and sidecar.subset != (place == places.own and places.subset):
            reason = "a subset under the name of a whole, or a whole under that of a subset"
        if reason is None:
            return sidecar
        sidecar.close()
        logger.info("not used: %s: %s", place, reason)
    return None


@contextmanager
def _locked(sidecar: Path, timeout_s: float) -> Iterator[None]:
    """Hold the one lock of a sidecar, shared with LeRobot's own."""
    path = sidecar.with_name(f"{sidecar.name}.lock")
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
