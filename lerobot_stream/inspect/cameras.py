"""What each camera's files are like, in a few numbers."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lerobot_stream.errors import DatasetError
from lerobot_stream.inspect.summary import Summary


@dataclass(frozen=True, slots=True)
class CameraSummary:
    """One camera."""

    video_key: str
    """The camera."""
    stored: Literal["video", "image"]
    """As video files, or inside the rows."""
    codec: str | None
    """Sample entry of most files; None where none was read."""
    height: int | None
    """Pixels; as declared where no file was read."""
    width: int | None
    """Pixels; as declared where no file was read."""
    num_files: int
    """Video files that episodes point to."""
    bytes: int
    """Bytes of these files."""
    fps: float | None
    """Frames a second, the median of the files."""
    gop: int | None
    """Frames of a GOP, the median of the files."""
    longest_gop: int | None
    """Frames of the longest GOP."""


def summarise_cameras(summary: Summary) -> list[CameraSummary]:
    """Describe every camera, in the order of info.json."""
    return [_camera(summary, key) for key in summary.info.camera_keys]


def _camera(summary: Summary, key: str) -> CameraSummary:
    feature = summary.info.features[key]
    height: int | None = None
    width: int | None = None
    with suppress(DatasetError):
        height, width = feature.height, feature.width
    if feature.dtype == "image":
        return CameraSummary(key, "image", None, height, width, 0, 0, None, None, None)
    paths = summary.table.video_paths[key]
    movies = list(summary.videos.movies(paths).values()) if summary.videos else []
    codec = None
    if movies:
        codec = Counter(movie.codec for movie in movies).most_common(1)[0][0]
        height, width = Counter((m.height, m.width) for m in movies).most_common(1)[0][0]
    size = summary.bytes_of(paths)
    return CameraSummary(
        key, "video", codec, height, width, len(paths), size, *_times(summary, key)
    )


def _times(summary: Summary, key: str) -> tuple[float | None, int | None, int | None]:
    if summary.videos is None or summary.times is None:
        return None, None, None
    own = set(summary.table.video_paths[key])
    files = [i for i, path in enumerate(summary.videos.spans.paths) if path in own]
    if not files:
        return None, None, None
    times = summary.times
    known = times.rate[files][np.isfinite(times.rate[files])]
    rate = round(float(np.median(known)), 6) if len(known) else None
    return rate, int(np.median(times.gop[files])), int(times.longest_gop[files].max())
