"""Sample tables and episode tables without files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lerobot_stream.dataset.episodes import EpisodeTable
from lerobot_stream.mp4.index import Movie, Mp4Index

TIMESCALE = 90_000
FPS = 30.0


def make_movie(file_size: int, *, timescale: int = TIMESCALE, codec: str = "avc1") -> Movie:
    """A plain file's record."""
    return Movie(
        file_size=file_size,
        ftyp=b"\0\0\0\x10ftypisom\0\0\2\0",
        moov_offset=16,
        mdat_offset=32,
        mdat_payload_offset=40,
        mdat_payload_size=file_size - 40,
        faststart=True,
        codec=codec,
        timescale=timescale,
        duration=0,
        track_id=1,
        width=64,
        height=48,
        stsd_body=bytes(range(40)),
    )


def make_index(
    num_samples: int,
    *,
    gop: int = 2,
    times_s: ArrayLike | None = None,
    sync: Sequence[int] | None = None,
    size: int = 100,
) -> Mp4Index:
    """A file of equal samples, none reordered.

    Args:
        num_samples: Its samples.
        gop: Distance of sync samples.
        times_s: When each is presented; evenly at 30 a second if not given.
        sync: The sync samples, instead of ``gop``.
        size: Bytes of each.
    """
    number = np.arange(num_samples)
    pts_s = number / FPS if times_s is None else np.asarray(times_s, np.float64)
    return Mp4Index(
        movie=make_movie(40 + num_samples * size),
        pts_s=pts_s,
        duration=np.full(num_samples, round(TIMESCALE / FPS)),
        composition_offset=np.zeros(num_samples, np.int64),
        size=np.full(num_samples, size),
        offset=40 + number * size,
        sync=number[::gop] if sync is None else np.asarray(sync, np.int64),
    )


def make_table(
    lengths: Sequence[int] | NDArray[np.int64],
    cameras: Mapping[str, tuple[Sequence[str], ArrayLike, ArrayLike]],
) -> EpisodeTable:
    """An episode table.

    Args:
        lengths: Frames of each episode.
        cameras: Per video key: paths, each episode's position among them, ``from_timestamp``.
    """
    length = np.asarray(lengths, np.int64)
    stop = np.cumsum(length)
    starts = {key: np.asarray(from_s, np.float64) for key, (_, _, from_s) in cameras.items()}
    return EpisodeTable(
        episode_index=np.arange(len(length)),
        length=length,
        dataset_from_index=stop - length,
        dataset_to_index=stop,
        data_paths=("data/chunk-000/file-000.parquet",),
        data_file=np.zeros(len(length), np.int64),
        video_paths={key: tuple(paths) for key, (paths, _, _) in cameras.items()},
        video_file={key: np.asarray(file, np.int64) for key, (_, file, _) in cameras.items()},
        from_timestamp=starts,
        to_timestamp={key: start + length / FPS for key, start in starts.items()},
        tasks=((),) * len(length),
    )
