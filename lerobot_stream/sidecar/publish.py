"""Publishing a sidecar beside its dataset, once it has been found right."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lerobot_stream.errors import FormatError, SidecarError, SourceError, StreamError
from lerobot_stream.sidecar.identity import (
    can_change_unseen,
    is_pinned,
    sidecar_name,
    source_fingerprints,
)
from lerobot_stream.sidecar.members import MEMBERS
from lerobot_stream.sidecar.schema import Sidecar
from lerobot_stream.sidecar.validate import Problem, Undecided, validate_sidecar
from lerobot_stream.source.base import Source
from lerobot_stream.source.local import LocalSource
from lerobot_stream.source.published import (
    PublishedFile,
    fetch_published,
    find_published,
    published_path,
)
from lerobot_stream.source.publishing import BranchMovedError, Place, find_place

_SHOWN = 20
"""Problems named in one error; validate-sidecar shows them all."""
_BUILD_ANEW = "build it again with lerobot-stream build-sidecar"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Publication:
    """Where a sidecar is published."""

    address: str
    """Page or address of the file."""
    steps: tuple[str, ...]
    """What was done, or would have been; empty where equal content was there already."""


def publishing_place(source: Source) -> Place:
    """Give the place where a dataset's sidecars are published.

    Raises:
        SidecarError: There is none: it is a folder, or an address outside the Hub.
    """
    place = find_place(source)
    if place is not None:
        return place
    folder = isinstance(source, LocalSource)
    what = "this dataset is a folder" if folder else "this address is not on the Hub"
    raise SidecarError(
        f"there is nothing to publish to: {what}",
        path=source.identity.data_root,
        hint="nothing needs to be done, training uses the sidecar in the cache; "
        "only dataset repositories and buckets on the Hub can hold a published one",
    )


def publish_sidecar(
    file: Path, source: Source, *, dataset_paths: Collection[str], dry_run: bool = False
) -> Publication:
    """Publish a sidecar for everyone who reads the dataset.

    It goes to a branch of its own, made from the pinned commit if it is not there, or into the
    bucket, under the name by which readers look for it. Nothing else of the dataset changes,
    and earlier sidecars stay. When another publisher is faster, it is tried once more.

    Args:
        file: The ``.npz`` file.
        source: The dataset, at the commit that the sidecar describes.
        dataset_paths: All its video files.
        dry_run: Write nothing, only say what would be done.

    Raises:
        SidecarError: There is no place for it, or it is not one that may be published.
        SourceError: The Hub refuses, or cannot be asked.
    """
    place = publishing_place(source)
    check_publishable(file, source, dataset_paths)
    fingerprints = source_fingerprints(source.list_files(), dataset_paths)
    name = sidecar_name(source.identity, fingerprints)
    path = published_path(name)
    address = place.address(path)
    for is_last in (False, True):
        found = find_published(source, name)
        if found is not None and _holds_same(found, file):
            return Publication(address, ())
        steps = tuple(place.plan_steps(path))
        if dry_run:
            break
        try:
            title = f"Add the video index of {source.identity.revision[:12]}"
            place.write(file, path, title=title)
            break
        except BranchMovedError as error:
            if is_last:
                raise
            logger.info("%s; trying once more", error)
    return Publication(address, steps)


def check_publishable(file: Path, source: Source, dataset_paths: Collection[str]) -> None:
    """Refuse what must not be published.

    Raises:
        FormatError: It is no sidecar, or of another schema.
        SidecarError: It is a subset's, another dataset's, not of one state of the dataset, or
            wrong.
        SourceError: The dataset cannot be read, so that nothing was decided.
    """
    try:
        sidecar = Sidecar(file)
    except FormatError as error:
        error.hint = _BUILD_ANEW
        raise
    sidecar.close()
    header, ours, place = sidecar.header, source.identity, str(file)
    if header.subset:
        message = "it holds a part of the dataset's video files, only a whole can be published"
        raise SidecarError(message, path=place, hint=f"{_BUILD_ANEW}, without --episodes")
    if is_pinned(ours.data_root) and not is_pinned(header.identity.data_root):
        message = f"its data_root {header.identity.data_root!r} is not pinned to a commit"
        raise SidecarError(message, path=place, hint=_BUILD_ANEW)
    if can_change_unseen(ours, source.list_files(), dataset_paths):
        message = "neither a commit nor content hashes tell which state it describes"
        raise SidecarError(message, path=place)
    problems = validate_sidecar(file, source, paths=dataset_paths)
    if problems:
        raise _refusal(problems, place, ours.data_root)


def _refusal(problems: list[Problem], place: str, data_root: str) -> StreamError:
    if all(isinstance(problem, Undecided) for problem in problems):
        first = problems[0]
        return SourceError(f"{first.found}; nothing was decided", path=first.file)
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    message = f"not a sidecar of {data_root} as it is, {count}"
    error = SidecarError(message, path=place, hint=_BUILD_ANEW)
    for problem in problems[:_SHOWN]:
        error.add_note(str(problem))
    if len(problems) > _SHOWN:
        error.add_note(f"and {len(problems) - _SHOWN} more; validate-sidecar shows them all")
    return error


def _holds_same(found: PublishedFile, file: Path) -> bool:
    """Compare what is published with a sidecar, number by number."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "published.npz"
        try:
            with copy.open("wb") as stream:
                fetch_published(found, stream)
        except OSError as error:
            message = f"cannot be written: {error.strerror or error}"
            raise SidecarError(message, path=str(copy), hint="make space, or set TMPDIR") from error
        ours, theirs = Sidecar(file), None
        try:
            theirs = Sidecar(copy)
            return _is_same(ours, theirs)
        except FormatError as error:
            logger.info("what is published is no valid sidecar: %s", error.message)
            return False
        finally:
            ours.close()
            if theirs is not None:
                theirs.close()


def _is_same(ours: Sidecar, theirs: Sidecar) -> bool:
    if ours.header != theirs.header:
        return False
    return all(
        np.array_equal(getattr(one, column), getattr(other, column))
        for one, other in ((ours.index(path), theirs.index(path)) for path in ours.paths)
        for column in MEMBERS.values()
    )
