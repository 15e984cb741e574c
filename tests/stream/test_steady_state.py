"""A stream that runs for long takes no more of anything than one that has just got warm."""

from __future__ import annotations

import gc
import multiprocessing
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from lerobot_stream.stream.dataset import StreamingLeRobotDataset
from tests.recordings import LENGTHS, WRITERS, record

WARM, MEASURED = 16, 20
MOST_THREADS = 3 + 2 + 2 * 3
"""This one, plan and cache; two that decode; two episodes of three requests fetched at once."""
BATCH_SIZE = 8
BATCHES = -(-sum(LENGTHS) // BATCH_SIZE)

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="PSS and /proc are Linux's")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("steady") / "set", WRITERS["h264-g2"]).root


def own_bytes() -> int:
    """PSS but for files: libraries count more when another process that has them ends."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    sizes = {
        name: int(value.split()[0]) * 1024 for name, _, value in (x.partition(":") for x in lines)
    }
    return sizes["Pss_Anon"] + sizes["Pss_Shmem"]


def run_epochs(root: Path, strategy: Any, *, anew: bool) -> list[tuple[int, int, int]]:
    """Memory, threads and descriptors behind each epoch, in a process that does nothing else."""
    dataset = StreamingLeRobotDataset(
        "a/b",
        root=root,
        sampling_strategy=strategy,
        decoded_pool_gb=0.002,
        decode_threads=2,
        max_num_shards=2,
        repeat=not anew,
    )
    batches = dataset.batches(BATCH_SIZE)
    taken = []
    for epoch in range(WARM + MEASURED):
        if anew:
            dataset.set_epoch(epoch)
            batches = dataset.batches(BATCH_SIZE)
        for _ in islice(batches, BATCHES):
            pass
        gc.collect()
        files = len(list(Path("/proc/self/fd").iterdir()))
        taken.append((own_bytes(), threading.active_count(), files))
    return taken[WARM:]


LEAVES = """
import sys
from itertools import islice
from lerobot_stream.stream.dataset import StreamingLeRobotDataset

dataset = StreamingLeRobotDataset("a/b", root=sys.argv[1], sampling_strategy="clip", repeat=True)
batches = dataset.batches(8)
print(len(list(islice(batches, 3))))
"""


def test_a_program_that_leaves_a_stream_behind_ends_quietly(root: Path) -> None:
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", LEAVES, str(root)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


@linux_only
@pytest.mark.parametrize("anew", [False, True], ids=["one iterator", "an iterator an epoch"])
@pytest.mark.parametrize("strategy", ["remaining", "clip"])
def test_memory_threads_and_files_stay_as_they_are_over_twenty_epochs(
    root: Path, strategy: str, anew: bool
) -> None:
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as alone:
        taken = alone.submit(run_epochs, root, strategy, anew=anew).result()
    sizes, threads, files = (list(column) for column in zip(*taken, strict=True))
    assert median(sizes[-7:]) < 1.05 * median(sizes[:7])
    assert max(threads) <= MOST_THREADS
    assert max(files) <= files[0] + 3  # reads may be under way
