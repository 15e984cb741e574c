"""Installing a published sidecar, once it has been found right."""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path

from lerobot_stream.errors import FormatError, SidecarError
from lerobot_stream.sidecar.identity import usable
from lerobot_stream.sidecar.install import atomic_file
from lerobot_stream.sidecar.schema import Sidecar
from lerobot_stream.source.base import Source
from lerobot_stream.source.published import fetch_published, find_published

logger = logging.getLogger(__name__)


class _UnfitError(Exception):
    """The published sidecar describes something else."""


def download_sidecar(
    source: Source,
    dataset_paths: Collection[str],
    *,
    output: Path,
    max_bytes: int | None = None,
) -> bool:
    """Install the published sidecar of all video files, if there is one that may be used.

    Every array is looked at before anything is installed. What is published but of no use is
    logged and taken for nothing; what the Hub does not say is an error.

    Args:
        source: The dataset.
        dataset_paths: All its video files.
        output: Where to install; its name is that of the published file.
        max_bytes: A larger one is left alone; None: any size will do.

    Returns:
        True where ``output`` has been installed.

    Raises:
        SourceError: The Hub did not say whether there is one, or did not give all of it.
        SidecarError: The disk refuses.
    """
    found = find_published(source, output.name)
    if found is None:
        return False
    if max_bytes is not None and found.size > max_bytes:
        logger.info("not used: the published sidecar has %d bytes, for all files", found.size)
        return False
    place = found.source.identity.data_root
    logger.info("downloading the published sidecar, %d bytes, from %s", found.size, place)

    def check(temporary: Path) -> None:
        reason = _find_fault(temporary, source, dataset_paths)
        if reason is not None:
            raise _UnfitError(reason)

    try:
        with atomic_file(output, check=check) as stream:
            fetch_published(found, stream)
    except _UnfitError as error:
        logger.warning("not used: the published sidecar %s: %s", found.path, error)
        return False
    return True


def _find_fault(file: Path, source: Source, dataset_paths: Collection[str]) -> str | None:
    """Say why a file is not the sidecar of these video files as they are; None: it is."""
    try:
        sidecar = Sidecar(file)
        try:
            for path in sidecar.paths:
                sidecar.index(path)
        finally:
            sidecar.close()
    except (FormatError, SidecarError) as error:
        return str(error).replace(f"{file}: ", "")
    if sidecar.subset:
        return "it is marked as a subset"
    return usable(sidecar.header, source.identity, source.list_files(), dataset_paths)
