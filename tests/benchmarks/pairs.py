"""Interleaved pairs: the decode limit, then a contestant, over and over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from lerobot_stream.profile.limit import Decoded, SequentialLimit
from tests.benchmarks.streams import BATCH_SIZE, Contestant, Slice, advance


@dataclass(frozen=True, slots=True)
class Pair:
    """One slice of a contestant and the limit measured just before it."""

    limit: Decoded
    """The limit."""
    slice: Slice
    """What the contestant did."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a contestant stands to the limit: medians over pairs."""

    rate: float
    """Wanted pictures a second."""
    limit: float
    """Pictures a second of the limit."""
    of_limit: float
    """The first divided by the second."""
    lowest: float
    """Of all pairs."""
    highest: float
    """Of all pairs."""
    cpu_of_limit: float
    """Wanted pictures a second of one core, of the limit's; says more on a busy machine."""
    busy: float
    """Decoded pictures, those before the wanted ones included, a second, divided by the limit."""
    decoded_each: float
    """Pictures decoded for each one wanted."""


def stand(pairs: list[Pair]) -> Standing:
    """Medians of some pairs, each ratio taken within its own pair.

    Raises:
        ValueError: There is no pair.
    """
    if not pairs:
        raise ValueError("no pair to take a median of")
    ratios = [pair.slice.rate / pair.limit.rate for pair in pairs]
    busy = [pair.slice.decoded / pair.slice.seconds / pair.limit.rate for pair in pairs]
    pictures = sum(pair.slice.pictures for pair in pairs)
    return Standing(
        rate=median(pair.slice.rate for pair in pairs),
        limit=median(pair.limit.rate for pair in pairs),
        of_limit=median(ratios),
        lowest=min(ratios),
        highest=max(ratios),
        cpu_of_limit=median(
            pair.slice.pictures * pair.limit.cpu_s / pair.slice.cpu_s / pair.limit.pictures
            for pair in pairs
        ),
        busy=median(busy),
        decoded_each=sum(pair.slice.decoded for pair in pairs) / pictures,
    )


def run_pairs(
    limit: SequentialLimit,
    start: Callable[[], Contestant],
    *,
    pairs: int,
    slice_s: float,
    cameras: int,
) -> Standing:
    """Start a contestant, let it get warm, and measure it against the limit.

    Args:
        limit: The limit.
        start: Starts the contestant.
        pairs: How many pairs.
        slice_s: Seconds that a slice takes, about; a contestant's step may take longer.
        cameras: Pictures of an item.
    """
    limit_rate = limit.run(int(limit.run(256).rate * slice_s)).rate
    contestant = start()
    try:
        warm = advance(contestant, contestant.warm)
        rate = min(warm.rate, limit_rate)
        batches = max(1, round(rate * slice_s / (BATCH_SIZE * cameras * contestant.step)))
        batches *= contestant.step
        measured: list[Pair] = []
        while len(measured) < pairs:
            mark = limit.run(int(limit_rate * slice_s))
            piece = advance(contestant, batches)
            # A step may fall on batches that were ready, with nothing to decode behind them.
            if piece.pictures > batches * BATCH_SIZE * cameras / 4:
                measured.append(Pair(mark, piece))
        return stand(measured)
    finally:
        contestant.close()
