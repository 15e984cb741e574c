"""How the decoded budget of a worker is divided for ``clip``."""

from __future__ import annotations

from dataclasses import dataclass

from lerobot_stream.plan.budget import enough_gb

MOST_ROWS = 1 << 16
"""Most rows of open batches, whatever the decoded budget."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a worker may hold decoded."""

    lanes: int
    """Visits decoded side by side."""
    rows: int
    """Rows of the batches being filled."""
    spread: int
    """How far an item may be displaced; the rest of ``rows`` is for whole batches."""


def plan_capacity(
    *, lanes: int, decoded_bytes: int, tail_bytes: int, item_bytes: int, num_workers: int
) -> Capacity:
    """Divide a decoded budget between rows of open batches and the tails of lanes.

    Three quarters of the rows are for displacement, whatever the batch size, so that it
    stays out of the order; batches of an eighth of the rows then fit with both ends of the
    displaced stretch.

    Args:
        lanes: Lanes wanted.
        decoded_bytes: Decoded bytes that the rank may hold; each worker gets an equal part.
        tail_bytes: Decoded bytes that a lane keeps behind its head for windows.
        item_bytes: Decoded bytes of one item with its windows.
        num_workers: Workers of the rank.

    Returns:
        At most ``lanes`` lanes; halved until their tails take at most half of the budget,
        and leave room for an item.

    Raises:
        ValueError: One lane and one row exceed the budget.
    """
    budget = decoded_bytes // num_workers
    most = min(budget // 2, budget - item_bytes)
    while lanes > 1 and lanes * tail_bytes > most:
        lanes = (lanes + 1) // 2
    if lanes * tail_bytes > most:
        needed = max(2 * tail_bytes, tail_bytes + item_bytes) * num_workers
        raise ValueError(
            f"clip needs at least {enough_gb(needed)} GB for decoded frames,"
            f" the budget is {decoded_bytes / 1e9:.3g} GB"
        )
    rows = min((budget - lanes * tail_bytes) // item_bytes, MOST_ROWS)
    return Capacity(lanes, rows, max(1, 3 * rows // 4))
