"""Whether a sidecar leads to the right pictures: through mini-MP4s and straight from the files."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.counted import counted
from lerobot_stream.dataset.metadata import DatasetMetadata
from lerobot_stream.errors import DecodeError, StreamError
from lerobot_stream.inspect.spread import spread
from lerobot_stream.inspect.video_files import TOLERANCE_S
from lerobot_stream.inspect.whole_video import WholeVideo
from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.mp4.mux import build_mini_mp4
from lerobot_stream.mp4.select import present
from lerobot_stream.sidecar.schema import Sidecar
from lerobot_stream.sidecar.spans import Spans, plan_spans
from lerobot_stream.sidecar.validate import Problem, is_undecided, undecided
from lerobot_stream.source.base import Source
from lerobot_stream.span import Span
from lerobot_stream.stream.codec_library import load_video_decoder
from lerobot_stream.stream.decode import MiniDecoder
from lerobot_stream.stream.episode import frame_ranks

EPISODES_PER_FILE = 3
"""Episodes of a file and camera that are looked at: the first, one in the middle, the last."""
FRAMES_PER_EPISODE = 3
"""Frames of each that are decoded: the first, one in the middle, the last."""
_THREADS = 4


def check_decoding(source: Source, meta: DatasetMetadata, sidecar: Sidecar) -> list[Problem]:
    """Decode sampled frames of every video file twice and compare the pictures.

    Args:
        source: Where the files are.
        meta: The dataset's metadata.
        sidecar: Its sidecar. Files whose tables cannot be read are passed over, and so are
            episodes whose frames are not in their file: other checks tell of them.

    Returns:
        Every difference, file by file. Where the source fails, it is asked no further, and
        what that leaves open is an ``Undecided`` one.

    Raises:
        DecodeError: There is no decoder on this machine.
    """
    load_video_decoder()
    spans = plan_spans(
        sidecar.index,
        meta.episodes,
        meta.info.video_keys,
        paths=sidecar.paths,
        fps=meta.info.fps,
        tolerance_s=TOLERANCE_S,
    )
    check = _Check(source, meta, sidecar, spans)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="decode") as threads:
        return [problem for found in threads.map(check.look, spans.paths) for problem in found]


@dataclass(frozen=True, slots=True)
class _Sample:
    """Frames of one episode and camera."""

    number: int
    """Row of the episode table."""
    camera: int
    """Column of the spans."""
    frames: NDArray[np.int64]
    """Frame numbers within the episode, rising."""


class _Check:
    """What all files are checked with."""

    def __init__(
        self, source: Source, meta: DatasetMetadata, sidecar: Sidecar, spans: Spans
    ) -> None:
        self.source = source
        self.meta = meta
        self.sidecar = sidecar
        self.spans = spans
        self._lost = threading.Event()

    def look(self, path: str) -> list[Problem]:
        """Check one file."""
        samples = plan_samples(self.spans, self.meta.episodes.length, path)
        if not samples or self._lost.is_set():
            return []
        index = self.sidecar.index(path)
        problems: list[Problem] = []
        try:
            whole = WholeVideo(self.source, path, index)
            for sample in samples:
                problems += self._compare(path, index, whole, sample)
        except StreamError as error:
            if is_undecided(error):
                self._lost.set()
                return [*problems, undecided(error, file=path)]
            problems.append(Problem(path, error.where or "file", "pictures", error.message))
        return problems

    def _compare(
        self, path: str, index: Mp4Index, whole: WholeVideo, sample: _Sample
    ) -> Iterator[Problem]:
        origin = int(self.spans.first_frame[sample.number, sample.camera])
        episode = int(self.meta.episodes.episode_index[sample.number])
        place = f"episode {episode}, {self.spans.video_keys[sample.camera]}"
        try:
            ours = self._decode_mini(path, index, sample)
        except DecodeError as error:
            yield Problem(path, place, "pictures through a mini-MP4", error.message)
            return
        for frame, picture in zip(sample.frames.tolist(), ours, strict=True):
            try:
                theirs = whole.frame(origin + frame)
            except DecodeError as error:
                yield Problem(path, f"{place}, frame {frame}", "a picture", error.message)
                continue
            if not np.array_equal(picture, theirs):
                found = f"through its mini-MP4 {_difference(picture, theirs)}"
                yield Problem(path, f"{place}, frame {frame}", "the file's own picture", found)

    def _decode_mini(self, path: str, index: Mp4Index, sample: _Sample) -> list[NDArray[np.uint8]]:
        """The sampled frames of one episode, by way of its mini-MP4."""
        spans, cell = self.spans, (sample.number, sample.camera)
        start, stop = int(spans.start_sample[cell]), int(spans.stop_sample[cell])
        span = Span(int(spans.start_byte[cell]), int(spans.stop_byte[cell]))
        payload = self.source.read(path, span)
        mini = build_mini_mp4(index, start, stop, payload, span.start)
        origin, length = int(spans.first_frame[cell]), int(self.meta.episodes.length[sample.number])
        rank = frame_ranks(mini, present(index).order[origin : origin + length])
        decoder = MiniDecoder(mini, rank=rank, place=path)
        return [picture for _, picture in decoder.frames(sample.frames.tolist())]


def plan_samples(spans: Spans, lengths: NDArray[np.int64], path: str) -> list[_Sample]:
    """Choose the episodes and frames of a file that are decoded.

    Args:
        spans: Where the episodes lie.
        lengths: ``(E,)`` Frames of each episode.
        path: The file.

    Returns:
        Episodes spread over the file, and frames over each; first and last are among them.
    """
    number, camera = np.nonzero((spans.file == spans.paths.index(path)) & spans.placed)
    samples = []
    for own in np.unique(camera):
        numbers = number[camera == own]
        numbers = numbers[np.argsort(spans.first_frame[numbers, own], kind="stable")]
        for i in spread(len(numbers), EPISODES_PER_FILE):
            frames = spread(int(lengths[numbers[i]]), FRAMES_PER_EPISODE)
            samples.append(_Sample(int(numbers[i]), int(own), frames))
    return samples


def _difference(picture: NDArray[np.uint8], other: NDArray[np.uint8]) -> str:
    if picture.shape != other.shape:
        return f"one of shape {picture.shape}, not {other.shape}"
    differs: Any = (picture != other).any(axis=-1)
    return f"one that differs in {int(differs.sum())} of {counted(differs.size, 'pixel')}"
