"""Inspect the metadata of 100,000 episodes: seconds, peak memory, bytes read.

    python -m tests.benchmarks.inspect_scale --episodes 100000 --folder /tmp/scale

The episode table has the columns of three cameras and per-episode statistics beside them, most of
its bytes. It lies in files of 1,000 episodes. Nothing else of the dataset is real, so that only
``--metadata-only`` can be run: data and video files are there by name and size alone.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CAMERAS = ("observation.images.top", "observation.images.left", "observation.images.right")
VECTORS = {"action": 14, "observation.state": 14}
SCALARS = ("timestamp", "frame_index", "episode_index", "index", "task_index")
STATISTICS = ("min", "max", "mean", "std", "q01", "q10", "q50", "q90", "q99")
FRAMES, PER_FILE, PER_VIDEO, PER_DATA = 300, 1000, 25, 200


def main() -> None:
    """Write the metadata if it is not there, inspect it, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--episodes", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "scale")
    options = parser.parse_args()
    root: Path = options.folder / f"episodes-{options.episodes}"
    if not (root / "meta/info.json").exists():
        write_metadata(root, options.episodes)
    total = sum(path.stat().st_size for path in (root / "meta").rglob("*") if path.is_file())
    started = time.monotonic()
    done = run(root)
    seconds = time.monotonic() - started
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = json.loads(done.stdout)
    read = re.search(r"(\d+) requests, ([\d.]+ \w+)", done.stderr)
    groups = {group["kind"]: group["count"] for group in found["groups"]}
    lines = [
        f"metadata: {total / 1e6:.0f} MB, {found['num_episodes']} episodes",
        f"read:     {read[2] if read else '?'} in {read[1] if read else '?'} requests",
        f"took:     {seconds:.1f} s, of one core {usage.ru_utime + usage.ru_stime:.1f} s",
        f"peak:     {usage.ru_maxrss * 1024 / 1e6:.0f} MB",
        f"found:    {groups}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def run(root: Path) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    code = "from lerobot_stream.cli.main import main; main()"
    flags = ["inspect-episodes", "--repo-id=lab/scale", f"--root={root}", "--metadata-only"]
    return subprocess.run(
        [sys.executable, "-c", code, *flags, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )


def write_metadata(root: Path, num_episodes: int) -> None:
    """Write info.json, tasks and the episode table, and files without content."""
    random = np.random.default_rng(0)
    for file, start in enumerate(range(0, num_episodes, PER_FILE)):
        episodes = np.arange(start, min(start + PER_FILE, num_episodes))
        path = root / f"meta/episodes/chunk-000/file-{file:03d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        columns = episode_columns(episodes, random)
        pq.write_table(pa.table(columns), path)
    _write_files(root, num_episodes)
    tasks = {"task_index": pa.array([0], pa.int64()), "task": ["pick up the cube"]}
    pq.write_table(pa.table(tasks), root / "meta/tasks.parquet")
    info = info_of(num_episodes)
    (root / "meta/info.json").write_text(json.dumps(info))


def _write_files(root: Path, num_episodes: int) -> None:
    """Give every data and video file a name and a size."""
    places = [("data", PER_DATA, "parquet")]
    places += [(f"videos/{key}", PER_VIDEO, "mp4") for key in CAMERAS]
    for folder, per_file, ending in places:
        for number in range(-(-num_episodes // per_file)):
            path = root / f"{folder}/chunk-{number // 1000:03d}/file-{number % 1000:03d}.{ending}"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                file.truncate(50_000_000)


def episode_columns(
    episodes: np.ndarray[Any, np.dtype[np.int64]], random: np.random.Generator
) -> dict[str, Any]:
    """The columns of an episode table, statistics included."""
    return _places(episodes) | _statistics(len(episodes), random)


def _places(episodes: np.ndarray[Any, np.dtype[np.int64]]) -> dict[str, Any]:
    columns: dict[str, Any] = {
        "episode_index": episodes,
        "tasks": [["pick up the cube"]] * len(episodes),
        "length": np.full(len(episodes), FRAMES),
        "data/chunk_index": episodes // PER_DATA // 1000,
        "data/file_index": episodes // PER_DATA % 1000,
        "dataset_from_index": episodes * FRAMES,
        "dataset_to_index": (episodes + 1) * FRAMES,
    }
    for key in CAMERAS:
        start = episodes % PER_VIDEO * FRAMES / 30
        columns |= {
            f"videos/{key}/chunk_index": episodes // PER_VIDEO // 1000,
            f"videos/{key}/file_index": episodes // PER_VIDEO % 1000,
            f"videos/{key}/from_timestamp": start,
            f"videos/{key}/to_timestamp": start + FRAMES / 30,
        }
    return columns


def _statistics(count: int, random: np.random.Generator) -> dict[str, Any]:
    sizes = VECTORS | dict.fromkeys(SCALARS, 1) | dict.fromkeys(CAMERAS, 3)
    columns: dict[str, Any] = {}
    for key, size in sizes.items():
        for name in STATISTICS:
            values = pa.array(random.random(size * count))
            columns[f"stats/{key}/{name}"] = pa.FixedSizeListArray.from_arrays(values, size)
        columns[f"stats/{key}/count"] = np.full(count, FRAMES)
    return columns


def info_of(num_episodes: int) -> dict[str, Any]:
    """The info.json of that many episodes."""
    names = ["height", "width", "channels"]
    video = {"dtype": "video", "shape": [480, 640, 3], "names": names}
    features: dict[str, Any] = dict.fromkeys(CAMERAS, video)
    for key, size in VECTORS.items():
        features[key] = {"dtype": "float32", "shape": [size], "names": None}
    for key in SCALARS:
        features[key] = {"dtype": "int64", "shape": [1], "names": None}
    return {
        "codebase_version": "v3.0",
        "robot_type": "arm",
        "total_episodes": num_episodes,
        "total_frames": num_episodes * FRAMES,
        "total_tasks": 1,
        "chunks_size": 1000,
        "fps": 30,
        "splits": {"train": f"0:{num_episodes}"},
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
        "features": features,
    }


if __name__ == "__main__":
    main()
