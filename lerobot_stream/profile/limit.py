"""The sequential decode limit: how fast this machine decodes every frame once, in order."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from lerobot_stream.stream.decode import MiniDecoder
from lerobot_stream.stream.episode import EpisodeData, EpisodeReader
from lerobot_stream.stream.images import decode_image
from lerobot_stream.stream.opened import OpenedDataset
from lerobot_stream.stream.visit import Visit

_AT_ONCE = 8
"""Pictures between two looks whether it is enough."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """One run to the limit."""

    pictures: int
    """Pictures decoded."""
    seconds: float
    """How long it took."""
    cpu_s: float
    """Seconds of one core that it took, and whatever else this process did."""

    @property
    def rate(self) -> float:
        """Pictures a second, all threads together."""
        return self.pictures / self.seconds


class SequentialLimit:
    """Decodes whole episodes front to back by the stream's own way, and drops the pictures."""

    def __init__(self, opened: OpenedDataset, *, threads: int, frames: int) -> None:
        """Fetch what is decoded.

        Args:
            opened: The open dataset.
            threads: Decode threads.
            frames: Time steps to fetch, about: whole episodes from all over the dataset, all of
                them where it has no more.

        Raises:
            ValueError: There is no camera.
            StreamError: An episode cannot be read.
        """
        if not opened.layout.cameras:
            raise ValueError("a dataset without cameras has no decode limit")
        self.threads = threads
        self._episodes = _fetch(opened, frames)
        self._turn = itertools.cycle(
            [(data, key) for data in self._episodes for key in opened.layout.cameras]
        )
        self._lock = threading.Lock()

    def run(self, frames: int) -> Decoded:
        """Decode until there are at least so many pictures.

        Raises:
            DecodeError: One cannot be decoded.
        """
        done = 0

        def work() -> None:
            nonlocal done
            while True:
                with self._lock:
                    data, key = next(self._turn)
                for pictures in _decode(data, key):
                    with self._lock:
                        done += pictures
                        if done >= frames:
                            return

        started, cpu_s = time.perf_counter(), time.process_time()
        with ThreadPoolExecutor(self.threads) as pool:
            for running in [pool.submit(work) for _ in range(self.threads)]:
                running.result()
        return Decoded(done, time.perf_counter() - started, time.process_time() - cpu_s)


def _fetch(opened: OpenedDataset, frames: int) -> list[EpisodeData]:
    reader = EpisodeReader(opened)
    mean = max(1, int(opened.lengths.mean()))
    count = min(len(opened.numbers), -(-frames // mean))
    chosen = np.linspace(0, len(opened.numbers) - 1, count).round().astype(np.int64)
    numbers, lengths = opened.numbers[chosen], opened.lengths[chosen]
    return [
        reader.read(Visit((0, number), number, 0, length, 0))
        for number, length in zip(numbers.tolist(), lengths.tolist(), strict=True)
    ]


def _decode(data: EpisodeData, key: str) -> Iterator[int]:
    """Decode a camera's pictures, a few at a time, and drop them."""
    if key in data.cameras:
        camera = data.cameras[key]
        decoder = MiniDecoder(camera.mini, rank=camera.rank, place=camera.place)
        for start in range(0, data.length, _AT_ONCE):
            numbers = range(start, min(start + _AT_ONCE, data.length))
            decoder.write(dict.fromkeys(numbers, ()), keep_from=data.length)
            yield len(numbers)
        return
    for number, image in enumerate(data.rows.images[key]):
        decode_image(image, place=f"episode {data.episode_index}, {key}, frame {number}")
        yield 1
