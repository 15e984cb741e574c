"""Image transforms at delivery, reproducible whatever the threads do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from lerobot_stream.stream.batch import Batch

Transform = Callable[[torch.Tensor], torch.Tensor]


def transformed(
    batches: Iterator[Batch],
    transform: Transform,
    *,
    cameras: Sequence[str],
    seed: int,
    epochs: Iterator[list[int]],
) -> Iterator[Batch]:
    """Apply a transform to each camera of each item, in item order, on this thread.

    PyTorch's global generator is seeded for each item from (seed, epoch, index) and put back
    afterwards, so that an item looks the same however it was reached.

    Args:
        batches: Batches as they come.
        transform: Gets ``(C, H, W)`` or ``(T, C, H, W)``; all steps of a window at once.
        cameras: The keys it is applied to.
        seed: The stream's seed.
        epochs: The epoch of each item, a list a batch.

    Yields:
        Batches with new pictures.
    """
    for batch, of_epoch in zip(batches, epochs, strict=False):
        index = batch["index"]
        if not isinstance(index, torch.Tensor):
            raise TypeError("index is a column of numbers")
        for key in cameras:
            pictures = batch[key]
            items = []
            for row, number in enumerate(index.tolist()):
                seeds = (seed, of_epoch[row], number)
                items.append(transform_item(transform, pictures[row], seeds))  # type: ignore[arg-type]
            batch[key] = torch.stack(items)
        yield batch


def transform_item(
    transform: Transform, pictures: torch.Tensor, seeds: tuple[int, int, int]
) -> torch.Tensor:
    """Apply a transform to one camera of an item.

    Args:
        transform: May draw from PyTorch's global generator, which is put back afterwards.
        pictures: ``(C, H, W)`` or ``(T, C, H, W)``.
        seeds: The stream's seed, the epoch, the item's dataset index.
    """
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed, which also seeds the GPUs that train.
        torch.default_generator.manual_seed(item_seed(*seeds))
        return transform(pictures)


def item_seed(seed: int, epoch: int, index: int) -> int:
    """One 63-bit seed out of three numbers, well mixed."""
    mixed = 0
    for number in (seed, epoch, index):
        mixed = (mixed ^ number) * 0x9E3779B97F4A7C15 & (1 << 64) - 1
        mixed ^= mixed >> 31
    return mixed >> 1
