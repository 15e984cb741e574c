"""Pictures out of mini-MP4s, every returned time compared with the one asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from lerobot_stream.errors import DecodeError
from lerobot_stream.mp4.mux import MiniMp4
from lerobot_stream.stream.codec_library import load_video_decoder

_CALL_BYTES = 6 << 20
"""Most bytes of pictures in one decoder call: what is written to batches is still in the cache."""


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
        self._rank = rank
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

    def frames(self, numbers: NDArray[np.int64]) -> Iterator[tuple[int, int, NDArray[np.uint8]]]:
        """Decode frames in calls of bounded size.

        Args:
            numbers: ``(m,)`` Frame numbers within the episode, rising.

        Yields:
            ``(start, stop, pictures)``: pictures ``(stop - start, H, W, C)`` of
            ``numbers[start:stop]``, contiguous, owned by the receiver.

        Raises:
            DecodeError: A picture is missing, or has another time than its sample.
        """
        metadata = self._decoder.metadata
        frame_bytes = max(1, 3 * (metadata.width or 1) * (metadata.height or 1))
        # Calls of one size leave memory that the next one fits into.
        calls = max(1, -(-len(numbers) // max(1, _CALL_BYTES // frame_bytes)))
        step = max(1, -(-len(numbers) // calls))
        rank = self._rank[numbers]
        for start in range(0, len(numbers), step):
            stop = min(start + step, len(numbers))
            yield start, stop, self._call(numbers[start:stop], rank[start:stop])
        self._count(rank.tolist())

    def _call(self, numbers: NDArray[np.int64], rank: NDArray[np.int64]) -> NDArray[np.uint8]:
        first, last = int(rank[0]), int(rank[-1])
        try:
            if last - first == len(rank) - 1:
                batch = self._decoder.get_frames_in_range(first, last + 1)
            else:
                batch = self._decoder.get_frames_at(torch.from_numpy(rank))
        except (RuntimeError, IndexError, ValueError) as error:
            raise self._error(
                f"frames {numbers[0]} to {numbers[-1]} cannot be decoded ({_first_line(error)})"
            ) from error
        wanted = self._mini.pts[rank]
        got = batch.pts_seconds.numpy() * self._mini.timescale
        if len(got) != len(wanted) or not np.abs(got - wanted).max() < 0.5:
            raise self._other_picture(numbers, wanted, np.rint(got).astype(np.int64))
        pictures: NDArray[np.uint8] = batch.data.numpy()
        return pictures

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

    def _other_picture(
        self, numbers: NDArray[np.int64], wanted: NDArray[np.int64], got: NDArray[np.int64]
    ) -> DecodeError:
        bad = int(np.argmax(got != wanted)) if len(got) == len(wanted) else len(got)
        frame = int(numbers[min(bad, len(numbers) - 1)])
        sample = int(self._mini.samples[self._rank[frame]])
        found = f"tick {got[bad]}" if bad < len(got) else "nothing"
        return self._error(
            f"frame {frame} (sample {sample}) decoded as another picture: wanted tick "
            f"{wanted[min(bad, len(wanted) - 1)]}, got {found}"
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
