"""The epochs that one worker delivers one after another, some begun before by other workers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lerobot_stream.plan.offset import locate
from lerobot_stream.plan.share import Share


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """What one worker delivers, epoch after epoch, without end."""

    unfinished: Mapping[int, Share]
    """What is left for the worker of epochs already begun, by rising epoch."""
    next_epoch: int
    """The first epoch of which nothing has been delivered."""
    whole: Share
    """The worker's share of that epoch and of all that follow."""

    def share(self, epoch: int) -> Share:
        """What the worker delivers of an epoch."""
        return self.unfinished.get(epoch, self.whole)

    def epochs(self, start: int = 0) -> Iterator[int]:
        """Epochs of which the worker delivers something, from ``start`` on."""
        yield from (epoch for epoch in self.unfinished if epoch >= start)
        yield from itertools.count(max(start, self.next_epoch))

    def locate(self, offset: int) -> tuple[int, int]:
        """Epoch and item after a number of items.

        Args:
            offset: Items that the worker has delivered before.

        Returns:
            The epoch, and the position in it of the next item to deliver.
        """
        for epoch, share in self.unfinished.items():
            if offset < share.num_items:
                return epoch, offset
            offset -= share.num_items
        ahead, item = locate(self.whole.num_items, offset)
        return self.next_epoch + ahead, item

    def pool(self) -> int:
        """Most episodes that are mixed at once.

        Raises:
            PlanError: Not even one episode of an epoch already begun and its successor fit the
                byte budget.
        """
        return max(share.pool() for share in (*self.unfinished.values(), self.whole))
