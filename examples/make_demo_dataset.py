"""Write a small LeRobotDataset v3: a simulated arm that reaches for a target it sees.

    python examples/make_demo_dataset.py demo/dataset --codec av1

A planar arm with two joints starts near its home pose; a red target lies somewhere on the table.
A scripted expert moves the hand there, with noise. State is the joint angles, action the next
joint target, and two cameras watch: one from above, one on the hand. Only the cameras see where
the target is. Several episodes share a video file, and each camera's files, like the Parquet
files, roll over at episodes of their own. Everything is drawn from one seed.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

FPS = 30
TASK = "Reach the red target."
HEIGHT, WIDTH = 64, 96
UPPER_ARM, FOREARM = 0.5, 0.4
HOME = np.array([1.9, -1.6])
JOINTS = ["shoulder", "elbow"]
TOP, WRIST = "observation.images.top", "observation.images.wrist"
EPISODES_PER_VIDEO = {TOP: 5, WRIST: 7}
EPISODES_PER_TABLE = 9
ENCODERS: dict[str, dict[str, Any]] = {
    "av1": {"codec": "libsvtav1", "crf": 30, "preset": 10},
    "h264": {"codec": "libx264", "crf": 20, "preset": "fast"},
}
QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}

Points = NDArray[np.float32]
Images = NDArray[np.uint8]


@dataclass(frozen=True)
class Episode:
    """One demonstration."""

    state: NDArray[np.float32]
    """``(T, 2)`` joint angles, in rad."""
    action: NDArray[np.float32]
    """``(T, 2)`` joint angles that the expert asked for next."""
    target: NDArray[np.float64]
    """``(2,)`` where the target lies, in m."""

    def __len__(self) -> int:
        return len(self.state)


def hand_position(joints: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Elbow and hand in the plane, each ``(..., 2)``, for joint angles ``(..., 2)``."""
    shoulder, total = joints[..., 0], joints.sum(axis=-1)
    elbow = UPPER_ARM * np.stack([np.cos(shoulder), np.sin(shoulder)], axis=-1)
    return elbow, elbow + FOREARM * np.stack([np.cos(total), np.sin(total)], axis=-1)


