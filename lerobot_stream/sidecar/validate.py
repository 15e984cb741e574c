"""Everything that is wrong with a sidecar, for its own sake or for a dataset's."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from lerobot_stream.errors import MissingFileError, SourceError, StreamError
from lerobot_stream.mp4.index import Movie, Mp4Index
from lerobot_stream.mp4.probe import read_mp4_index
from lerobot_stream.sidecar.choices import PROBE_BYTES, WORKERS
from lerobot_stream.sidecar.identity import is_pinned
from lerobot_stream.sidecar.manifest import SidecarHeader
from lerobot_stream.sidecar.members import MEMBERS
from lerobot_stream.sidecar.schema import Sidecar
from lerobot_stream.source.base import Source


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is not as it should be."""

    file: str
    """The sidecar, or the video file it is about."""
    place: str
    """The field, array or sample."""
    expected: str
    """What should be there."""
    found: str
    """What is there."""

    def __str__(self) -> str:
        """All of it on one line."""
        return f"{self.file}: {self.place}: wanted {self.expected}, found {self.found}"


_WANTED = "something to compare with; nothing was decided"


@dataclass(frozen=True, slots=True)
class Undecided(Problem):
    """What could not be compared, because the dataset could not be read."""


def undecided(error: StreamError, *, file: str) -> Undecided:
    """Turn a failure of the source into what it leaves open.

    Args:
        error: The failure.
        file: The video file, or the dataset's address, that could not be read.
    """
    return Undecided(error.path or file, "source", _WANTED, error.message)


def is_undecided(error: StreamError) -> bool:
    """True where the source failed, so that nothing can be said; a file that is not there is."""
    return isinstance(error, SourceError) and not isinstance(error, MissingFileError)


def validate_sidecar(
    file: Path,
    source: Source | None,
    *,
    paths: Collection[str] | None = None,
    recheck: bool = False,
    workers: int = WORKERS,
    max_probe_bytes: int = PROBE_BYTES,
) -> list[Problem]:
    """Find all that is wrong with a sidecar.

    Args:
        file: The ``.npz`` file.
        source: The dataset it should describe; None to look at the sidecar alone.
        paths: All video files of the dataset; None where that is not to be checked.
        recheck: Read every movie box again and compare all arrays.
        workers: Files looked at together.
        max_probe_bytes: Most bytes read of one file to find its movie box.

    Returns:
        Every problem; none where the sidecar is right. Where the source fails, it is asked no
        further, and what that leaves open is an :class:`Undecided` one.
    """
    try:
        sidecar = Sidecar(file)
    except StreamError as error:
        return [_fault(str(file), error, "a schema-3 sidecar")]
    try:
        problems: list[Problem] = []
        if source is not None:
            problems += _validate_identity(str(file), sidecar.header, source)
            problems += _validate_files(sidecar.header, source)
        if paths is not None:
            problems += _validate_coverage(str(file), sidecar.header, paths)

        lost = threading.Event()

        def look(path: str) -> list[Problem]:
            again = source if recheck and not lost.is_set() else None
            found = list(_validate_file(sidecar, path, again, max_probe_bytes))
            if any(isinstance(problem, Undecided) for problem in found):
                lost.set()
            return found

        with ThreadPoolExecutor(workers, thread_name_prefix="validate") as executor:
            for found in executor.map(look, sidecar.paths):
                problems += found
        return problems
    finally:
        sidecar.close()


def _fault(file: str, error: StreamError, expected: str) -> Problem:
    """A problem that was met as an error."""
    parts = (error.path if error.path != file else None, error.where)
    place = ": ".join(part for part in parts if part)
    return Problem(file, place or "file", expected, error.message)


def _validate_identity(file: str, header: SidecarHeader, source: Source) -> Iterator[Problem]:
    theirs, ours = header.identity, source.identity
    for field in fields(ours):
        found, expected = getattr(theirs, field.name), getattr(ours, field.name)
        if field.name == "revision" and is_pinned(ours.data_root):
            continue  # a tag and its commit share one sidecar; data_root holds the commit
        if found != expected:
            yield Problem(file, f"sidecar.{field.name}", repr(expected), repr(found))


