"""Which streams are measured against the limit, and on what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from lerobot_stream.profile.limit import SequentialLimit
from lerobot_stream.stream.dataset import StreamingLeRobotDataset
from lerobot_stream.stream.map_style import LeRobotDataset
from tests.benchmarks.datasets import CAMERAS, ENCODINGS, make_dataset
from tests.benchmarks.footage import FPS, Footage
from tests.benchmarks.pairs import Standing, run_pairs
from tests.benchmarks.streams import Contestant, MapStyle, Threads, Workers

Way = Literal["remaining", "round_robin", "clip", "clip, windows", "map-style"]
WAYS: tuple[Way, ...] = ("remaining", "round_robin", "clip", "clip, windows", "map-style")
THREADS = 2
"""Decode threads, or workers with one each."""
CLOSER = 2
"""Times the pairs, and the seconds of each, for clip by threads: medians of five short pairs differ
by 2 % on a shared host."""
_LIMIT_FRAMES = 24_000
"""Enough to cost what the whole dataset does; five episodes were decoded 1 % faster."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One measurement."""

    encoding: str
    """A key of ``ENCODINGS``."""
    cameras: int
    """How many."""
    workers: int
    """Worker processes; 0 for threads alone. The map-style loader always has two."""
    way: Way
    """How batches are made."""

    @property
    def name(self) -> str:
        """What ``--only`` looks at: ``h264-g30/2cam/0w/clip``."""
        return f"{self.encoding}/{self.cameras}cam/{self.workers}w/{self.way}"


def all_cells() -> Iterator[Cell]:
    """Every measurement, those of one dataset together."""
    for encoding in ENCODINGS:
        for cameras in (1, 2):
            yield Cell(encoding, cameras, 0, "map-style")
            for workers in (0, 2):
                for way in ("remaining", "round_robin", "clip"):
                    yield Cell(encoding, cameras, workers, way)
            if cameras == 1:
                yield Cell(encoding, cameras, 0, "clip, windows")


def few_cells() -> Iterator[Cell]:
    """What shows most in a short time."""
    for encoding in ("av1-g2", "h264-g250"):
        for way in ("map-style", "remaining", "clip"):
            yield Cell(encoding, 1, 0, way)
    yield Cell("h264-g30", 2, 2, "clip")


class Bench:
    """Opens datasets as cells need them and measures cell by cell."""

    def __init__(self, work_dir: Path, footage: Footage, *, pairs: int, slice_s: float) -> None:
        """Measure with so many pairs of slices of so many seconds."""
        self._work_dir = work_dir
        self._footage = footage
        self._pairs = pairs
        self._slice_s = slice_s
        self._limit: tuple[tuple[str, int], SequentialLimit] | None = None

    def measure(self, cell: Cell) -> Standing:
        """Measure one cell."""
        root = make_dataset(self._work_dir, cell.encoding, self._footage, cameras=cell.cameras)
        times = CLOSER if cell.way in ("clip", "clip, windows") and not cell.workers else 1
        return run_pairs(
            self._limit_of(cell, root),
            partial(_start, cell, root),
            pairs=times * self._pairs,
            slice_s=times * self._slice_s,
            cameras=cell.cameras,
        )

    def _limit_of(self, cell: Cell, root: Path) -> SequentialLimit:
        key = (cell.encoding, cell.cameras)
        if self._limit is None or self._limit[0] != key:
            opened = LeRobotDataset("bench/mark", root=root).opened
            limit = SequentialLimit(opened, threads=THREADS, frames=_LIMIT_FRAMES)
            self._limit = key, limit
        return self._limit[1]


def _start(cell: Cell, root: Path) -> Contestant:
    if cell.way == "map-style":
        items = LeRobotDataset("bench/mark", root=root, return_uint8=True)
        return MapStyle(items, num_workers=THREADS)
    windows = {CAMERAS[0]: [-2 / FPS, -1 / FPS, 0.0]} if cell.way == "clip, windows" else None
    dataset = StreamingLeRobotDataset(
        "bench/mark",
        root=root,
        sampling_strategy="clip" if windows else cell.way,  # type: ignore[arg-type]
        delta_timestamps=windows,
        decode_threads=1 if cell.workers else THREADS,
        return_uint8=True,
        repeat=True,
    )
    if cell.workers:
        return Workers(dataset, num_workers=cell.workers)
    return Threads(dataset)


def chosen(cells: Sequence[Cell], only: Sequence[str]) -> list[Cell]:
    """Cells whose name holds every one of some words."""
    return [cell for cell in cells if all(word in cell.name for word in only)]
