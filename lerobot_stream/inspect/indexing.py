"""Building a sidecar and checking it against the episodes that need it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lerobot_stream.dataset.holders import video_paths
from lerobot_stream.dataset.metadata import read_metadata, select_episodes
from lerobot_stream.errors import DatasetError
from lerobot_stream.inspect.checks.files import check_pointers
from lerobot_stream.inspect.checks.rows import check_row_places
from lerobot_stream.inspect.finding import Finding, span_finding
from lerobot_stream.inspect.row_files import read_row_files
from lerobot_stream.inspect.video_files import TOLERANCE_S
from lerobot_stream.sidecar.build import BuildProgress, build_sidecar
from lerobot_stream.sidecar.losses import losses_noted
from lerobot_stream.sidecar.schema import Sidecar
from lerobot_stream.sidecar.spans import plan_spans
from lerobot_stream.sidecar.store import open_sidecar
from lerobot_stream.source.base import Source


@dataclass(frozen=True, slots=True)
class BuiltSidecar:
    """A sidecar, and what it shows about the dataset."""

    path: Path
    """The file."""
    num_files: int
    """Video files it describes."""
    subset: bool
    """True where it does not hold all video files of the dataset."""
    dataset_paths: tuple[str, ...]
    """All video files of the dataset."""
    findings: tuple[Finding, ...]
    """What is wrong with the episodes that were asked for."""


def index_videos(
    source: Source,
    *,
    episodes: Sequence[int] | None,
    output: Path | None,
    workers: int,
    max_probe_bytes: int,
    progress: Callable[[BuildProgress], None] | None,
) -> BuiltSidecar:
    """Build the sidecar of a dataset, or find it in the cache.

    Args:
        source: Where the dataset is.
        episodes: Episodes whose files are wanted; None for all.
        output: File to write; None for the cache, where a usable sidecar is kept.
        workers: Files read at once.
        max_probe_bytes: Most bytes read of one file to find its movie box.
        progress: Called after each file that is indexed.

    Returns:
        The sidecar with what was found; errors among the findings are the caller's to raise.

    Raises:
        DatasetError: The dataset has no video, or no episode.
        BuildFailedError: Files cannot be indexed; each is a note with what is lost.
    """
    meta = read_metadata(source)
    table = meta.episodes
    numbers = select_episodes(table, episodes, None)
    everything = video_paths(table, meta.info.video_keys, np.arange(len(table)))
    wanted = video_paths(table, meta.info.video_keys, numbers)
    if not wanted:
        raise DatasetError(
            "the dataset has no episodes" if not len(table) else "the dataset has no videos",
            path=source.identity.data_root,
        )
    with losses_noted(table):
        sidecar = _build(source, wanted, everything, output, workers, max_probe_bytes, progress)
    try:
        spans = plan_spans(
            sidecar.index,
            table,
            meta.info.video_keys,
            paths=wanted,
            fps=meta.info.fps,
            tolerance_s=TOLERANCE_S,
        )
    finally:
        sidecar.close()
    chosen = set(table.episode_index[numbers].tolist())
    rows = read_row_files(source, meta.info, table)
    found = [*rows.faults, *check_pointers(table), *check_row_places(rows, table)]
    found += map(span_finding, spans.problems)
    return BuiltSidecar(
        path=sidecar.path,
        num_files=len(sidecar.paths),
        subset=sidecar.subset,
        dataset_paths=tuple(everything),
        findings=tuple(f for f in found if not f.episodes or chosen & set(f.episodes)),
    )


def read_video_paths(source: Source) -> list[str]:
    """List the video files that the metadata of a dataset points to, sorted."""
    meta = read_metadata(source)
    return video_paths(meta.episodes, meta.info.video_keys, np.arange(len(meta.episodes)))


def _build(
    source: Source,
    wanted: list[str],
    everything: list[str],
    output: Path | None,
    workers: int,
    max_probe_bytes: int,
    progress: Callable[[BuildProgress], None] | None,
) -> Sidecar:
    if output is None:
        return open_sidecar(
            source,
            wanted,
            dataset_paths=everything,
            workers=workers,
            max_probe_bytes=max_probe_bytes,
            progress=progress,
        )
    path = build_sidecar(
        source,
        wanted,
        output=output,
        workers=workers,
        max_probe_bytes=max_probe_bytes,
        progress=progress,
        subset=len(wanted) < len(everything),
    )
    return Sidecar(path)