def _validate_files(header: SidecarHeader, source: Source) -> Iterator[Problem]:
    """Sizes and fingerprints against the listing."""
    try:
        files = source.list_files()
    except StreamError as error:
        yield undecided(error, file=source.identity.data_root)
        return
    for path, size in header.source_files:
        info = files.get(path)
        if info is None:
            yield Problem(path, "file", "a file of the dataset", "none")
            continue
        if info.size != size:
            yield Problem(path, "size", f"{info.size} bytes", f"{size} bytes in the sidecar")
        fingerprint = header.fingerprints.get(path, "")
        if info.fingerprint != fingerprint:
            yield Problem(path, "fingerprint", repr(info.fingerprint), repr(fingerprint))


def _validate_coverage(
    file: str, header: SidecarHeader, paths: Collection[str]
) -> Iterator[Problem]:
    """The files described against those of the dataset."""
    known = set(header.paths)
    if not header.subset:
        for path in sorted(set(paths) - known):
            yield Problem(file, path, "a video file of the dataset", "not in the sidecar")
    for path in sorted(known - set(paths)):
        yield Problem(file, path, "only video files that episodes point to", "one more")


def _validate_file(
    sidecar: Sidecar, path: str, source: Source | None, max_probe_bytes: int
) -> Iterator[Problem]:
    """The arrays of one file, for themselves and against its movie box."""
    try:
        index = sidecar.index(path)
    except StreamError as error:
        yield _fault(str(sidecar.path), error, "a sample table")
        return
    yield from _validate_times(path, index)
    if source is None:
        return
    try:
        again = read_mp4_index(
            lambda span: source.read(path, span),
            file_size=index.movie.file_size,
            path=path,
            max_probe_bytes=max_probe_bytes,
        )
    except StreamError as error:
        wanted = "a movie box as indexed"
        lost = is_undecided(error)
        yield undecided(error, file=path) if lost else _fault(path, error, wanted)
        return
    yield from _compare_movies(path, index.movie, again.movie)
    yield from _compare_columns(path, index, again)


def _validate_times(path: str, index: Mp4Index) -> Iterator[Problem]:
    """Presentation times against the durations and composition offsets they come from."""
    timescale = index.movie.timescale
    dts = np.cumsum(index.duration) - index.duration
    cts_s = (dts + index.composition_offset) / timescale
    shift = index.pts_s - cts_s
    off = np.abs(shift - shift[0]) * timescale
    if (off > 0.5).any():
        at = int(np.argmax(off))
        wanted = f"{cts_s[at] + shift[0]:.9g} s"
        yield Problem(path, f"sample_pts[{at}]", wanted, f"{index.pts_s[at]:.9g} s")
    if not len(index.sync):
        yield Problem(path, "sync_samples", "at least one sync sample", "none")


def _compare_movies(path: str, found: Movie, expected: Movie) -> Iterator[Problem]:
    for field in fields(Movie):
        old, new = getattr(found, field.name), getattr(expected, field.name)
        if old != new:
            yield Problem(path, f"mp4.{field.name}", _text(new), _text(old))


def _compare_columns(path: str, found: Mp4Index, expected: Mp4Index) -> Iterator[Problem]:
    for member, column in MEMBERS.items():
        old, new = getattr(found, column), getattr(expected, column)
        if len(old) != len(new):
            yield Problem(path, member, f"{len(new)} numbers", f"{len(old)} numbers")
        elif (old != new).any():
            at = int(np.argmax(old != new))
            differs = int((old != new).sum())
            more = f", and {differs - 1} more differ" if differs > 1 else ""
            yield Problem(path, f"{member}[{at}]", f"{new[at]}", f"{old[at]}{more}")


def _text(value: object) -> str:
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
