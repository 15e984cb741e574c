"""What sample tables cost in memory when the processes of a host open them all.

    python -m tests.benchmarks.mapped_index

Writes the sidecar of a large dataset into a temporary cache, lets processes open it the way a
training rank does, and compares what they hold together with what one holds: proportional set
size, in which a page that n processes share counts one n-th in each.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np

from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.profile.memory import read_memory
from lerobot_stream.sidecar.archive import compress, write_archive
from lerobot_stream.sidecar.manifest import SidecarHeader
from lerobot_stream.sidecar.mapped_store import map_sidecar
from lerobot_stream.sidecar.members import MEMBERS, index_to_bytes, member_name, text_to_bytes
from lerobot_stream.sidecar.schema import MANIFEST, Sidecar
from lerobot_stream.source.base import Identity
from tests.sidecar import synthetic

IDENTITY = Identity("robots/large", "v3.0", "hf://datasets/robots/large@" + "0" * 40)
GOAL = 1.2
"""Most that all processes together may hold, as a multiple of what one holds."""
FPS, TIMESCALE, GOP = 30, 15_360, 2


def make_index(num_samples: int, *, seed: int) -> Mp4Index:
    """Make the sample table of a file as LeRobot encodes it: constant rate, short GOPs."""
    random = np.random.default_rng(seed)
    size = random.integers(2_000, 60_000, num_samples)
    stop = 40 + np.cumsum(size)
    index = synthetic.make_index(num_samples, gop=GOP, times_s=np.arange(num_samples) / FPS)
    movie = dataclasses.replace(
        index.movie,
        file_size=int(stop[-1]),
        mdat_payload_size=int(stop[-1]) - 40,
        timescale=TIMESCALE,
    )
    return dataclasses.replace(index, movie=movie, size=size, offset=stop - size)


def write_sidecar(path: Path, *, num_files: int, num_samples: int) -> None:
    """Write the sidecar of many such files."""
    names = [f"videos/top/chunk-000/file-{i:03d}.mp4" for i in range(num_files)]
    movies = {name: make_index(num_samples, seed=i).movie for i, name in enumerate(names)}
    manifest = SidecarHeader(IDENTITY, {}, movies).to_bytes()

    def members() -> Iterator[Any]:
        yield compress(MANIFEST, text_to_bytes(manifest))
        for i in range(num_files):
            arrays = index_to_bytes(make_index(num_samples, seed=i))
            for member in MEMBERS:
                yield compress(member_name(i, member), arrays[member])

    with path.open("wb") as stream:
        write_archive(stream, members())


def open_all(sidecar: Path, cache: Path | None, barrier: Barrier, results: Any) -> None:
    """Open and look at every table; report megabytes held more than before, and seconds."""
    warm = Sidecar(sidecar)
    warm.close()
    before = held_mb()
    barrier.wait(600)
    began = time.perf_counter()
    whole = Sidecar(sidecar)
    tables = whole if cache is None else map_sidecar(whole, cache_dir=cache)
    kept = [tables.index(path) for path in tables.paths]
    total = sum(int(getattr(index, column).sum()) for index in kept for column in MEMBERS.values())
    seconds = time.perf_counter() - began
    barrier.wait(600)
    results.put((held_mb() - before, seconds, total))
    barrier.wait(600)  # nobody lets go before all have counted


def held_mb() -> float:
    """Proportional set size of this process, in MB."""
    memory = read_memory()
    if memory.kind != "pss":
        raise RuntimeError("this system does not tell the proportional set size")
    return memory.size / 1e6


def measure(sidecar: Path, cache: Path | None, processes: int) -> tuple[float, float]:
    """Let processes open all tables at once; return MB of all together and the longest time."""
    context = get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    children = [
        context.Process(target=open_all, args=(sidecar, cache, barrier, results))
        for _ in range(processes)
    ]
    for child in children:
        child.start()
    found = [results.get(timeout=600) for _ in children]
    for child in children:
        child.join()
    if len({total for _, _, total in found}) != 1:
        raise RuntimeError("the processes read different numbers")
    return sum(mb for mb, _, _ in found), max(seconds for _, seconds, _ in found)


def main() -> None:
    """Print a table; the exit code is 1 where the mapped index misses its goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--samples", type=int, default=100_000, help="in each file")
    parser.add_argument("--processes", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines, ratio = report(Path(folder), options.files, options.samples, options.processes)
    sys.stdout.write("\n".join(lines) + "\n")
    sys.exit(ratio >= GOAL)


def report(
    folder: Path, num_files: int, num_samples: int, processes: int
) -> tuple[list[str], float]:
    """Measure; return the lines of a table, and the ratio of the mapped index."""
    sidecar, cache = folder / "large.npz", folder / "indexes"
    write_sidecar(sidecar, num_files=num_files, num_samples=num_samples)
    began = time.perf_counter()
    path = map_sidecar(Sidecar(sidecar), cache_dir=cache).path
    made_s = time.perf_counter() - began
    old_mb, new_mb = (file.stat().st_size / 1e6 for file in (sidecar, path))
    lines = [
        f"{num_files} files, {num_files * num_samples:,} samples",
        f"sidecar {old_mb:.1f} MB, mapped {new_mb:.1f} MB, made in {made_s:.1f} s",
        f"{'':10}{'1 process':>14}{f'{processes} processes':>14}{'ratio':>8}{'opening':>10}",
    ]
    ratios = []
    for name, place in (("mapped", cache), ("sidecar", None)):
        one, _ = measure(sidecar, place, 1)
        many, seconds = measure(sidecar, place, processes)
        ratios.append(many / one)
        lines.append(f"{name:10}{one:11.1f} MB{many:11.1f} MB{many / one:8.2f}{seconds:8.2f} s")
    return lines, ratios[0]


if __name__ == "__main__":
    main()
