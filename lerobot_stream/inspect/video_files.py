"""Which frames of which videos are whose, as far as the files can be indexed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from lerobot_stream.dataset.episodes import EpisodeTable
from lerobot_stream.dataset.holders import Holders
from lerobot_stream.dataset.info import Info
from lerobot_stream.errors import FormatError
from lerobot_stream.inspect.finding import Finding, file_fault, span_finding
from lerobot_stream.inspect.kinds import FILE_DAMAGED
from lerobot_stream.mp4.index import Movie, Mp4Index
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

    sidecar: Sidecar | None
    """Sample tables of the files that can be indexed; None without any."""
    spans: Spans
    """Samples of each episode and camera."""
    findings: tuple[Finding, ...]
    """Torn files, and episodes whose frames are not all there."""

    def movies(self, paths: Collection[str]) -> dict[str, Movie]:
        """Records of some files, of those that can be indexed."""
        if self.sidecar is None:
            return {}
        known = self.sidecar.header.movies
        return {path: known[path] for path in paths if path in known}


def read_video_files(
    source: Source,
    info: Info,
    table: EpisodeTable,
    *,
    besides: Collection[str] = (),
    progress: Callable[[BuildProgress], None] | None = None,
) -> VideoFiles:
    """Index every video file that the metadata names, through the cached sidecar.

    Args:
        source: Where the files are.
        info: What info.json says.
        table: The dataset's episodes.
        besides: Files known to be missing or empty, which are passed over.
        progress: Called after each file that has to be indexed first.

    Returns:
        What the files hold; a file that cannot be indexed is a finding and hides no other.
    """
    keys = info.video_keys
    every = sorted({path for key in keys for path in table.video_paths[key]})
    paths = [path for path in every if path not in set(besides)]
    findings: list[Finding] = []
    sidecar = _open(source, table, paths, every, findings, progress)
    spans = plan_spans(
        sidecar.index if sidecar is not None else _no_index,
        table,
        keys,
        paths=paths if sidecar is not None else [],
        fps=info.fps,
        tolerance_s=TOLERANCE_S,
    )
    null = {(int(e), key) for key in keys for e in table.episode_index[table.video_file[key] < 0]}
    findings += [
        span_finding(problem)
        for problem in spans.problems
        if (problem.episode, problem.video_key) not in null
    ]
    return VideoFiles(sidecar, spans, tuple(findings))


def _open(
    source: Source,
    table: EpisodeTable,
    paths: list[str],
    every: list[str],
    findings: list[Finding],
    progress: Callable[[BuildProgress], None] | None,
) -> Sidecar | None:
    """Open the sidecar of all files, or of those that can be indexed, which ``paths`` keeps."""
    if not paths:
        return None
    try:
        return open_sidecar(source, paths, dataset_paths=every, progress=progress)
    except BuildFailedError as error:
        holders = Holders(table)
        for path, reason in error.failures:
            holds, lost = holders.describe(path), holders.episodes(path)
            fault = FormatError(reason, hint=error.hint)
            findings.append(file_fault(FILE_DAMAGED, fault, path, episodes=lost, holds=holds))
            paths.remove(path)
    if not paths:
        return None
    return open_sidecar(source, paths, dataset_paths=every, progress=progress)


def _no_index(path: str) -> Mp4Index:
    raise FormatError("no video can be read", path=path)
