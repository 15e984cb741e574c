"""Pictures out of mini-MP4s, every returned time compared with the one asked for."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.errors import DecodeError
from lerobot_stream.mp4.mux import MiniMp4
from lerobot_stream.stream.codec_library import load_video_decoder


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

    def frame(self, number: int) -> NDArray[np.uint8]:
        """Decode one frame.

        One picture a call: the next one takes its memory, which is then still in the cache.

        Args:
            number: Its number within the episode; cheap where it is the next one.

        Returns:
            ``(H, W, C)``, contiguous, owned by the receiver.

        Raises:
            DecodeError: The picture is missing, or has another time than its sample.
        """
        rank = self._rank[number]
        try:
            found = self._decoder.get_frame_at(rank)
        except (RuntimeError, IndexError, ValueError) as error:
            raise self._error(f"frame {number} cannot be decoded ({_first_line(error)})") from error
        tick = found.pts_seconds * self._mini.timescale
        if not abs(tick - self._pts[rank]) < 0.5:
            raise self._error(
                f"frame {number} (sample {self._mini.samples[rank]}) decoded as another picture: "
                f"wanted tick {self._pts[rank]}, got tick {tick:.0f}"
            )
        self._count(rank)
        picture: NDArray[np.uint8] = found.data.numpy()
        return picture

    def _count(self, rank: int) -> None:
        """Count as the decoder works: onwards by one or within a GOP, else from a GOP's start."""
        before = self._last
        if rank != before + 1:
            key_rank = self._key_ranks[max(0, bisect_right(self._key_ranks, rank) - 1)]
            before = before if key_rank <= before < rank else min(key_rank, rank) - 1
        self.decoded += rank - before
        self._last = rank

    def _error(self, message: str) -> DecodeError:
        return DecodeError(
            message,
            where=self._place,
            hint="the file is damaged there: leave the episode out with "
            "--dataset.exclude_episodes, or record or encode it again",
        )


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]
