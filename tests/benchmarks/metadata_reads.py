"""What opening reads of an episode table of 100,000 rows: bytes, by the size of its row groups.

    python -m tests.benchmarks.metadata_reads --folder /tmp/metadata

Seven files hold the columns of three cameras and, beside them, per-episode statistics, which are
most of the bytes. The least that can be read is every footer and the column chunks that training
needs; where row groups are small, footers are most of that.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lerobot_stream.dataset.episodes import read_episodes
from lerobot_stream.dataset.info import parse_info
from lerobot_stream.source.local import LocalSource
from tests.benchmarks import inspect_scale

EPISODES, FILES = 100_000, 7
ROW_GROUPS = (1000, 100, 10)
VECTORS = {"action": 32, "observation.state": 32}


def main() -> None:
    """Write the three sets where they are not there, open them, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "metadata")
    parser.add_argument("--episodes", type=int, default=EPISODES)
    options = parser.parse_args()
    lines = ["| rows a group | metadata | footers | read | share | requests | seconds |"]
    lines.append("|---|---|---|---|---|---|---|")
    for rows in ROW_GROUPS:
        root: Path = options.folder / f"groups-{rows}-{options.episodes}"
        if not (root / "meta/info.json").exists():
            write_table(root, options.episodes, rows)
        lines.append(measure(root, rows))
    sys.stdout.write("\n".join(lines) + "\n")


def write_table(root: Path, num_episodes: int, rows: int) -> None:
    """Write the episode table, and an info.json that goes with it."""
    inspect_scale.VECTORS.update(VECTORS)
    random = np.random.default_rng(0)
    for file, episodes in enumerate(np.array_split(np.arange(num_episodes), FILES)):
        path = root / f"meta/episodes/chunk-000/file-{file:03d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        columns = inspect_scale.episode_columns(episodes, random)
        pq.write_table(pa.table(columns), path, row_group_size=rows)
    info = inspect_scale.info_of(num_episodes)
    (root / "meta/info.json").write_text(json.dumps(info))


def measure(root: Path, rows: int) -> str:
    """Open the table, and say what that took."""
    files = sorted((root / "meta/episodes").rglob("*.parquet"))
    total = sum(path.stat().st_size for path in files)
    footers = sum(pq.read_metadata(path).serialized_size for path in files)
    source = LocalSource(root, repo_id="lab/scale")
    info = parse_info((root / "meta/info.json").read_bytes())
    started = time.monotonic()
    table = read_episodes(source, info)
    seconds = time.monotonic() - started
    read, requests = source.count.bytes, source.count.requests
    return (
        f"| {rows:,} | {total / 1e6:.0f} MB, {len(table):,} episodes | {footers / 1e6:.1f} MB "
        f"| {read / 1e6:.1f} MB | {read / total:.1%} | {requests} | {seconds:.1f} |"
    )


if __name__ == "__main__":
    main()
