"""Which frames of which videos are whose, as far as the files can be indexed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lerobot_stream.dataset.holders import describe_holders
from lerobot_stream.dataset.metadata import DatasetMetadata
from lerobot_stream.errors import FormatError
from lerobot_stream.inspect.finding import Finding, file_fault
from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.sidecar.build import BuildFailedError, BuildProgress
from lerobot_stream.sidecar.schema import Sidecar
from lerobot_stream.sidecar.spans import Spans, plan_spans
from lerobot_stream.sidecar.store import open_sidecar
from lerobot_stream.source.base import Source

TOLERANCE_S = 1e-4
"""Drift that nobody is told about, as in training."""


@dataclass(frozen=True, slots=True, eq=False)
class VideoFiles:
    """The videos of a dataset, as far as they can be indexed."""

    spans: Spans
    """Samples of each episode and camera."""
    codecs: dict[str, str]
    """Sample entry of each camera's first file that can be read, by video key."""
    sizes: dict[str, tuple[int, int]]
    """``(height, width)`` of the same file, by video key."""
    findings: tuple[Finding, ...]
    """Torn files, and episodes whose frames are not all there."""


def read_video_files(
    source: Source, meta: DatasetMetadata, *, progress: Callable[[BuildProgress], None] | None
) -> VideoFiles:
    """Index every video file that the metadata names, through the cached sidecar.

    Args:
        source: Where the files are.
        meta: The dataset's metadata.
        progress: Called after each file that has to be indexed first.

    Returns:
        What the files hold; a file that cannot be indexed is a finding and hides no other.
    """
    table, keys = meta.episodes, meta.info.video_keys
    paths = sorted({path for key in keys for path in table.video_paths[key]})
    findings: list[Finding] = []
    sidecar, readable = _open(source, meta, paths, findings, progress)
    try:
        spans = plan_spans(
            sidecar.index if sidecar is not None else _no_index,
            table,
            keys,
            paths=readable,
            fps=meta.info.fps,
            tolerance_s=TOLERANCE_S,
        )
        first = {key: [path for path in table.video_paths[key] if path in readable] for key in keys}
        movies = {
            key: sidecar.header.movies[own[0]] for key, own in first.items() if sidecar and own
        }
    finally:
        if sidecar is not None:
            sidecar.close()
    findings += [
        Finding(p.severity, p.message, p.path, p.episode, p.video_key, p.hint)
        for p in spans.problems
    ]
    return VideoFiles(
        spans=spans,
        codecs={key: movie.codec for key, movie in movies.items()},
        sizes={key: (movie.height, movie.width) for key, movie in movies.items()},
        findings=tuple(findings),
    )


def _open(
    source: Source,
    meta: DatasetMetadata,
    paths: list[str],
    findings: list[Finding],
    progress: Callable[[BuildProgress], None] | None,
) -> tuple[Sidecar | None, list[str]]:
    """Open the sidecar of all files, or of those that can be indexed."""
    if not paths:
        return None, []
    try:
        return open_sidecar(source, paths, dataset_paths=paths, progress=progress), paths
    except BuildFailedError as error:
        for path, reason in error.failures:
            holds = describe_holders(meta.episodes, path)
            findings.append(file_fault(FormatError(reason), path, holds=holds))
        torn = {path for path, _ in error.failures}
    readable = [path for path in paths if path not in torn]
    if not readable:
        return None, []
    sidecar = open_sidecar(source, readable, dataset_paths=paths, progress=progress)
    return sidecar, readable


def _no_index(path: str) -> Mp4Index:
    raise FormatError("no video can be read", path=path)
