"""Which episodes a page shows with drawings and thumbnails, where there are very many."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from lerobot_stream.inspect.facts import Facts
from lerobot_stream.inspect.spread import spread

DRAWN_EPISODES = 5000
"""Most episodes whose rows are drawn."""


def plan_drawn(facts: Facts) -> list[int]:
    """Choose the episodes whose rows are drawn, spread over the dataset."""
    return _spread(np.flatnonzero(facts.table.length > 0).tolist(), DRAWN_EPISODES)


def plan_thumbnails(
    readable: Collection[int], flagged: Collection[int], *, pictures: int, most: int
) -> list[int]:
    """Choose the episodes with thumbnails: those with findings first, the others spread.

    Args:
        readable: Episodes whose pictures can be shown, rising.
        flagged: Episodes with findings that somebody should look at.
        pictures: Pictures of an episode.
        most: Most pictures altogether.

    Returns:
        Episodes, rising.
    """
    room = most // max(pictures, 1)
    first = _spread([number for number in readable if number in flagged], room)
    taken = set(first)
    others = [number for number in readable if number not in taken]
    return sorted([*first, *_spread(others, room - len(first))])


def _spread(numbers: list[int], most: int) -> list[int]:
    """At most so many numbers, at even distances."""
    return [numbers[place] for place in spread(len(numbers), most)]
