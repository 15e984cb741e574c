"""Building a sidecar: the movie boxes of many files, a few at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from lerobot_stream.errors import (
    AccessError,
    FormatError,
    SidecarError,
    StreamError,
)
from lerobot_stream.mp4.index import Movie
from lerobot_stream.mp4.probe import read_mp4_index
from lerobot_stream.sidecar.archive import Member, Spool, compress, write_archive
from lerobot_stream.sidecar.choices import PROBE_BYTES, WORKERS
from lerobot_stream.sidecar.identity import source_fingerprints
from lerobot_stream.sidecar.install import atomic_file, disk_fault
from lerobot_stream.sidecar.manifest import SidecarHeader, parse_manifest
from lerobot_stream.sidecar.members import (
    MEMBERS,
    index_faults,
    index_to_bytes,
    member_name,
    text_to_bytes,
)
from lerobot_stream.sidecar.schema import MANIFEST, MAX_MANIFEST_BYTES
from lerobot_stream.source.base import Source
from lerobot_stream.source.listing import find_file


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """How far a build is, after each file."""

    path: str
    """The file just finished."""
    done: int
    """Files finished, failed ones included."""
    total: int
    """Files of the build."""
    failures: int
    """Files that could not be indexed."""
    read_bytes: int
    """Bytes read since the build began."""


class BuildFailedError(SidecarError):
    """Some files cannot be indexed, so no sidecar was made."""

    failures: tuple[tuple[str, str], ...] = ()
    """Path and reason of each, sorted by path."""


def build_sidecar(
    source: Source,
    paths: Collection[str],
    *,
    output: Path,
    workers: int = WORKERS,
    max_probe_bytes: int = PROBE_BYTES,
    progress: Callable[[BuildProgress], None] | None = None,
    subset: bool = False,
) -> Path:
    """Read the movie box of every file and install the sidecar, or nothing.

    Memory holds the arrays of the files being read, and the records of all.

    Args:
        source: Where the files are.
        paths: The video files.
        output: The sidecar to make; replaced as a whole.
        workers: Files read at once.
        max_probe_bytes: Most bytes read of one file to find its movie box.
        progress: Called after each file, from the calling thread.
        subset: Mark it as not holding all video files of the dataset.

    Returns:
        ``output``.

    Raises:
        BuildFailedError: Files cannot be indexed; all of them are listed.
        AccessError: The server refuses; nothing further was asked.
        SidecarError: The disk refuses.
    """
    if workers < 1:
        raise ValueError(f"workers is {workers}, wanted at least 1")
    wanted = sorted(set(paths))
    files = source.list_files()
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with Spool(output.parent) as spool:
            job = _Job(source, spool, max_probe_bytes)
            movies = _read_all(job, wanted, workers, progress)
            header = SidecarHeader(
                source.identity, source_fingerprints(files, wanted), movies, subset
            )
            with atomic_file(output) as stream:
                write_archive(stream, _members(header, spool))
    except OSError as error:
        raise disk_fault(error, output) from error
    return output


@dataclass(frozen=True, slots=True)
class _Job:
    """What every file's reading needs."""

    source: Source
    spool: Spool
    max_probe_bytes: int

    def read(self, number: int, path: str) -> Movie:
        """Index one file; its arrays go to the spool."""
        index = read_mp4_index(
            lambda span: self.source.read(path, span),
            file_size=find_file(self.source, path).size,
            path=path,
            max_probe_bytes=self.max_probe_bytes,
        )
        for member, fault in index_faults(index):
            raise FormatError(f"a sidecar cannot hold it: {fault}", path=path, where=member)
        arrays = index_to_bytes(index)
        self.spool.add([compress(member_name(number, name), arrays[name]) for name in MEMBERS])
        return index.movie


def _read_all(
    job: _Job,
    paths: list[str],
    workers: int,
    progress: Callable[[BuildProgress], None] | None,
) -> dict[str, Movie]:
    movies: dict[str, Movie] = {}
    failures: dict[str, StreamError] = {}
    before = job.source.count.bytes
    executor = ThreadPoolExecutor(workers, thread_name_prefix="index")
    try:
        futures = {executor.submit(job.read, i, path): path for i, path in enumerate(paths)}
        for future in as_completed(futures):
            path = futures[future]
            error = _fault(future)
            if error is None:
                movies[path] = future.result()
            else:
                failures[path] = error
            if progress is not None:
                done = len(movies) + len(failures)
                read_bytes = job.source.count.bytes - before
                progress(BuildProgress(path, done, len(paths), len(failures), read_bytes))
    finally:
        executor.shutdown(cancel_futures=True)
    if failures:
        raise _failed(failures, len(paths))
    return {path: movies[path] for path in paths}


def _fault(future: Future[Movie]) -> StreamError | None:
    """The fault of one file; what concerns all files is raised."""
    error = future.exception()
    if error is None:
        return None
    if isinstance(error, StreamError) and not isinstance(error, AccessError):
        return error
    raise error


def _failed(failures: Mapping[str, StreamError], total: int) -> BuildFailedError:
    """One error for all files: the only one as it is, several as a count and a note each."""
    reasons = tuple((path, _reason(path, failures[path])) for path in sorted(failures))
    hints = {error.hint for error in failures.values()}
    hint = hints.pop() if len(hints) == 1 else None
    if len(reasons) == 1:
        path, reason = reasons[0]
        failed = BuildFailedError(reason, path=path, hint=hint)
    else:
        message = f"{len(reasons)} of {total} video files cannot be indexed"
        failed = BuildFailedError(message, hint=hint)
        for path, reason in reasons:
            failed.add_note(f"{path}: {reason}")
    failed.failures = reasons
    return failed


def _reason(path: str, error: StreamError) -> str:
    parts = (error.path if error.path != path else None, error.where, error.message)
    return ": ".join(part for part in parts if part)


def _members(header: SidecarHeader, spool: Spool) -> Iterator[Member]:
    """All members in the order of the archive."""
    manifest = header.to_bytes()
    if len(manifest) > MAX_MANIFEST_BYTES:
        raise SidecarError(
            f"the manifest of {len(header.movies)} files takes {len(manifest)} bytes,"
            f" at most {MAX_MANIFEST_BYTES}"
        )
    parse_manifest(manifest, path="the new sidecar")
    yield compress(MANIFEST, text_to_bytes(manifest))
    for number in range(len(header.movies)):
        for member in MEMBERS:
            yield spool.take(member_name(number, member))
