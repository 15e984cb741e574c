"""Pictures straight out of a whole video file, as FFmpeg finds them there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.errors import DecodeError
from lerobot_stream.mp4.boxes import Extract, find, parse_header, walk
from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.source.base import Source
from lerobot_stream.source.ranges import SourceFile
from lerobot_stream.span import Span
from lerobot_stream.stream.codec_library import load_video_decoder

if TYPE_CHECKING:
    from torchcodec.decoders import VideoDecoder

_BLOCK_BYTES = 1 << 20
_EDIT_BOX, _EMPTY_BOX = b"edts", b"free"


class WholeVideo:
    """An open decoder on a whole file, which reads the movie box and the samples by itself.

    It is told the times of the pictures, and nothing of where they are. Not thread-safe.
    """

    def __init__(self, source: Source, path: str, index: Mp4Index) -> None:
        """Open the decoder.

        Args:
            source: Where the file is.
            path: The file.
            index: Its sample table.

        Raises:
            SourceError: The file cannot be read.
            DecodeError: FFmpeg cannot open it.
        """
        self.path = path
        order = np.argsort(index.pts_s, kind="stable")
        self._hidden = int(np.count_nonzero(index.pts_s < 0))
        self._ticks = (_media_ticks(index) if self._hidden else _shown_ticks(index))[order]
        self._timescale = index.movie.timescale
        edits = _edit_boxes(source, path, index.movie.moov_offset) if self._hidden else []
        self._file = _UneditedFile(source, path, edits)
        try:
            self._decoder: VideoDecoder = load_video_decoder()(
                self._file,
                dimension_order="NHWC",
                num_ffmpeg_threads=1,
                custom_frame_mappings=_mapping(index, order, self._ticks),
            )
        except (RuntimeError, ValueError) as error:
            raise self._error("the file cannot be opened", error) from error

    def frame(self, number: int) -> NDArray[np.uint8]:
        """Decode one frame by its number in the file.

        Returns:
            ``(H, W, C)``.

        Raises:
            SourceError: The file cannot be read.
            DecodeError: There is no picture of that time.
        """
        try:
            batch = self._decoder.get_frames_at([self._hidden + number])
        except (RuntimeError, IndexError, ValueError) as error:
            raise self._error(f"frame {number} of the file cannot be decoded", error) from error
        wanted = int(self._ticks[self._hidden + number])
        found = round(float(batch.pts_seconds[0]) * self._timescale)
        if found != wanted:
            message = f"frame {number} of the file: wanted tick {wanted}, got {found}"
            raise DecodeError(message, path=self.path)
        picture: NDArray[np.uint8] = batch.data[0].numpy()
        return picture

    def _error(self, message: str, error: Exception) -> Exception:
        """What really went wrong: the source, or the decoder."""
        if self._file.fault is not None:
            return self._file.fault
        reason = str(error).strip().split("\n", 1)[0]
        return DecodeError(f"{message} ({reason})", path=self.path)


class _UneditedFile(SourceFile):
    """A file whose edit lists are passed off as empty boxes.

    FFmpeg loses pictures behind a front trim. Without the trim all samples are presented, at
    the times of the media.
    """

    def __init__(self, source: Source, path: str, edits: list[int]) -> None:
        super().__init__(source, path, block_bytes=_BLOCK_BYTES)
        self._edits = edits
        self.fault: Exception | None = None

    def read_span(self, span: Span) -> bytes:
        try:
            data = super().read_span(span)
        except Exception as error:
            self.fault = error  # the decoder would only say that reading has failed
            raise
        for place in self._edits:
            for i, letter in enumerate(_EMPTY_BOX):
                at = place + i - span.start
                if 0 <= at < len(data):
                    data = data[:at] + bytes([letter]) + data[at + 1 :]
        return data


def _edit_boxes(source: Source, path: str, moov_offset: int) -> list[int]:
    """Bytes of the file at which the kinds of its edit boxes stand."""
    size = source.list_files()[path].size
    head = source.read(path, Span(moov_offset, min(moov_offset + 16, size)))
    whole = Span(0, size)
    moov = parse_header(Extract(path, moov_offset, head), moov_offset, within=whole, parent="")
    extract = Extract(path, moov.start, source.read(path, Span(moov.start, moov.stop)))
    edits = [find(extract, box, "edts") for box in walk(extract, moov) if box.kind == "trak"]
    return [box.start + 4 for box in edits if box is not None]


def _media_ticks(index: Mp4Index) -> NDArray[np.int64]:
    ticks: NDArray[np.int64] = np.cumsum(index.duration) - index.duration
    return ticks + index.composition_offset


def _shown_ticks(index: Mp4Index) -> NDArray[np.int64]:
    return np.rint(index.pts_s * index.movie.timescale).astype(np.int64)


def _mapping(index: Mp4Index, order: NDArray[np.int64], ticks: NDArray[np.int64]) -> str:
    sync = np.zeros(len(index), np.int64)
    sync[index.sync] = 1
    columns = (ticks.tolist(), index.duration[order].tolist(), sync[order].tolist())
    frames = [
        {"pts": pts, "duration": duration, "key_frame": key}
        for pts, duration, key in zip(*columns, strict=True)
    ]
    return json.dumps({"frames": frames})
