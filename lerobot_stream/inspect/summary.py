"""What a dataset holds, episode by episode, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.dataset.episodes import EpisodeTable
from lerobot_stream.dataset.info import Info
from lerobot_stream.inspect.checks.card import check_card
from lerobot_stream.inspect.checks.episode_table import check_episode_table
from lerobot_stream.inspect.checks.features import check_features
from lerobot_stream.inspect.checks.files import absent_files, check_files
from lerobot_stream.inspect.checks.rows import check_row_groups, check_row_places
from lerobot_stream.inspect.checks.statistics import check_statistics
from lerobot_stream.inspect.checks.tasks import check_task_numbers, check_task_texts
from lerobot_stream.inspect.checks.values import (
    check_numbers,
    check_row_order,
    check_row_statistics,
    check_row_times,
)
from lerobot_stream.inspect.checks.video_spans import check_overlaps, check_span_lengths
from lerobot_stream.inspect.checks.videos import check_movies, check_video_times
from lerobot_stream.inspect.facts import Facts, read_facts
from lerobot_stream.inspect.finding import Finding
from lerobot_stream.inspect.kinds import SPAN_LENGTH
from lerobot_stream.inspect.row_files import RowFiles, read_row_files
from lerobot_stream.inspect.row_values import READ_BYTES, RowValues, read_row_values
from lerobot_stream.inspect.sketches import plan_sketches
from lerobot_stream.inspect.video_files import TOLERANCE_S, VideoFiles, read_video_files
from lerobot_stream.inspect.video_times import VideoTimes, read_video_times
from lerobot_stream.sidecar.build import BuildProgress
from lerobot_stream.source.base import Identity, Source

Cost = Literal["metadata", "probe", "deep"]
"""What may be read: metadata; also footers, movie boxes and some rows; also all rows and
pictures spread over the episodes."""


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """The whole dataset."""

    identity: Identity
    """Name, revision and address."""
    cost: Cost
    """What was read."""
    facts: Facts
    """Its metadata."""
    rows: RowFiles | None
    """Its data files; None where they were not looked at."""
    values: RowValues | None
    """Its rows; None where they were not looked at."""
    videos: VideoFiles | None
    """Its videos; None where they were not looked at."""
    times: VideoTimes | None
    """Times of its videos; None where they were not looked at."""
    findings: tuple[Finding, ...]
    """Everything found, of the dataset, its files and its episodes."""

    @property
    def info(self) -> Info:
        """What info.json says."""
        return self.facts.info

    @property
    def table(self) -> EpisodeTable:
        """The episodes that are listed in files that can be read."""
        return self.facts.table

    @property
    def num_frames(self) -> int:
        """Frames of all episodes."""
        return int(self.table.length.sum())

    @property
    def rows_bytes(self) -> int:
        """Bytes of the data files."""
        return self.bytes_of(self.table.data_paths)

    @property
    def video_bytes(self) -> int:
        """Bytes of the video files."""
        return sum(self.bytes_of(paths) for paths in self.table.video_paths.values())

    def bytes_of(self, paths: tuple[str, ...]) -> int:
        """Bytes of some files; those that are not there have none."""
        files = self.facts.files
        return sum(files[path].size for path in paths if path in files)

    def has(self, *severities: str) -> bool:
        """True where something was found that is so grave."""
        return any(finding.severity in severities for finding in self.findings)

    def drift_s(self) -> NDArray[np.float64]:
        """``(E,)`` Most seconds that a frame of any camera is off; NaN where unknown."""
        if self.times is None or not self.times.drift_s.shape[1]:
            return np.full(len(self.table), np.nan)
        known = np.isfinite(self.times.drift_s)
        worst = np.where(known, self.times.drift_s, -1).max(axis=1)
        return np.where(worst >= 0, worst, np.nan)

    def episode_bytes(self) -> NDArray[np.int64]:
        """``(E,)`` Bytes of each episode: its rows, and its mini-MP4s of all cameras."""
        size = np.zeros(len(self.table), np.int64)
        if self.rows is not None:
            size += np.maximum(self.rows.episode_bytes, 0)
        if self.videos is not None:
            size += self.videos.spans.bytes_of_episode()
        return size


def inspect_dataset(
    source: Source,
    *,
    cost: Cost = "probe",
    draw: Callable[[Facts], list[int]] | None = None,
    progress: Callable[[BuildProgress], None] | None = None,
) -> Summary:
    """Look at a dataset. Faults are findings, and one hides no other.

    Args:
        source: Where the dataset is.
        cost: What may be read.
        draw: Chooses the episodes of which rows are kept to be drawn, as rows of the table.
        progress: Called after each video file that has to be indexed first.

    Returns:
        What the dataset holds.

    Raises:
        StreamError: info.json does not say how to read the rest, or the source fails.
    """
    facts = read_facts(source)
    findings = [*facts.faults, *_check_metadata(facts)]
    if cost == "metadata":
        findings += check_overlaps(facts.table, facts.info.fps)
        return Summary(source.identity, cost, facts, None, None, None, None, tuple(findings))
    absent = absent_files(facts)
    rows = read_row_files(source, facts.info, facts.table, besides=absent)
    numbers = draw(facts) if draw else []
    values = read_row_values(
        source,
        facts.info,
        facts.table,
        rows,
        max_bytes=None if cost == "deep" else READ_BYTES,
        tasks=facts.tasks,
        sketches=plan_sketches(facts.info, facts.table, numbers),
    )
    videos = read_video_files(source, facts.info, facts.table, besides=absent, progress=progress)
    times = read_video_times(videos, facts.table, facts.info.fps, values)
    findings += _check_rows(facts, rows, values)
    findings += videos.findings
    findings += check_movies(facts.info, facts.table, videos)
    findings += check_video_times(facts.info, facts.table, videos, times)
    if cost == "deep":
        from lerobot_stream.inspect.checks.pictures import check_pictures

        findings += check_pictures(source, facts, rows, videos)
    kept = tuple(_without_echoes(findings))
    return Summary(source.identity, cost, facts, rows, values, videos, times, kept)


def _check_metadata(facts: Facts) -> Iterator[Finding]:
    yield from check_episode_table(facts)
    yield from check_features(facts.info)
    yield from check_files(facts)
    yield from check_span_lengths(facts.table, facts.info.fps)
    yield from check_task_texts(facts)
    yield from check_statistics(facts)
    yield from check_card(facts)


def _check_rows(facts: Facts, rows: RowFiles, values: RowValues) -> Iterator[Finding]:
    yield from rows.faults
    yield from check_row_places(rows, facts.table)
    yield from check_row_groups(rows)
    yield from values.faults
    yield from check_row_order(values, facts.table)
    yield from check_row_times(
        values,
        facts.table,
        fps=facts.info.fps,
        tolerance_s=TOLERANCE_S,
        has_video=bool(facts.info.video_keys),
    )
    yield from check_numbers(values)
    yield from check_row_statistics(facts, values)
    unknown = {task: tuple(sorted(found)) for task, found in values.unknown_tasks.items()}
    yield from check_task_numbers(unknown, facts.tasks or {})


def _without_echoes(findings: list[Finding]) -> Iterator[Finding]:
    """Leave out what the episode table made us suspect and the video file made an error."""
    worse = {
        (episode, finding.video_key)
        for finding in findings
        if finding.severity == "error" and finding.video_key
        for episode in finding.episodes
    }
    for finding in findings:
        if finding.kind is not SPAN_LENGTH or (finding.episode, finding.video_key) not in worse:
            yield finding
