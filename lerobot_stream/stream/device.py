"""Batches on the device that trains, copied while the one before is used."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from lerobot_stream.stream.batch import Batch


def moved(batches: Iterator[Batch], device: torch.device) -> Iterator[Batch]:
    """Hand out each batch on a device.

    On CUDA the copy runs on a stream of its own, one batch ahead of the consumer; the consumer's
    stream waits for it. Batches should lie in page-locked memory, which PyTorch's own allocator
    keeps from being used again while a copy reads it.

    Args:
        batches: Batches on the CPU.
        device: Where they are wanted.

    Yields:
        Batches whose tensors are on ``device``.
    """
    if device.type != "cuda":
        for batch in batches:
            yield _copied(batch, device)
        return
    copies = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    ready: tuple[Batch, torch.cuda.Event] | None = None
    for batch in batches:
        with torch.cuda.stream(copies):
            on_device = _copied(batch, device)
            event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            event.record(copies)
        if ready is not None:
            yield _taken(*ready, device)
        ready = on_device, event
    if ready is not None:
        yield _taken(*ready, device)


def _copied(batch: Batch, device: torch.device) -> Batch:
    return {
        key: value.to(device, non_blocking=True) if isinstance(value, torch.Tensor) else value
        for key, value in batch.items()
    }


def _taken(batch: Batch, event: torch.cuda.Event, device: torch.device) -> Batch:
    current = torch.cuda.current_stream(device)
    current.wait_event(event)
    for value in batch.values():
        if isinstance(value, torch.Tensor):
            value.record_stream(current)
    return batch
