"""What the ranks of a job do in tests."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import torch
from rich.console import Console
from safetensors.torch import save_file
from torch.nn.parallel import DistributedDataParallel

from lerobot_stream.errors import StreamError
from lerobot_stream.train.config import TrainConfig
from lerobot_stream.train.data import StreamedData
from lerobot_stream.train.distributed import join_ranks
from lerobot_stream.train.loop import train
from lerobot_stream.train.policies.act import ActPolicy
from lerobot_stream.train.policies.base import Batch
from lerobot_stream.train.step import count_valid, gradients_shared
from tests.train.tiny import FEATURES, TINY_ACT, make_batch

NO_NOISE = replace(TINY_ACT, use_vae=False, dropout=0.0)


def part_of(batch: Batch, number: int) -> Batch:
    """Two rows of a batch."""
    return {key: value[2 * number : 2 * number + 2] for key, value in batch.items()}


def save_gradients(path: Path) -> None:
    """Save the gradient of items of which each rank has two batches of two."""
    with join_ranks("cpu", timeout_s=60) as ranks:
        torch.manual_seed(0)
        policy = ActPolicy(NO_NOISE, FEATURES)
        model = DistributedDataParallel(policy)
        items = make_batch(4 * ranks.world_size)
        parts = [part_of(items, 2 * ranks.rank + i) for i in range(2)]
        num_valid = count_valid("action", parts, ranks)
        total = torch.zeros(())
        for number, part in enumerate(parts):
            with gradients_shared(model, now=number == 1):
                loss, _ = model(part, num_valid)
                (loss / 2).backward()
            total += loss.detach() / 2
        state = {
            name: p.grad.contiguous() for name, p in policy.named_parameters() if p.grad is not None
        }
        state["loss"] = ranks.sum(total) / ranks.world_size
        if ranks.is_first:
            save_file(state, path)
        assert ranks.any(ranks.rank == 1)
        assert not ranks.any(False)
        everyone = list(range(ranks.world_size))
        assert ranks.gather(ranks.rank) == (everyone if ranks.is_first else [])


def leave_the_other_alone() -> None:
    """Rank 1 goes; rank 0 waits for it."""
    try:
        with join_ranks("cpu", timeout_s=60) as ranks:
            if ranks.rank == 1:
                os._exit(0)
            ranks.any(True)
    except StreamError as error:
        print(error)  # noqa: T201


def train_and_print(config: TrainConfig) -> None:
    """Train; print where the last checkpoint is, or the error."""
    try:
        print(train(config, console=Console(stderr=True, width=200)))  # noqa: T201
    except StreamError as error:
        print(f"error: {error}")  # noqa: T201


def train_and_record(config: TrainConfig, folder: Path) -> None:
    """Train, and keep the batches that each rank takes, one file each."""
    read = StreamedData.__iter__
    rank = int(os.environ.get("RANK", 0))

    def recorded(data: StreamedData) -> Generator[Batch]:
        with closing(read(data)) as batches:
            for number, batch in enumerate(batches):
                torch.save(batch, folder / f"rank{rank}-{number:03}.pt")
                yield batch

    StreamedData.__iter__ = recorded  # type: ignore[method-assign]
    train_and_print(config)


def train_and_stop(config: TrainConfig, metrics: Path) -> None:
    """Train, and ask this process to stop once there are metrics."""

    def ask() -> None:
        while not metrics.exists() or not metrics.stat().st_size:
            pass
        os.kill(os.getpid(), signal.SIGUSR1)

    threading.Thread(target=ask, daemon=True).start()
    train_and_print(config)
