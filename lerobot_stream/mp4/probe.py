"""From a file's movie box to the sample table of its video track."""

from __future__ import annotations

import numpy as np

from lerobot_stream.errors import FormatError
from lerobot_stream.mp4.boxes import Box, Extract, find
from lerobot_stream.mp4.edits import parse_edits, presentation_shift
from lerobot_stream.mp4.index import Movie, Mp4Index
from lerobot_stream.mp4.layout import REMUX, Layout, Read, read_layout
from lerobot_stream.mp4.tables import SampleTable, parse_sample_table
from lerobot_stream.mp4.track import (
    Track,
    check_entry,
    check_upright,
    choose_track,
    parse_entries,
    parse_movie_timescale,
    parse_tracks,
)


def read_mp4_index(
    read: Read, *, file_size: int, path: str, max_probe_bytes: int = 64 << 20
) -> Mp4Index:
    """Read the sample table of a file's video track.

    Takes 1 request where the movie box lies before the media data and within the probe
    (:func:`~lerobot_stream.mp4.layout.probe_bytes`: 1 to 4 MiB), else 2. Behind the media
    data it takes 2, or 3 where the movie box is longer than the probe. A file no longer than
    the probe takes 1.

    Args:
        read: Gives exactly the bytes of a span of the file, with one request.
        file_size: Bytes of the file.
        path: The file, for messages.
        max_probe_bytes: Most bytes that one request may ask for, and that a movie box may have.

    Raises:
        FormatError: The file is not a whole MP4 with a plain video track, or has a feature
            that a sidecar cannot hold; the message says which.
    """
    layout = read_layout(read, file_size=file_size, path=path, max_probe_bytes=max_probe_bytes)
    extract, moov = layout.extract, layout.moov
    _check_movie(extract, moov)
    tracks = parse_tracks(extract, moov)
    if not tracks:
        raise FormatError("has no video track", path=path, where=moov.where)
    track = choose_track(extract, tracks, file_size=file_size)
    check_upright(extract, moov, track)
    samples = parse_sample_table(extract, track.stbl, file_size=file_size)
    if not len(samples.size):
        raise FormatError("the video track has no samples", path=path, where=track.trak.where)
    movie = _movie(layout, track, samples, file_size=file_size)
    cts = np.cumsum(samples.duration) - samples.duration + samples.composition_offset
    shift = presentation_shift(
        parse_edits(extract, track.trak),
        cts,
        timescale=track.timescale,
        movie_timescale=parse_movie_timescale(extract, moov),
        path=path,
    )
    return Mp4Index(
        movie=movie,
        pts_s=(cts + shift) / track.timescale,
        duration=samples.duration,
        composition_offset=samples.composition_offset,
        size=samples.size,
        offset=samples.offset,
        sync=samples.sync,
    )


def _check_movie(extract: Extract, moov: Box) -> None:
    """Refuse movies whose samples the sample table does not describe."""
    if find(extract, moov, "mvex"):
        raise FormatError(
            "the file is fragmented (mvex)", path=extract.path, where=moov.where, hint=REMUX
        )
    if find(extract, moov, "cmov"):
        raise FormatError(
            "the movie box is compressed (cmov)", path=extract.path, where=moov.where, hint=REMUX
        )


def _movie(layout: Layout, track: Track, samples: SampleTable, *, file_size: int) -> Movie:
    """Gather what is known besides the samples."""
    extract = layout.extract
    stsd_body, entries = parse_entries(extract, track)
    used = np.unique(samples.entry).tolist()
    if used != [1]:
        message = f"samples use the sample entries {used} of {len(entries)}"
        raise FormatError(
            f"{message}, a sidecar can hold only the first",
            path=extract.path,
            where=track.stbl.where,
            hint="code the video again with one set of parameters",
        )
    width, height = check_entry(extract, entries[0])
    first = int(samples.offset[0])
    holding = (box for box in layout.mdat if box.body <= first < box.stop)
    mdat = next(holding, layout.mdat[0])
    return Movie(
        file_size=file_size,
        ftyp=layout.ftyp,
        moov_offset=layout.moov.start,
        mdat_offset=mdat.start,
        mdat_payload_offset=mdat.body,
        mdat_payload_size=mdat.stop - mdat.body,
        faststart=layout.moov.start < mdat.start,
        codec=entries[0].kind,
        timescale=track.timescale,
        duration=track.duration,
        track_id=track.track_id,
        width=width,
        height=height,
        stsd_body=stsd_body,
    )
