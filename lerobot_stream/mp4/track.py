"""One video track: its headers, and which of several is the one that decoders play."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from lerobot_stream.errors import FormatError
from lerobot_stream.mp4.boxes import Box, Extract, body, find, integer, need, parse_header, walk
from lerobot_stream.mp4.tables import parse_sizes
from lerobot_stream.span import Span

logger = logging.getLogger(__name__)

ENTRY_FIELDS = 78
"""Bytes of a visual sample entry before its boxes (14496-12, 12.1.3)."""


@dataclass(frozen=True, slots=True)
class Track:
    """The headers of a video track."""

    trak: Box
    """Its box."""
    stbl: Box
    """Its sample table box."""
    enabled: bool
    """Flag of ``tkhd``; decoders prefer enabled tracks."""
    track_id: int
    """``tkhd`` track number."""
    timescale: int
    """Track ticks per second."""
    duration: int
    """Track ticks (``mdhd``)."""


def parse_tracks(extract: Extract, moov: Box) -> list[Track]:
    """Give the video tracks of a movie, in order.

    Raises:
        FormatError: A video track lacks a header.
    """
    traks = [box for box in walk(extract, moov) if box.kind == "trak"]
    return [_parse_track(extract, trak) for trak in traks if _is_video(extract, trak)]


def _is_video(extract: Extract, trak: Box) -> bool:
    handler = need(extract, trak, "mdia", "hdlr")
    return bytes(body(extract, handler, 12)[8:12]) == b"vide"


def _parse_track(extract: Extract, trak: Box) -> Track:
    tkhd = need(extract, trak, "tkhd")
    data = body(extract, tkhd, 84)
    wide = _wide(extract, tkhd)
    mdhd = need(extract, trak, "mdia", "mdhd")
    media = body(extract, mdhd, 32 if _wide(extract, mdhd) else 20)
    timescale, duration = _clock(extract, mdhd, media)
    return Track(
        trak=trak,
        stbl=need(extract, trak, "mdia", "minf", "stbl"),
        enabled=bool(data[3] & 1),
        track_id=integer(data, 20 if wide else 12, 4),
        timescale=timescale,
        duration=duration,
    )


def _wide(extract: Extract, box: Box) -> bool:
    """Tell whether a header box has 64-bit times."""
    version = body(extract, box, 4)[0]
    if version > 1:
        raise FormatError(f"unknown version {version}", path=extract.path, where=box.where)
    return version == 1


def _clock(extract: Extract, box: Box, data: memoryview) -> tuple[int, int]:
    """Read timescale and duration of ``mdhd`` or ``mvhd``, which begin alike."""
    wide = data[0] == 1
    timescale = integer(data, 20 if wide else 12, 4)
    duration = integer(data, 24, 8) if wide else integer(data, 16, 4)
    if not 0 < timescale < 1 << 31:
        message = f"wanted a timescale of 1 or more ticks a second, found {timescale}"
        raise FormatError(message, path=extract.path, where=box.where)
    return timescale, duration


def parse_movie_timescale(extract: Extract, moov: Box) -> int:
    """Read ``mvhd``: movie ticks per second.

    Raises:
        FormatError: The box is missing, too short, or has no ticks.
    """
    mvhd = need(extract, moov, "mvhd")
    data = body(extract, mvhd, 32 if _wide(extract, mvhd) else 20)
    return _clock(extract, mvhd, data)[0]


def check_upright(extract: Extract, moov: Box, track: Track) -> None:
    """Refuse pictures that are stored turned or mirrored.

    Raises:
        FormatError: The matrix of the movie or the track turns or mirrors.
    """
    for box, narrow, wide in (
        (need(extract, moov, "mvhd"), 36, 48),
        (need(extract, track.trak, "tkhd"), 40, 52),
    ):
        at = wide if _wide(extract, box) else narrow
        data = body(extract, box, at + 36)
        a, b, c, d = (integer(data, at + k, 4, signed=True) for k in (0, 4, 12, 16))
        if b or c or a < 0 or d < 0:
            message = f"the matrix [{a} {b}; {c} {d}] / 65536 turns or mirrors the pictures"
            raise FormatError(
                f"{message}, which a sidecar cannot hold",
                path=extract.path,
                where=box.where,
                hint="code the video again; ffmpeg turns the pictures while it does",
            )


def choose_track(extract: Extract, tracks: list[Track], *, file_size: int) -> Track:
    """Give the track that FFmpeg calls the best: enabled, then most bits a second, then first.

    Args:
        extract: Holds the movie box.
        tracks: Video tracks in order, at least one.
        file_size: Bytes of the file.

    Raises:
        FormatError: A sample size box is damaged.
    """
    if len(tracks) == 1:
        return tracks[0]

    def rank(track: Track) -> tuple[bool, bool, float]:
        size = parse_sizes(extract, track.stbl, file_size=file_size)
        rate = int(size.sum()) * track.timescale / max(track.duration, 1)
        return track.enabled, len(size) > 0, rate

    best = max(tracks, key=rank)
    logger.warning(
        "%s: has %d video tracks; track %d is used, as FFmpeg does",
        extract.path,
        len(tracks),
        best.track_id,
    )
    return best


def parse_entries(extract: Extract, track: Track) -> tuple[bytes, list[Box]]:
    """Read ``stsd``: its body, and the box of each sample entry.

    Raises:
        FormatError: There is no entry, or one is too short for a picture.
    """
    stsd = need(extract, track.stbl, "stsd")
    count = integer(body(extract, stsd, 8), 4, 4)
    entries: list[Box] = []
    at = stsd.body + 8
    for _ in range(min(count, 256)):
        entries.append(parse_header(extract, at, within=Span(at, stsd.stop), parent=stsd.name))
        body(extract, entries[-1], ENTRY_FIELDS)
        at = entries[-1].stop
    if not entries:
        raise FormatError("has no sample entry", path=extract.path, where=stsd.where)
    return bytes(extract.take(stsd.body, stsd.stop)), entries


def check_entry(extract: Extract, entry: Box) -> tuple[int, int]:
    """Refuse encrypted samples and give the width and height in pixels.

    Raises:
        FormatError: The entry is encrypted or has no pixels.
    """
    inner = Box(entry.kind, entry.name, entry.start, entry.body + ENTRY_FIELDS, entry.stop)
    if entry.kind == "encv" or find(extract, inner, "sinf"):
        raise FormatError(
            "the video is encrypted",
            path=extract.path,
            where=entry.where,
            hint="decrypt it: ffmpeg -decryption_key KEY -i IN -c copy -movflags +faststart OUT",
        )
    data = extract.take(entry.body, entry.stop)
    width, height = integer(data, 24, 2), integer(data, 26, 2)
    if not width or not height:
        message = f"wanted pictures, found {width}x{height} pixels"
        raise FormatError(message, path=extract.path, where=entry.where)
    return width, height
