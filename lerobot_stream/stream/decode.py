"""Pictures out of mini-MP4s, every returned time compared with the one asked for."""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.errors import DecodeError
from lerobot_stream.mp4.mux import MiniMp4
from lerobot_stream.stream.cells import Cell, write_picture
from lerobot_stream.stream.codec_library import load_video_decoder
from lerobot_stream.stream.decode_run import DecodeRun, load_decode_run

if TYPE_CHECKING:
    from torchcodec.decoders import VideoDecoder

logger = logging.getLogger(__name__)


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
        self._decoder = self._opened()
        self._run = load_decode_run() if hasattr(self._decoder, "_decoder") else None

    def _opened(self) -> VideoDecoder:
        try:
            return load_video_decoder()(
                self._mini.data,
                dimension_order="NHWC",
                num_ffmpeg_threads=1,
                custom_frame_mappings=self._mini.mapping_json(),
            )
        except (RuntimeError, ValueError) as error:
            raise self._error(f"the decoder cannot open it ({_first_line(error)})") from error

    def write(
        self, cells: Mapping[int, Sequence[Cell]], *, keep_from: int
    ) -> dict[int, NDArray[np.uint8]]:
        """Decode frames straight to where they are shown.

        Args:
            cells: Where each frame goes, by its number within the episode.
            keep_from: First frame whose picture is given back.

        Returns:
            ``(H, W, C)`` Those pictures, by frame.

        Raises:
            DecodeError: A picture is missing, or has another time than its sample, or
                another shape than its cells.
        """
        numbers = sorted(cells)
        if self._run is not None:
            kept = self._write_run(self._run, numbers, cells, keep_from)
            if kept is not None:
                return kept
            # Something is amiss: begin anew, one picture at a time, to say what.
            logger.debug("%s: a run failed, its pictures are decoded again", self._place)
            self._run, self._decoder, self._last = None, self._opened(), -1
        kept = {}
        for number, picture in self.frames(numbers):
            write_picture(picture, cells[number], place=self._place)
            if number >= keep_from:
                kept[number] = picture
            del picture  # so that the next one may take its memory
        return kept

    def _write_run(
        self,
        run: DecodeRun,
        numbers: Sequence[int],
        cells: Mapping[int, Sequence[Cell]],
        keep_from: int,
    ) -> dict[int, NDArray[np.uint8]] | None:
        """Write without the interpreter; None where any picture is not as it should be."""
        flat = [cell for number in numbers for cell in cells[number]]
        stops = list(accumulate(len(cells[number]) for number in numbers))
        pictures, slots = [cell[0] for cell in flat], [cell[1] for cell in flat]
        ranks = [self._rank[number] for number in numbers]
        kept_from = bisect_left(numbers, keep_from)
        try:
            seconds, kept = run(self._decoder._decoder, ranks, pictures, slots, stops, kept_from)
        except (RuntimeError, IndexError, ValueError):
            return None
        if len(seconds) < len(ranks) or not all(map(self._is_at, ranks, seconds)):
            return None
        self._count(ranks)
        return {
            number: picture.numpy()
            for number, picture in zip(numbers[kept_from:], kept, strict=True)
        }

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
        for number in numbers:
            yield number, self._picture(number)

    def _picture(self, number: int) -> NDArray[np.uint8]:
        rank = self._rank[number]
        try:
            frame = self._decoder.get_frame_at(rank)
        except (RuntimeError, IndexError, ValueError) as error:
            raise self._error(f"frame {number} cannot be decoded ({_first_line(error)})") from error
        if not self._is_at(rank, frame.pts_seconds):
            raise self._other_picture(number, rank, frame.pts_seconds)
        self._count([rank])
        picture: NDArray[np.uint8] = frame.data.numpy()
        return picture

    def _is_at(self, rank: int, second: float) -> bool:
        """Whether a picture is shown when it should be."""
        return abs(second * self._mini.timescale - self._pts[rank]) < 0.5

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

    def _other_picture(self, number: int, rank: int, second: float) -> DecodeError:
        tick = second * self._mini.timescale
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
