"""Small LeRobotDataset v3 folders whose rows and pictures know their dataset index."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from PIL import Image

VideoWriter = Callable[[Path, Sequence[int]], None]
"""Writes one MP4 whose frames show the given dataset indices, in that order."""

DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
VIDEO_PATH = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
META_PATH = "meta/episodes/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
EPISODES_FILE = META_PATH.format(chunk_index=0, file_index=0)


@dataclass(frozen=True, slots=True)
class Camera:
    """One camera stored as video."""

    write: VideoWriter
    """Writes its MP4s."""
    episodes_per_file: int | Sequence[int] = 2
    """Episodes in each MP4: one number for all, or one a file (the last one repeats)."""
    height: int = 64
    """Pixels, as info.json says it."""
    width: int = 64
    """Pixels, as info.json says it."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a written dataset holds, to compare with."""

    root: Path
    """The dataset's folder."""
    lengths: tuple[int, ...]
    """Frames of each episode."""
    fps: float
    """Frames a second, as info.json says it."""
    columns: dict[str, NDArray[Any]]
    """``(frames, ...)`` Every numeric or text column, in order of ``index``."""
    tasks: tuple[str, ...]
    """Text of each task, by ``task_index``."""
    data_paths: tuple[str, ...]
    """Data file of each episode."""
    video_paths: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Video file of each episode, by video key."""

    @property
    def starts(self) -> tuple[int, ...]:
        """Dataset index of the first frame of each episode."""
        return tuple(int(start) for start in np.cumsum([0, *self.lengths[:-1]]))[
            : len(self.lengths)
        ]

    @property
    def num_frames(self) -> int:
        """Frames of all episodes."""
        return sum(self.lengths)

    def episodes_of(self, path: str) -> tuple[int, ...]:
        """Episodes whose frames lie in a data or video file, in order."""
        for paths in (self.data_paths, *self.video_paths.values()):
            if path in paths:
                return tuple(e for e, other in enumerate(paths) if other == path)
        raise KeyError(path)

    def rows(self, episode: int) -> dict[str, NDArray[Any]]:
        """Every column of one episode."""
        start = self.starts[episode]
        stop = start + self.lengths[episode]
        return {key: values[start:stop] for key, values in self.columns.items()}


def write_dataset(
    root: Path,
    *,
    lengths: Sequence[int],
    fps: float = 10,
    cameras: Mapping[str, Camera] | None = None,
    image_cameras: Mapping[str, tuple[int, int]] | None = None,
    features: Mapping[str, NDArray[Any]] | None = None,
    tasks: Sequence[str] = ("pick up the cube", "open the drawer"),
    timestamps: Callable[[int, int], float] | None = None,
    episodes_per_data_file: int | Sequence[int] = 2,
    episodes_per_meta_file: int | Sequence[int] = 1000,
    files_per_chunk: int = 1000,
    row_group: Literal["episode"] | int = "episode",
    statistics: bool = True,
    episode_stats: bool = False,
    task_column: str = "__index_level_0__",
) -> Written:
    """Write a whole dataset.

    Args:
        root: Folder to make; it may exist.
        lengths: Frames of each episode.
        fps: Frames a second, written as given (``30`` or ``30.0``).
        cameras: Cameras stored as video, by key. Files roll over where each camera says.
        image_cameras: ``(height, width)`` of cameras stored as PNG inside Parquet, by key.
        features: Further columns, ``(frames, ...)`` each; object arrays hold text.
        tasks: Task texts; episode ``e`` has number ``e % len(tasks)``.
        timestamps: Seconds of (episode, frame); ``frame / fps`` if not given.
        episodes_per_data_file: Episodes in each data file; one number or one a file.
        episodes_per_meta_file: The same for the episode table.
        files_per_chunk: Files before the next ``chunk-NNN`` folder.
        row_group: One row group an episode, or a number of rows.
        statistics: Whether row groups carry statistics.
        episode_stats: Whether the episode table carries ``stats/*`` columns.
        task_column: Column of ``tasks.parquet`` with the text.

    Returns:
        What was written.
    """
    places = _Places(len(lengths), files_per_chunk)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    columns = _columns(lengths, fps, len(tasks), timestamps) | dict(features or {})
    pictures = _pictures(int(starts[-1]), image_cameras or {})
    rows = _episode_rows(lengths, starts, tasks, columns if episode_stats else {})

    data_paths = places.point(rows, "data/", DATA_PATH, episodes_per_data_file)
    table = _table(columns, pictures)
    for path, episodes in _by_path(data_paths).items():
        stretches = [starts[e : e + 2] for e in episodes]
        _write_data(root / path, table, stretches, row_group, statistics=statistics)

    video_paths: dict[str, tuple[str, ...]] = {}
    for key, camera in (cameras or {}).items():
        template = VIDEO_PATH.replace("{video_key}", key)
        paths = places.point(rows, f"videos/{key}/", template, camera.episodes_per_file)
        video_paths[key] = paths
        for path, episodes in _by_path(paths).items():
            _write_video(root / path, key, camera, [rows[e] for e in episodes], fps)

    meta_paths = places.point(rows, "meta/episodes/", META_PATH, episodes_per_meta_file)
    for path, episodes in _by_path(meta_paths).items():
        _write_table(root / path, pa.Table.from_pylist([rows[e] for e in episodes]))
    texts = {"task_index": pa.array(range(len(tasks)), pa.int64()), task_column: list(tasks)}
    _write_table(root / "meta/tasks.parquet", pa.table(texts))

    video_keys = list(cameras or {})
    stats = {key: _stats(values) for key, values in columns.items() if values.dtype != object}
    _write_json(root / "meta/stats.json", stats | _picture_stats([*pictures, *video_keys]))
    info = {
        "codebase_version": "v3.0",
        "robot_type": "test",
        "total_episodes": len(lengths),
        "total_frames": int(starts[-1]),
        "total_tasks": len(tasks),
        "chunks_size": files_per_chunk,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": fps,
        "splits": {"train": f"0:{len(lengths)}"},
        "data_path": DATA_PATH,
        "video_path": VIDEO_PATH if cameras else None,
        "features": _features(cameras or {}, image_cameras or {}, columns),
    }
    _write_json(root / "meta/info.json", info)
    return Written(root, tuple(lengths), fps, columns, tuple(tasks), data_paths, video_paths)


def edit_info(root: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Rewrite info.json after ``change`` has edited it in place."""
    info = json.loads((root / "meta/info.json").read_text())
    change(info)
    _write_json(root / "meta/info.json", info)


def edit_episodes(root: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Rewrite the episode table after ``change`` has edited each row in place."""
    for path in sorted((root / "meta/episodes").rglob("*.parquet")):
        rows = pq.read_table(path).to_pylist()
        for row in rows:
            change(row)
        pq.write_table(pa.Table.from_pylist(rows), path)


def paint(number: int, height: int, width: int) -> NDArray[np.uint8]:
    """Make the ``(H, W, 3)`` picture of a dataset index."""
    picture = np.empty((height, width, 3), np.uint8)
    picture[:] = [number & 255, number >> 8 & 255, number >> 16 & 255]
    return picture


def number_of(picture: NDArray[np.uint8]) -> int:
    """Read the dataset index back from an ``(H, W, 3)`` picture of :func:`paint`."""
    red, green, blue = (int(value) for value in picture[0, 0])
    return red | green << 8 | blue << 16


@dataclass(frozen=True, slots=True)
class _Places:
    num_episodes: int
    files_per_chunk: int

    def split(self, sizes: int | Sequence[int]) -> list[int]:
        """File number of each episode."""
        files: list[int] = []
        for file, size in enumerate(_repeat(sizes)):
            if len(files) >= self.num_episodes:
                break
            files += [file] * size
        return files[: self.num_episodes]

    def point(
        self,
        rows: list[dict[str, Any]],
        prefix: str,
        template: str,
        sizes: int | Sequence[int],
    ) -> tuple[str, ...]:
        """Write pointers into the episode rows and return the path of each episode."""
        paths = []
        for row, number in zip(rows, self.split(sizes), strict=True):
            chunk, file = divmod(number, self.files_per_chunk)
            row |= {f"{prefix}chunk_index": chunk, f"{prefix}file_index": file}
            paths.append(template.format(chunk_index=chunk, file_index=file))
        return tuple(paths)


def _repeat(sizes: int | Sequence[int]) -> Iterator[int]:
    sizes = [sizes] if isinstance(sizes, int) else list(sizes)
    if min(sizes) < 1:
        raise ValueError(f"a file holds at least one episode, got {sizes}")
    yield from sizes
    while True:
        yield sizes[-1]


def _episode_rows(
    lengths: Sequence[int],
    starts: NDArray[np.int64],
    tasks: Sequence[str],
    with_stats: Mapping[str, NDArray[Any]],
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for e, length in enumerate(lengths):
        start, stop = int(starts[e]), int(starts[e + 1])
        row: dict[str, Any] = {
            "episode_index": e,
            "tasks": [tasks[e % len(tasks)]] if tasks else [],
            "length": length,
            "dataset_from_index": start,
            "dataset_to_index": stop,
        }
        for key, values in with_stats.items():
            if values.dtype != object:
                stats = _stats(values[start:stop])
                row |= {f"stats/{key}/{name}": value for name, value in stats.items()}
        rows.append(row)
    return rows


def _by_path(paths: Sequence[str]) -> dict[str, list[int]]:
    episodes: dict[str, list[int]] = {}
    for e, path in enumerate(paths):
        episodes.setdefault(path, []).append(e)
    return episodes


def _columns(
    lengths: Sequence[int],
    fps: float,
    num_tasks: int,
    timestamps: Callable[[int, int], float] | None,
) -> dict[str, NDArray[Any]]:
    episode = np.repeat(np.arange(len(lengths)), lengths)
    frame = np.concatenate([np.arange(n) for n in lengths] or [np.arange(0)])
    index = np.arange(len(frame))
    time = frame / fps
    if timestamps:
        pairs = zip(episode, frame, strict=True)
        time = np.array([timestamps(int(e), int(f)) for e, f in pairs], float)
    return {
        "action": np.stack([index, index + 0.5], 1).astype(np.float32),
        "observation.state": np.stack([episode, frame, index], 1).astype(np.float32),
        "timestamp": time.astype(np.float32),
        "frame_index": frame.astype(np.int64),
        "episode_index": episode.astype(np.int64),
        "index": index.astype(np.int64),
        "task_index": (episode % max(1, num_tasks)).astype(np.int64),
    }


def _pictures(num_frames: int, cameras: Mapping[str, tuple[int, int]]) -> dict[str, list[Any]]:
    pictures: dict[str, list[Any]] = {key: [] for key in cameras}
    for key, (height, width) in cameras.items():
        for i in range(num_frames):
            file = io.BytesIO()
            Image.fromarray(paint(i, height, width)).save(file, "PNG")
            pictures[key].append({"bytes": file.getvalue(), "path": f"frame-{i:06d}.png"})
    return pictures


def _table(columns: Mapping[str, NDArray[Any]], pictures: Mapping[str, list[Any]]) -> pa.Table:
    arrays = {key: _array(values) for key, values in columns.items()}
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return pa.table(arrays | {key: pa.array(rows, image) for key, rows in pictures.items()})


def _array(values: NDArray[Any]) -> pa.Array:
    if values.dtype == object:
        return pa.array(values.tolist(), pa.string())
    array = pa.array(values.reshape(-1))
    for size in reversed(values.shape[1:]):
        array = pa.FixedSizeListArray.from_arrays(array, size)
    return array


def _write_table(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)


def _write_data(
    path: Path,
    table: pa.Table,
    stretches: Sequence[NDArray[np.int64]],
    row_group: Literal["episode"] | int,
    *,
    statistics: bool,
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = [table.slice(int(start), int(stop - start)) for start, stop in stretches]
    with pq.ParquetWriter(path, table.schema, write_statistics=statistics) as writer:
        if row_group == "episode":
            for part in parts:
                writer.write_table(part)
        else:
            writer.write_table(pa.concat_tables(parts), row_group_size=row_group)


def _write_video(
    path: Path, key: str, camera: Camera, rows: list[dict[str, Any]], fps: float
) -> None:
    """Write one MP4 and the times of its episodes into their rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stretches = [range(row["dataset_from_index"], row["dataset_to_index"]) for row in rows]
    camera.write(path, [number for stretch in stretches for number in stretch])
    time_s = 0.0
    for row in rows:
        row[f"videos/{key}/from_timestamp"] = time_s
        time_s += row["length"] / fps
        row[f"videos/{key}/to_timestamp"] = time_s


def _features(
    cameras: Mapping[str, Camera],
    image_cameras: Mapping[str, tuple[int, int]],
    columns: Mapping[str, NDArray[Any]],
) -> dict[str, Any]:
    names = ["height", "width", "channels"]
    features: dict[str, Any] = {
        key: {"dtype": "video", "shape": [camera.height, camera.width, 3], "names": names}
        for key, camera in cameras.items()
    }
    for key, size in image_cameras.items():
        features[key] = {"dtype": "image", "shape": [*size, 3], "names": names}
    for key, values in columns.items():
        dtype = "string" if values.dtype == object else str(values.dtype)
        shape = list(values.shape[1:]) or [1]
        features[key] = {"dtype": dtype, "shape": shape, "names": None}
    return features


def _stats(values: NDArray[Any]) -> dict[str, list[Any]]:
    if not len(values):
        return {"count": [0]}
    wide = values.astype(np.float64).reshape(len(values), *(values.shape[1:] or (1,)))
    return {
        "min": wide.min(0).tolist(),
        "max": wide.max(0).tolist(),
        "mean": wide.mean(0).tolist(),
        "std": wide.std(0).tolist(),
        "count": [len(values)],
    }


def _picture_stats(keys: Sequence[str]) -> dict[str, Any]:
    values = {"min": 0.0, "max": 1.0, "mean": 0.5, "std": 0.25}
    return {key: {name: [[[x]]] * 3 for name, x in values.items()} | {"count": [1]} for key in keys}


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2))
