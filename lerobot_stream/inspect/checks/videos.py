"""Whether videos are what info.json and the rows say, by their sample tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from lerobot_stream.counted import counted
from lerobot_stream.dataset.episodes import EpisodeTable
from lerobot_stream.dataset.holders import Holders
from lerobot_stream.dataset.info import Info
from lerobot_stream.errors import DatasetError
from lerobot_stream.inspect.bit_depth import bits_per_value
from lerobot_stream.inspect.finding import Finding
from lerobot_stream.inspect.kinds import (
    CODEC,
    DEPTH,
    DRIFT,
    GOP_LONG,
    GOP_START,
    RATE,
    RESOLUTION,
    RESOLUTION_MIXED,
    VIDEO_LONGER,
    VIDEO_TIMES,
)
from lerobot_stream.inspect.video_files import TOLERANCE_S, VideoFiles
from lerobot_stream.inspect.video_times import VideoTimes
from lerobot_stream.mp4.index import Movie

_ENTRIES: Mapping[str, tuple[str, ...]] = {
    "av1": ("av01",),
    "h264": ("avc1", "avc3"),
    "hevc": ("hvc1", "hev1"),
    "vp9": ("vp09",),
    "vp8": ("vp08",),
    "mpeg4": ("mp4v",),
}
"""Sample entries of each codec, by FFmpeg's name of it."""
_SAME = {
    "libsvtav1": "av1",
    "libaom-av1": "av1",
    "libx264": "h264",
    "avc": "h264",
    "libx265": "hevc",
    "h265": "hevc",
    "libvpx-vp9": "vp9",
}
_RATE_OFF = 0.02
"""Share that a frame rate may be off."""
_FAR_INSIDE, _LONG_GOP = 5, 60
"""Frames decoded before an episode's first, and frames of a GOP, that are worth a word."""


def check_movies(info: Info, table: EpisodeTable, videos: VideoFiles) -> Iterator[Finding]:
    """Compare codec, size and depth of the files with what is declared."""
    for key in info.video_keys:
        movies = videos.movies(table.video_paths[key])
        declared = declared_video(info, key)
        yield from _codecs(key, str(declared.get("video.codec", "")).lower(), movies)
        yield from _sizes(key, info, table, movies)
        yield from _depths(key, declared, movies)


def declared_video(info: Info, key: str) -> Mapping[str, object]:
    """What info.json says about the coding of a camera's videos."""
    features = info.raw.get("features")
    feature = features.get(key, {}) if isinstance(features, dict) else {}
    said = feature.get("info") or feature.get("video_info") or {}
    return said if isinstance(said, dict) else {}


def _codecs(key: str, declared: str, movies: Mapping[str, Movie]) -> Iterator[Finding]:
    entries = _ENTRIES.get(_SAME.get(declared, declared))
    if not entries:
        return
    for path, movie in movies.items():
        if movie.codec not in entries:
            yield Finding(
                CODEC,
                f"info.json says {declared}, the file has {movie.codec}",
                "file",
                path,
                video_key=key,
                expected=declared,
                found=movie.codec,
            )


def _sizes(
    key: str, info: Info, table: EpisodeTable, movies: Mapping[str, Movie]
) -> Iterator[Finding]:
    feature = info.features[key]
    try:
        wanted = feature.width, feature.height
    except DatasetError:
        wanted = 0, 0
    sizes = Counter((movie.width, movie.height) for movie in movies.values())
    usual = sizes.most_common(1)[0][0] if sizes else wanted
    for path, movie in movies.items():
        size = movie.width, movie.height
        found = f"{size[0]}×{size[1]}"
        if size != usual:
            others = f"{usual[0]}×{usual[1]}"
            message = f"pictures are {found}, those of most other files {others}"
            lost = tuple(Holders(table).episodes(path))
            yield Finding(RESOLUTION_MIXED, message, "file", path, lost, key, others, found)
        if size != wanted:
            said = f"{wanted[0]}×{wanted[1]}"
            message = f"info.json says {said}, the file has {found}"
            yield Finding(RESOLUTION, message, "file", path, (), key, said, found)


def _depths(
    key: str, declared: Mapping[str, object], movies: Mapping[str, Movie]
) -> Iterator[Finding]:
    for path, movie in movies.items():
        bits = bits_per_value(movie.stsd_body) or 8
        if bits > 8:
            message = f"a value has {bits} bits"
            yield Finding(DEPTH, message, "file", path, (), key, "8 bits", f"{bits} bits")
            return
    if declared.get("video.is_depth_map") is True:
        yield Finding(DEPTH, "info.json calls it a depth map", video_key=key)


def check_video_times(
    info: Info, table: EpisodeTable, videos: VideoFiles, times: VideoTimes
) -> Iterator[Finding]:
    """Check rates, drift, leftover frames, and what reaching single frames costs."""
    camera_of = _cameras(table)
    for file, path in enumerate(videos.spans.paths):
        key, rate = camera_of.get(path), times.rate[file]
        if abs(rate - info.fps) > _RATE_OFF * info.fps:
            said, found = f"{info.fps:g}", f"{rate:.6g}"
            message = f"info.json says {counted(said, 'frame')} a second, the file has {found}"
            yield Finding(RATE, message, "file", path, (), key, said, found)
        if times.still[file]:
            of = counted(times.num_frames[file], "frame")
            message = f"{times.still[file]} of {of} come no later than the one before"
            yield Finding(VIDEO_TIMES, message, "file", path, (), key)
        if times.unused[file]:
            message = f"{times.unused[file]} of {counted(times.num_frames[file], 'frame')}"
            yield Finding(VIDEO_LONGER, message, "file", path, (), key)
        if times.gop[file] >= _LONG_GOP:
            message = (
                f"GOPs of {times.gop[file]} frames, up to {times.longest_gop[file]}: one frame "
                f"alone costs {times.gop[file] // 2} decoded on average"
            )
            yield Finding(GOP_LONG, message, "file", path, (), key)
    yield from _drifting(table, videos, times)
    yield from _inside(table, videos, times)


def _cameras(table: EpisodeTable) -> dict[str, str]:
    return {path: key for key, paths in table.video_paths.items() for path in paths}


def _drifting(table: EpisodeTable, videos: VideoFiles, times: VideoTimes) -> Iterator[Finding]:
    spans = videos.spans
    beyond = np.isfinite(times.drift_s) & (times.drift_s > TOLERANCE_S)
    for camera, key in enumerate(spans.video_keys):
        for number in np.flatnonzero(beyond[:, camera]).tolist():
            drift, frame = times.drift_s[number, camera], times.worst_frame[number, camera]
            yield Finding(
                DRIFT,
                f"frame {frame} is shown {drift:.3g} s away from its timestamp",
                "episode",
                spans.paths[int(spans.file[number, camera])],
                (int(table.episode_index[number]),),
                key,
                expected=f"at most {TOLERANCE_S:g} s",
                found=f"{drift:.3g} s",
            )


def _inside(table: EpisodeTable, videos: VideoFiles, times: VideoTimes) -> Iterator[Finding]:
    spans = videos.spans
    far = spans.placed & (times.lead >= _FAR_INSIDE)
    for camera, key in enumerate(spans.video_keys):
        for number in np.flatnonzero(far[:, camera]).tolist():
            lead = counted(times.lead[number, camera], "frame")
            yield Finding(
                GOP_START,
                f"its decoding starts {lead} earlier, inside the one before",
                "episode",
                spans.paths[int(spans.file[number, camera])],
                (int(table.episode_index[number]),),
                key,
                expected="a sync sample",
                found=f"{lead} behind one",
            )