def joints_at(target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Joint angles that bring the hand to a point, with the elbow to the left."""
    square = float(target @ target)
    cosine = (square - UPPER_ARM**2 - FOREARM**2) / (2 * UPPER_ARM * FOREARM)
    elbow = -np.arccos(np.clip(cosine, -1.0, 1.0))
    inner = np.arctan2(FOREARM * np.sin(elbow), UPPER_ARM + FOREARM * np.cos(elbow))
    return np.array([np.arctan2(target[1], target[0]) - inner, elbow])


def demonstrate(rng: np.random.Generator) -> Episode:
    """Let the expert reach for a random target."""
    bearing, distance = rng.uniform(-0.1, np.pi + 0.1), rng.uniform(0.35, 0.82)
    target = distance * np.array([np.cos(bearing), np.sin(bearing)])
    goal = joints_at(target)
    joints = HOME + rng.normal(0.0, 0.05, 2)
    drift = np.zeros(2)
    state, action = [], []
    for _ in range(int(rng.integers(80, 121))):
        drift = 0.8 * drift + rng.normal(0.0, 0.003, 2)
        aimed = joints + np.clip(0.08 * (goal - joints), -0.035, 0.035) + drift
        state.append(joints)
        action.append(aimed)
        joints = aimed + rng.normal(0.0, 0.002, 2)
    return Episode(np.array(state, np.float32), np.array(action, np.float32), target)


def draw(scene: Images, covered: NDArray[np.float32], colour: Sequence[int]) -> Images:
    """Paint a colour where ``covered`` (0 to 1) says so."""
    share = covered[..., None]
    return (scene * (1 - share) + np.array(colour, np.float32) * share).astype(np.uint8)


def inside(distance: NDArray[Any], radius: float, pixel: float) -> NDArray[np.float32]:
    """How much of a pixel lies within a radius, with a soft edge of one pixel."""
    return np.clip((radius - distance) / pixel + 0.5, 0.0, 1.0).astype(np.float32)


def table(points: Points, pixel: float) -> Images:
    """A table with a grid of faint lines every 10 cm, seen at ``(..., 2)`` points."""
    to_line = np.abs((points + 0.05) % 0.1 - 0.05).min(axis=-1)
    scene = np.full((*points.shape[:-1], 3), (206, 200, 188), np.uint8)
    return draw(scene, 0.35 * inside(to_line, 0.004, pixel), (90, 90, 100))


def to_segment(points: Points, start: NDArray[Any], stop: NDArray[Any]) -> NDArray[Any]:
    """Distance of ``(T, H, W, 2)`` points from each frame's segment between ``(T, 2)`` ends."""
    along = (stop - start)[:, None, None]
    offset = points - start[:, None, None]
    share = np.clip((offset * along).sum(-1) / (along**2).sum(-1), 0.0, 1.0)
    return np.asarray(np.linalg.norm(offset - share[..., None] * along, axis=-1))


def pixel_grid(metres: float) -> tuple[Points, float]:
    """``(H, W, 2)`` points of a camera that sees so many metres from left to right."""
    pixel = metres / WIDTH
    across = (np.arange(WIDTH) - (WIDTH - 1) / 2) * pixel
    up = ((HEIGHT - 1) / 2 - np.arange(HEIGHT)) * pixel
    grid = np.stack(np.meshgrid(across, up), axis=-1).astype(np.float32)
    return grid, pixel


def film_from_top(episode: Episode) -> Images:
    """``(T, H, W, 3)`` what the camera above the table sees."""
    grid, pixel = pixel_grid(2.0)
    points = np.broadcast_to(grid + np.array([0.0, 0.35], np.float32), (len(episode), *grid.shape))
    elbow, hand = hand_position(episode.state)
    scene = table(points, pixel)
    to_target = np.linalg.norm(points - episode.target.astype(np.float32), axis=-1)
    scene = draw(scene, inside(to_target, 0.06, pixel), (214, 40, 40))
    scene = draw(scene, inside(to_segment(points, 0 * elbow, elbow), 0.045, pixel), (52, 84, 140))
    scene = draw(scene, inside(to_segment(points, elbow, hand), 0.032, pixel), (74, 124, 196))
    to_hand = np.linalg.norm(points - hand[:, None, None], axis=-1)
    return draw(scene, inside(to_hand, 0.04, pixel), (250, 186, 40))


def film_from_wrist(episode: Episode) -> Images:
    """``(T, H, W, 3)`` what the camera on the hand sees; it turns with the hand."""
    grid, pixel = pixel_grid(0.8)
    _, hand = hand_position(episode.state)
    turn = episode.state.sum(axis=-1) - np.float32(np.pi / 2)
    cosine, sine = np.cos(turn), np.sin(turn)
    rotation = np.stack([np.stack([cosine, -sine], -1), np.stack([sine, cosine], -1)], 1)
    points = np.einsum("tij,hwj->thwi", rotation, grid) + hand[:, None, None]
    scene = table(points, pixel)
    to_target = np.linalg.norm(points - episode.target.astype(np.float32), axis=-1)
    scene = draw(scene, inside(to_target, 0.06, pixel), (214, 40, 40))
    finger = np.minimum(np.abs(grid[..., 0] - 0.05), np.abs(grid[..., 0] + 0.05))
    shown = inside(finger, 0.012, pixel) * (grid[..., 1] < 0.02)
    return draw(scene, shown.astype(np.float32), (40, 40, 44))


def encode(frames: Images, path: Path, *, codec: str, gop: int) -> None:
    """Write ``(T, H, W, 3)`` frames as one MP4."""
    import torch
    from torchcodec.encoders import VideoEncoder

    path.parent.mkdir(parents=True, exist_ok=True)
    tensor = torch.from_numpy(frames).permute(0, 3, 1, 2).contiguous()
    VideoEncoder(tensor, frame_rate=FPS).to_file(
        path, pixel_format="yuv420p", extra_options={"g": str(gop)}, **ENCODERS[codec]
    )


def column_stats(values: NDArray[Any]) -> dict[str, Any]:
    """Statistics of a column ``(T, D)``."""
    wide = values.astype(np.float64)
    stats: dict[str, Any] = {
        "min": wide.min(axis=0).tolist(),
        "max": wide.max(axis=0).tolist(),
        "mean": wide.mean(axis=0).tolist(),
        "std": wide.std(axis=0).tolist(),
        "count": [len(wide)],
    }
    return stats | {k: np.quantile(wide, q, axis=0).tolist() for k, q in QUANTILES.items()}


def count_levels(frames: Images) -> NDArray[np.int64]:
    """``(3, 256)`` how often each level of each channel occurs."""
    channels = np.moveaxis(frames, -1, 0).reshape(3, -1)
    return np.stack([np.bincount(channel, minlength=256) for channel in channels])


def image_stats(levels: NDArray[np.int64], num_frames: int) -> dict[str, Any]:
    """Statistics of a camera in [0, 1], exactly, from how often each level occurs."""
    value = np.arange(256) / 255
    share = levels / levels.sum(axis=1, keepdims=True)
    mean = share @ value
    there = levels > 0
    rows = {
        "min": value[there.argmax(axis=1)],
        "max": value[255 - there[:, ::-1].argmax(axis=1)],
        "mean": mean,
        "std": np.sqrt(np.maximum(share @ value**2 - mean**2, 0)),
    }
    below = share.cumsum(axis=1)
    rows |= {k: value[(below < q - 1e-12).sum(axis=1)] for k, q in QUANTILES.items()}
    return {k: row.reshape(3, 1, 1).tolist() for k, row in rows.items()} | {"count": [num_frames]}


def rows_of(episode: Episode, number: int, first: int) -> dict[str, NDArray[Any]]:
    """The episode's columns, ``(T, D)`` each."""
    frame = np.arange(len(episode), dtype=np.int64)[:, None]
    return {
        "observation.state": episode.state,
        "action": episode.action,
        "timestamp": (frame / FPS).astype(np.float32),
        "frame_index": frame,
        "episode_index": np.full_like(frame, number),
        "index": first + frame,
        "task_index": np.zeros_like(frame),
    }


def to_arrow(columns: Mapping[str, NDArray[Any]]) -> pa.Table:
    """Columns as LeRobot stores them: fixed-size lists, or plain where they are one wide."""
    arrays = {}
    for name, column in columns.items():
        flat = pa.array(column.ravel())
        wide = name in ("observation.state", "action")
        arrays[name] = pa.FixedSizeListArray.from_arrays(flat, column.shape[1]) if wide else flat
    return pa.table(arrays)


def place(number: int, per_file: int) -> tuple[dict[str, int], str]:
    """The file that an episode is stored in, as columns and as the end of a path."""
    file = number // per_file
    return {"chunk_index": 0, "file_index": file}, f"chunk-000/file-{file:03d}"


def write_videos(
    root: Path, episodes: Sequence[Episode], *, codec: str, gop: int
) -> dict[str, list[NDArray[np.int64]]]:
    """Film every episode with both cameras.

    Returns:
        Per camera and episode, how often each level of each channel occurs.
    """
    levels: dict[str, list[NDArray[np.int64]]] = {}
    for key, film in ((TOP, film_from_top), (WRIST, film_from_wrist)):
        levels[key] = []
        for start in range(0, len(episodes), EPISODES_PER_VIDEO[key]):
            films = [film(e) for e in episodes[start : start + EPISODES_PER_VIDEO[key]]]
            levels[key] += [count_levels(frames) for frames in films]
            _, name = place(start, EPISODES_PER_VIDEO[key])
            encode(np.concatenate(films), root / f"videos/{key}/{name}.mp4", codec=codec, gop=gop)
    return levels


def write_rows(root: Path, episodes: Sequence[Episode]) -> list[dict[str, NDArray[Any]]]:
    """Write the Parquet files, a row group an episode; return the columns of each episode."""
    columns, first = [], 0
    for number, episode in enumerate(episodes):
        columns.append(rows_of(episode, number, first))
        first += len(episode)
    for start in range(0, len(episodes), EPISODES_PER_TABLE):
        tables = [to_arrow(rows) for rows in columns[start : start + EPISODES_PER_TABLE]]
        path = root / f"data/{place(start, EPISODES_PER_TABLE)[1]}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(path, tables[0].schema) as writer:
            for rows in tables:
                writer.write_table(rows)
    return columns


def describe_episodes(
    columns: Sequence[Mapping[str, NDArray[Any]]], levels: Mapping[str, Sequence[NDArray[np.int64]]]
) -> Iterator[dict[str, Any]]:
    """One row of ``meta/episodes`` per episode."""
    frames_before = dict.fromkeys(levels, 0)
    for number, rows in enumerate(columns):
        length, first = len(rows["index"]), int(rows["index"][0, 0])
        row: dict[str, Any] = {"episode_index": number, "tasks": [TASK], "length": length}
        row |= {f"data/{k}": v for k, v in place(number, EPISODES_PER_TABLE)[0].items()}
        row |= {"dataset_from_index": first, "dataset_to_index": first + length}
        for key in levels:
            if number % EPISODES_PER_VIDEO[key] == 0:
                frames_before[key] = 0
            row |= {
                f"videos/{key}/{k}": v for k, v in place(number, EPISODES_PER_VIDEO[key])[0].items()
            }
            row[f"videos/{key}/from_timestamp"] = frames_before[key] / FPS
            frames_before[key] += length
            row[f"videos/{key}/to_timestamp"] = frames_before[key] / FPS
        stats = {name: column_stats(values) for name, values in rows.items()}
        stats |= {key: image_stats(counted[number], length) for key, counted in levels.items()}
        row |= {f"stats/{name}/{k}": v for name, of in stats.items() for k, v in of.items()}
        yield row | {"meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0}


def describe_features() -> dict[str, Any]:
    """The schema of an item."""
    video = {
        "dtype": "video",
        "shape": [HEIGHT, WIDTH, 3],
        "names": ["height", "width", "channels"],
    }
    vector = {"dtype": "float32", "shape": [len(JOINTS)], "names": JOINTS}
    whole = {"dtype": "int64", "shape": [1], "names": None}
    return {
        TOP: video,
        WRIST: video,
        "observation.state": vector,
        "action": vector,
        "timestamp": {"dtype": "float32", "shape": [1], "names": None},
        **dict.fromkeys(("frame_index", "episode_index", "index", "task_index"), whole),
    }


def write_meta(
    root: Path,
    columns: Sequence[Mapping[str, NDArray[Any]]],
    levels: Mapping[str, Sequence[NDArray[np.int64]]],
) -> None:
    """Write everything below ``meta/``."""
    num_frames = sum(len(rows["index"]) for rows in columns)
    stats = {k: column_stats(np.concatenate([r[k] for r in columns])) for k in columns[0]}
    stats |= {k: image_stats(np.sum(counted, axis=0), num_frames) for k, counted in levels.items()}
    info = {
        "codebase_version": "v3.0",
        "robot_type": "simulated_arm",
        "total_episodes": len(columns),
        "total_frames": num_frames,
        "total_tasks": 1,
        "chunks_size": 1000,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": FPS,
        "splits": {"train": f"0:{len(columns)}"},
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
        "features": describe_features(),
    }
    table_path = root / "meta/episodes/chunk-000/file-000.parquet"
    table_path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(describe_episodes(columns, levels))), table_path)
    tasks = pa.table({"task_index": pa.array([0], pa.int64()), "task": [TASK]})
    index = {"index_columns": ["task"], "columns": [], "column_indexes": []}
    pq.write_table(
        tasks.replace_schema_metadata({"pandas": json.dumps(index)}), root / "meta/tasks.parquet"
    )
    (root / "meta/stats.json").write_text(json.dumps(stats, indent=1))
    (root / "meta/info.json").write_text(json.dumps(info, indent=1))


