"""The cache of sidecars: one valid file opens without a lock, one process fills it for all."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from lerobot_stream.errors import FormatError, LockTimeoutError, SidecarError
from lerobot_stream.sidecar.build import BuildProgress, build_sidecar
from lerobot_stream.sidecar.choices import LOCK_TIMEOUT_S, PROBE_BYTES, WORKERS
from lerobot_stream.sidecar.download import download_sidecar
from lerobot_stream.sidecar.identity import (
    sidecar_folder,
    sidecar_name,
    source_fingerprints,
    usable,
)
from lerobot_stream.sidecar.lock import locked
from lerobot_stream.sidecar.schema import Sidecar
from lerobot_stream.source.base import Source
from lerobot_stream.source.home import lerobot_home

SUBSET_DOWNLOAD_BYTES = 64 << 20
"""Largest published sidecar that is fetched, for all files, where only some are wanted."""

logger = logging.getLogger(__name__)


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
    lock_timeout_s: float = LOCK_TIMEOUT_S,
    workers: int = WORKERS,
    max_probe_bytes: int = PROBE_BYTES,
    cache_dir: Path | None = None,
    progress: Callable[[BuildProgress], None] | None = None,
) -> Sidecar:
    """Open the sidecar of a dataset's video files, and download or build it first if need be.

    A usable file in the cache is opened without a lock, so that the cache may be read-only.
    Otherwise one process downloads what is published, or builds, while the others wait. A
    sidecar of all files serves any part of them; that of a part has its own name and serves
    only itself. For a folder nothing is asked of the network.

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
        SourceError: The Hub did not say whether a sidecar is published.
    """
    places = sidecar_places(source, paths, dataset_paths=dataset_paths, cache_dir=cache_dir)
    found = _open_usable(places, source, paths)
    if found is not None:
        return found
    with locked(places.own, timeout_s=lock_timeout_s):
        found = _open_usable(places, source, paths)
        if found is not None:
            return found
        if _download(places, source, dataset_paths):
            return Sidecar(places.complete)
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


def _download(places: SidecarPlaces, source: Source, dataset_paths: Collection[str]) -> bool:
    """Install what is published as the sidecar of all files; our own lock is held."""
    if not places.subset:
        return download_sidecar(source, dataset_paths, output=places.complete)
    try:
        with locked(places.complete, timeout_s=0):
            return download_sidecar(
                source, dataset_paths, output=places.complete, max_bytes=SUBSET_DOWNLOAD_BYTES
            )
    except LockTimeoutError:
        return False  # another process makes it just now; a part is indexed sooner


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
