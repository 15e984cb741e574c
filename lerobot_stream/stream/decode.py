"""Pictures out of mini-MP4s, every returned time compared with the one asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.errors import DecodeError
from lerobot_stream.mp4.mux import MiniMp4
from lerobot_stream.stream.codec_library import load_video_decoder

_CALL_BYTES = 1 << 20
"""Most bytes of pictures in one decoder call, where one picture is not larger: what has just been
decoded is then in the cache still, and the allocator gives none of it back in between."""


class MiniDecoder:
    """An open decoder on one episode and camera.

    Not thread-safe. After an error it must be thrown away: the decoder's position is unknown.
    """

    def __init__(self, mini: MiniMp4, *, rank: NDArray[np.int64], place: str) -> None:
        """Open the decoder.

        Args:
            mini: The episode's samples and their exact times.
            rank: ``(n,)`` Position of each frame of the episode among all of ``mini``'s pictures.
            place: Episode, camera and file, for messages.

        Raises:
            DecodeError: The samples are no video that FFmpeg can open.
        """
        self._mini = mini
        self._rank: list[int] = rank.tolist()
        self._pts: list[int] = mini.pts.tolist()
        self._place = place
        self._key_ranks: list[int] = np.flatnonzero(mini.key_frame).tolist()
        self._last = -1
        self.decoded = 0
        """Pictures decoded so far, those before the wanted ones included."""
        try:
            self._decoder = load_video_decoder()(
                mini.data,
                dimension_order="NHWC",
                num_ffmpeg_threads=1,
                custom_frame_mappings=mini.mapping_json(),
            )
        except (RuntimeError, ValueError) as error:
            raise self._error(f"the decoder cannot open it ({_first_line(error)})") from error
        shape = self._decoder.metadata
        picture_bytes = max(1, 3 * (shape.width or 1) * (shape.height or 1))
        self._at_once = max(1, _CALL_BYTES // picture_bytes)

    def frames(self, numbers: Sequence[int]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Decode frames.

        Let go of a picture before asking for the next one, so that it may take its memory.

        Args:
            numbers: ``m`` frame numbers within the episode, rising.

        Yields:
            ``m`` times the number and its picture ``(H, W, C)``.

        Raises:
            DecodeError: A picture is missing, or has another time than its sample.
        """
        for start in range(0, len(numbers), self._at_once):
            part = numbers[start : start + self._at_once]
            yield from zip(part, self._call(part), strict=True)

    def _call(self, numbers: Sequence[int]) -> NDArray[np.uint8]:
        """``(m, H, W, C)`` The pictures of one call of the decoder."""
        ranks = [self._rank[number] for number in numbers]
        try:
            pictures, seconds = self._decoded(ranks)
        except (RuntimeError, IndexError, ValueError) as error:
            raise self._error(
                f"{_told(numbers)} cannot be decoded ({_first_line(error)})"
            ) from error
        for number, rank, second in zip(numbers, ranks, seconds, strict=True):
            tick = second * self._mini.timescale
            if not abs(tick - self._pts[rank]) < 0.5:
                raise self._other_picture(number, rank, tick)
        self._count(ranks)
        return pictures

    def _decoded(self, ranks: list[int]) -> tuple[NDArray[np.uint8], list[float]]:
        """Pictures as the decoder gives them, and the second at which each is shown."""
        first, last = ranks[0], ranks[-1]
        if len(ranks) == 1:  # faster by a few microseconds
            frame = self._decoder.get_frame_at(first)
            return frame.data.numpy()[None], [frame.pts_seconds]
        if last - first == len(ranks) - 1:
            batch = self._decoder.get_frames_in_range(first, last + 1)
        else:
            batch = self._decoder.get_frames_at(ranks)
        if len(batch) != len(ranks):
            raise IndexError(f"{len(batch)} of {len(ranks)} pictures came")
        return batch.data.numpy(), batch.pts_seconds.tolist()

    def _count(self, ranks: list[int]) -> None:
        """Count as the decoder works: onwards by one or within a GOP, else from a GOP's start."""
        last = self._last
        for rank in ranks:
            before = last
            if rank != last + 1:
                key_rank = self._key_ranks[max(0, bisect_right(self._key_ranks, rank) - 1)]
                before = last if key_rank <= last < rank else min(key_rank, rank) - 1
            self.decoded += rank - before
            last = rank
        self._last = last

    def _other_picture(self, number: int, rank: int, tick: float) -> DecodeError:
        return self._error(
            f"frame {number} (sample {self._mini.samples[rank]}) decoded as another picture: "
            f"wanted tick {self._pts[rank]}, got tick {tick:.0f}"
        )

    def _error(self, message: str) -> DecodeError:
        return DecodeError(
            message,
            where=self._place,
            hint="the file is damaged there: leave the episode out with "
            "--dataset.exclude_episodes, or record or encode it again",
        )


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]


def _told(numbers: Sequence[int]) -> str:
    first, last = numbers[0], numbers[-1]
    return f"frame {first}" if first == last else f"frames {first} to {last}"
