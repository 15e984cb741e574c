"""How many frames are decoded to deliver an order whose runs are fixed."""

from __future__ import annotations

import numpy as np

from lerobot_stream.plan.entries import start_costs
from lerobot_stream.plan.order import Order
from lerobot_stream.plan.share import Share


def decoded_frames(share: Share, order: Order) -> int:
    """Count decoded frames, all cameras together.

    A run goes on behind the one before it in its visit where that is not dearer than to
    start at the last clean entry.

    Args:
        share: The worker's share.
        order: An order of it, with runs.

    Returns:
        Frames of single cameras; ``len(order) * num_cameras`` at best where all frames are
        delivered.
    """
    if order.decode is None or order.run_start is None:
        raise ValueError("the order has no runs of its own")
    episodes, config = share.episodes, share.config
    first_item = order.decode[order.run_start[:-1]]
    last_item = order.decode[order.run_start[1:] - 1]
    by_visit = np.argsort(order.visit[first_item], kind="stable")
    first_item, last_item = first_item[by_visit], last_item[by_visit]
    visit = order.visit[first_item]
    episode = order.visit_episode[visit]
    start = np.maximum(order.frame[first_item].astype(np.int64) + config.first_offset, 0)
    stop = order.frame[last_item].astype(np.int64) + 1 + config.last_offset
    stop = np.minimum(stop, episodes.lengths[episode])
    afresh = (stop - start) * episodes.num_cameras + start_costs(episodes, episode, start)
    further = np.diff(stop, prepend=0) * episodes.num_cameras
    goes_on = (np.diff(visit, prepend=-1) == 0) & (further >= 0)
    return int(np.where(goes_on, np.minimum(afresh, further), afresh).sum())
