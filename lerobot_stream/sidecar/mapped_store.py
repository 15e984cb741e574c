"""The cache of mapped indexes: made once for each content of a sidecar, never written again."""

from __future__ import annotations

import logging
from pathlib import Path

from lerobot_stream.errors import FormatError, SidecarError
from lerobot_stream.sidecar.choices import LOCK_TIMEOUT_S
from lerobot_stream.sidecar.install import atomic_file
from lerobot_stream.sidecar.lock import locked
from lerobot_stream.sidecar.mapped import MappedIndex, remove_unheld
from lerobot_stream.sidecar.mapped_layout import GENERATION, write_mapped
from lerobot_stream.sidecar.schema import Sidecar
from lerobot_stream.source.home import lerobot_home

_DIGEST_LETTERS = 32

logger = logging.getLogger(__name__)


def mapped_cache_dir() -> Path:
    """Where mapped indexes are kept, beside those of LeRobot, which have other names."""
    return lerobot_home() / "streaming-indexes"


def mapped_name(sidecar: Sidecar) -> str:
    """File name of a sidecar's mapped form: one for each content and each layout of ours."""
    return f"stream-v{GENERATION}-{sidecar.content_digest()[:_DIGEST_LETTERS]}.idx"


def map_sidecar(
    sidecar: Sidecar,
    *,
    lock_timeout_s: float = LOCK_TIMEOUT_S,
    cache_dir: Path | None = None,
) -> MappedIndex | Sidecar:
    """Open the mapped form of a sidecar, and make it first if need be.

    One that is there is opened without a lock, so that the cache may be read-only. Otherwise one
    process makes it while the others wait; another content or layout has another file, so that
    nobody who reads an older one is disturbed. Of one place and layout, older ones that nobody
    reads are removed.

    Args:
        sidecar: An open sidecar; it is closed where its mapped form is returned.
        lock_timeout_s: How long to wait for another process that makes it.
        cache_dir: Folder of mapped indexes; None for :func:`mapped_cache_dir`.

    Returns:
        The mapped form; the sidecar itself, which serves as well but is read into the memory of
        each process, where the mapped form can neither be found nor made.
    """
    path = (cache_dir if cache_dir is not None else mapped_cache_dir()) / mapped_name(sidecar)
    mapped = _open(path)
    if mapped is None:
        try:
            with locked(path, timeout_s=lock_timeout_s):
                mapped = _open(path) or _make(path, sidecar)
        except (SidecarError, FormatError) as error:
            logger.warning("sample tables are read into each process: %s", error)
            return sidecar
    sidecar.close()
    return mapped


def _open(path: Path) -> MappedIndex | None:
    try:
        return MappedIndex(path)
    except SidecarError as error:
        logger.debug("not used: %s", error)
    except FormatError as error:
        logger.info("not used: %s", error)
    return None


def _make(path: Path, sidecar: Sidecar) -> MappedIndex:
    logger.info("mapping the sample tables of %d video files: %s", len(sidecar.paths), path)
    with atomic_file(path) as stream:
        write_mapped(stream, sidecar)
    made = MappedIndex(path)
    for other in path.parent.glob(f"stream-v{GENERATION}-*.idx"):
        if other != path and _is_replaced_by(made, other) and remove_unheld(other):
            logger.info("removed the sample tables of an earlier state of the dataset: %s", other)
    return made


def _is_replaced_by(made: MappedIndex, other: Path) -> bool:
    """True where another index is of the same files of the same place, as they were before."""
    older = _open(other)
    if older is None:
        return False
    same = (older.identity, older.subset) == (made.identity, made.subset)
    same = same and (not made.subset or older.paths == made.paths)
    older.close()
    return same
