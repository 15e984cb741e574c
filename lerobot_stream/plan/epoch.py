"""The order of any epoch of a share, by the strategy its config names."""

from __future__ import annotations

from lerobot_stream.plan.clip import plan_clip
from lerobot_stream.plan.order import Order
from lerobot_stream.plan.random import generator
from lerobot_stream.plan.remaining import plan_remaining
from lerobot_stream.plan.round_robin import plan_round_robin
from lerobot_stream.plan.share import Share


def plan_epoch(share: Share, *, epoch: int) -> Order:
    """Put every frame of a share into the order of one epoch, exactly once.

    Args:
        share: The worker's share.
        epoch: Which epoch; each has its own order.

    Returns:
        A permutation that depends on nothing but the arguments.

    Raises:
        PlanError: Not even one episode and its successor fit the byte budget.
        ValueError: ``clip`` does not fit the decoded budget.
    """
    seeds = (share.config.seed, epoch, share.rank, share.worker)
    match share.config.strategy:
        case "remaining":
            return plan_remaining(share, generator(*seeds))
        case "round_robin":
            return plan_round_robin(share, generator(*seeds))
        case "clip":
            return plan_clip(share, *seeds)
