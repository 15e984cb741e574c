"""Edit lists: from media time to the presentation time that a sidecar can hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.errors import FormatError
from lerobot_stream.mp4.boxes import Box, Extract, body, find, integer

UNIT_RATE = 1 << 16
MAX_DELAY = 1 << 53
"""Track ticks; beyond it seconds in a double are no longer exact."""
UNTOLD = "a sidecar cannot tell those samples from presented ones"
REMUX = "write the file again with its edits applied: ffmpeg -i IN -movflags +faststart OUT"
"""What to do about edits that cannot be kept; this codes the pictures again."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One line of an edit list."""

    duration: int
    """Movie ticks; 0 reaches to the end of the media."""
    media_time: int
    """Track tick at which the edit starts; -1 for an empty edit."""
    rate: int
    """Speed as a 16.16 fixed-point number; 0 dwells on one picture."""


def parse_edits(extract: Extract, trak: Box) -> tuple[Edit, ...]:
    """Read the edit list of a track, empty where it has none.

    Raises:
        FormatError: The box is shorter than its count, or has an unknown version.
    """
    edts = find(extract, trak, "edts")
    box = edts and find(extract, edts, "elst")
    if not box:
        return ()
    data = body(extract, box, 8)
    version, count = data[0], integer(data, 4, 4)
    if version > 1:
        raise FormatError(f"unknown version {version}", path=extract.path, where=box.where)
    wide = 8 if version else 4
    row = 2 * wide + 4
    if count * row > len(data) - 8:
        message = f"{count} edits need {count * row} bytes, the box has {len(data) - 8}"
        raise FormatError(message, path=extract.path, where=box.where)
    return tuple(
        Edit(
            duration=integer(data, at, wide),
            media_time=integer(data, at + wide, wide, signed=True),
            rate=integer(data, at + 2 * wide, 4, signed=True),
        )
        for at in range(8, 8 + min(count, 3) * row, row)  # a third edit is refused already
    )


def presentation_shift(
    edits: Sequence[Edit],
    cts: NDArray[np.int64],
    *,
    timescale: int,
    movie_timescale: int,
    path: str,
) -> int:
    """Give the ticks to add to composition times so that times below 0 are not presented.

    Args:
        edits: The track's edit list.
        cts: ``(n,)`` Composition times in track ticks.
        timescale: Track ticks per second.
        movie_timescale: Movie ticks per second, the unit of edit durations.
        path: The file, for messages.

    Raises:
        FormatError: The edits do more than delay the track and trim its front.
    """
    if not edits:
        return 0
    delay, edit = _delay_and_edit(
        edits, timescale=timescale, movie_timescale=movie_timescale, path=path
    )
    last = int(cts.max())
    if edit.media_time > last:
        message = f"starts at tick {edit.media_time}, the last sample is at {last}"
        raise FormatError(message, path=path, where="elst", hint=REMUX)
    stop = _edit_stop(edit, cts, timescale=timescale, movie_timescale=movie_timescale)
    if edit.duration and last >= stop:
        message = f"cuts the tail, at tick {int(stop)}, the last sample is at {last}: {UNTOLD}"
        raise FormatError(message, path=path, where="elst", hint=REMUX)
    cut = cts[cts < edit.media_time]
    if delay and len(cut) and int(cut.max()) - edit.media_time + delay >= 0:
        early = (edit.media_time - int(cut.min())) / timescale
        message = f"cuts {early:.3f} s from the front, behind an empty edit: {UNTOLD}"
        raise FormatError(message, path=path, where="elst", hint=REMUX)
    return delay - edit.media_time


def _edit_stop(
    edit: Edit, cts: NDArray[np.int64], *, timescale: int, movie_timescale: int
) -> Fraction:
    """Give the track tick from which on an edit presents nothing.

    A sample that starts right there is cut, as FFmpeg does. Only where movie ticks are longer
    than the last sample can rounding hide a whole one: then a tick of tolerance is given. A
    lone sample is taken to last one track tick, the least that there is.
    """
    tick = Fraction(timescale, movie_timescale)
    spacing = int(np.diff(np.partition(cts, -2)[-2:])[0]) if len(cts) > 1 else 1
    tolerance = tick if tick > spacing else 0
    return edit.media_time + edit.duration * tick + tolerance


def _delay_and_edit(
    edits: Sequence[Edit], timescale: int, movie_timescale: int, path: str
) -> tuple[int, Edit]:
    """Give the track ticks of the empty edit, and the one media edit."""
    delay = 0
    if edits[0].media_time == -1:  # rounded to the nearest tick, as FFmpeg does
        delay = (2 * edits[0].duration * timescale + movie_timescale) // (2 * movie_timescale)
        edits = edits[1:]
    if len(edits) != 1 or edits[0].media_time < 0:
        message = "wanted one media edit, behind one empty edit at most, found others"
        raise FormatError(message, path=path, where="elst", hint=REMUX)
    edit = edits[0]
    if edit.rate != UNIT_RATE:
        found = "a dwell on one picture" if edit.rate == 0 else f"rate {edit.rate / UNIT_RATE}"
        message = f"wanted an edit at rate 1, found {found}"
        raise FormatError(message, path=path, where="elst", hint=REMUX)
    if delay >= MAX_DELAY:
        message = f"wanted an empty edit below {MAX_DELAY} ticks, found {delay}"
        raise FormatError(message, path=path, where="elst", hint=REMUX)
    return delay, edit
