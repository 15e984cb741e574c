"""What a dataset holds, episode by episode, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lerobot_stream.dataset.episodes import EpisodeTable
from lerobot_stream.dataset.info import Info
from lerobot_stream.dataset.metadata import DatasetMetadata, count_differences, read_metadata
from lerobot_stream.dataset.version import INFO_PATH
from lerobot_stream.inspect.finding import Finding
from lerobot_stream.inspect.row_files import RowFiles, read_row_files
from lerobot_stream.inspect.video_files import VideoFiles, read_video_files
from lerobot_stream.sidecar.build import BuildProgress
from lerobot_stream.source.base import Identity, Source


@dataclass(frozen=True, slots=True)
class CameraOfEpisode:
    """One episode on one camera."""

    video_key: str
    """The camera."""
    path: str
    """Its file; empty where the metadata names none."""
    first_frame: int
    """Frame number in the file; -1 where the frames were not found."""
    size: int
    """Bytes of the mini-MP4; 0 where the frames were not found."""
    drift_s: float | None
    """Most seconds a frame is off an even rate; None where the frames were not found."""


@dataclass(frozen=True, slots=True)
class EpisodeSummary:
    """One episode."""

    episode_index: int
    """LeRobot's name of it."""
    length: int
    """Frames."""
    tasks: tuple[str, ...]
    """Its instructions."""
    rows_path: str
    """Its data file; empty where the metadata names none."""
    rows_bytes: int | None
    """Bytes of the row groups that may hold its rows; None where unknown."""
    cameras: tuple[CameraOfEpisode, ...]
    """Its videos."""
    findings: tuple[Finding, ...]
    """What is wrong with it alone."""


@dataclass(frozen=True, slots=True)
class CameraSummary:
    """One camera stored as video."""

    video_key: str
    """The camera."""
    codec: str | None
    """Sample entry; None where no file can be read."""
    height: int | None
    """Pixels."""
    width: int | None
    """Pixels."""
    num_files: int
    """Video files that episodes point to."""
    size: int
    """Bytes of these files."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The whole dataset."""

    identity: Identity
    """Name, revision and address."""
    info: Info
    """What info.json says."""
    num_frames: int
    """Frames of all episodes."""
    rows_bytes: int
    """Bytes of the data files."""
    cameras: tuple[CameraSummary, ...]
    """The cameras stored as video."""
    episodes: tuple[EpisodeSummary, ...]
    """Every episode, by ``episode_index``."""
    findings: tuple[Finding, ...]
    """Everything found, of the dataset, its files and its episodes."""

    @property
    def has_errors(self) -> bool:
        """True where something cannot be read."""
        return any(finding.severity == "error" for finding in self.findings)


def inspect_dataset(
    source: Source, *, progress: Callable[[BuildProgress], None] | None = None
) -> Summary:
    """Look at metadata, at the footers of data files and at the movie boxes of videos.

    No row and no picture is read. Faults are findings, and one hides no other.

    Args:
        source: Where the dataset is.
        progress: Called after each video file that has to be indexed first.

    Returns:
        What the dataset holds.

    Raises:
        StreamError: The metadata cannot be read, so that there is nothing to look at.
    """
    meta = read_metadata(source)
    rows = read_row_files(source, meta.info, meta.episodes)
    videos = read_video_files(source, meta, progress=progress)
    counts = [
        Finding("warning", difference, INFO_PATH)
        for difference in count_differences(meta.info, meta.episodes, rows.num_rows)
    ]
    findings = (*counts, *rows.findings, *videos.findings)
    return Summary(
        identity=source.identity,
        info=meta.info,
        num_frames=int(meta.episodes.length.sum()),
        rows_bytes=_size(source, meta.episodes.data_paths),
        cameras=tuple(_camera(source, meta, videos, key) for key in meta.info.video_keys),
        episodes=tuple(_episodes(meta.episodes, rows, videos, findings)),
        findings=findings,
    )


def _size(source: Source, paths: tuple[str, ...]) -> int:
    files = source.list_files()
    return sum(files[path].size for path in paths if path in files)


def _camera(source: Source, meta: DatasetMetadata, videos: VideoFiles, key: str) -> CameraSummary:
    paths = meta.episodes.video_paths[key]
    height, width = videos.sizes.get(key, (None, None))
    size = _size(source, paths)
    return CameraSummary(key, videos.codecs.get(key), height, width, len(paths), size)


def _episodes(
    table: EpisodeTable, rows: RowFiles, videos: VideoFiles, findings: tuple[Finding, ...]
) -> list[EpisodeSummary]:
    own: dict[int, list[Finding]] = {}
    for finding in findings:
        if finding.episode is not None:
            own.setdefault(finding.episode, []).append(finding)
    summaries = []
    for number, episode in enumerate(table.episode_index.tolist()):
        pointer, size = int(table.data_file[number]), int(rows.episode_bytes[number])
        summaries.append(
            EpisodeSummary(
                episode_index=episode,
                length=int(table.length[number]),
                tasks=table.tasks[number],
                rows_path=table.data_paths[pointer] if pointer >= 0 else "",
                rows_bytes=size if size >= 0 else None,
                cameras=tuple(_views(table, videos, number)),
                findings=tuple(own.get(episode, ())),
            )
        )
    return summaries


def _views(table: EpisodeTable, videos: VideoFiles, number: int) -> list[CameraOfEpisode]:
    views = []
    for camera, key in enumerate(videos.spans.video_keys):
        pointer = int(table.video_file[key][number])
        placed = bool(videos.spans.placed[number, camera])
        views.append(
            CameraOfEpisode(
                video_key=key,
                path=table.video_paths[key][pointer] if pointer >= 0 else "",
                first_frame=int(videos.spans.first_frame[number, camera]) if placed else -1,
                size=int(videos.spans.mini_bytes[number, camera]),
                drift_s=float(videos.spans.drift_s[number, camera]) if placed else None,
            )
        )
    return views