def write_dataset(root: Path, *, num_episodes: int, codec: str, gop: int, seed: int) -> int:
    """Write the whole dataset.

    Args:
        root: A folder that is empty or not there.
        num_episodes: How many demonstrations.
        codec: ``av1`` or ``h264``.
        gop: Frames from one sync sample to the next.
        seed: Seed of everything drawn.

    Returns:
        The number of frames.
    """
    episodes = [demonstrate(np.random.default_rng([seed, i])) for i in range(num_episodes)]
    levels = write_videos(root, episodes, codec=codec, gop=gop)
    write_meta(root, write_rows(root, episodes), levels)
    return sum(map(len, episodes))


def main() -> None:
    """Read the command line and write the dataset."""
    parser = argparse.ArgumentParser(description="Write a small synthetic LeRobotDataset v3.")
    parser.add_argument("root", type=Path, help="folder to write; must be empty or not there")
    parser.add_argument("--episodes", type=int, default=24)
    parser.add_argument("--codec", choices=sorted(ENCODERS), default="av1")
    parser.add_argument("--gop", type=int, default=2, help="frames between sync samples")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.episodes < 1:
        parser.error("--episodes: wanted at least 1")
    if options.root.exists() and any(options.root.iterdir()):
        parser.error(f"{options.root} is not empty")
    os.environ.setdefault("SVT_LOG", "1")  # SVT-AV1 tells its life story otherwise
    num_frames = write_dataset(
        options.root,
        num_episodes=options.episodes,
        codec=options.codec,
        gop=options.gop,
        seed=options.seed,
    )
    print(f"{options.root}: {options.episodes} episodes, {num_frames} frames, {options.codec}")


if __name__ == "__main__":
    main()
