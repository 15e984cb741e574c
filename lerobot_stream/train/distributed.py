"""The ranks of a job: who this process is, and what all of them agree on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from lerobot_stream.counted import counted
from lerobot_stream.errors import StreamError


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process among those that train together."""

    rank: int
    """From 0; rank 0 alone writes."""
    world_size: int
    """How many there are."""
    device: torch.device
    """Where this one computes."""
    host_group: dist.ProcessGroup | None = None
    """For what is not on the device; None with one rank."""

    @property
    def is_first(self) -> bool:
        """Whether this process writes checkpoints and logs."""
        return self.rank == 0

    def sum(self, values: Tensor) -> Tensor:
        """Add up a tensor over all ranks; it is changed in place, too."""
        if self.world_size > 1:
            with _heard():
                dist.all_reduce(values)
        return values

    def any(self, flag: bool) -> bool:
        """Whether any rank says so, without waiting for the device."""
        if self.world_size == 1:
            return flag
        flags = torch.tensor([int(flag)])
        with _heard():
            dist.all_reduce(flags, group=self.host_group)
        return bool(flags.item())

    def gather(self, value: Any) -> list[Any]:
        """Bring a value of each rank to rank 0; other ranks get an empty list."""
        if self.world_size == 1:
            return [value]
        values = [None] * self.world_size if self.is_first else None
        with _heard():
            dist.gather_object(value, values, group=self.host_group)
        return values or []


@contextmanager
def join_ranks(device: str | None, *, timeout_s: float) -> Iterator[Ranks]:
    """Join the other processes that ``torchrun`` started, if it did.

    Args:
        device: Kind of device; None takes the best there is.
        timeout_s: Seconds to wait for a rank that says nothing before giving up.

    Yields:
        Who this process is.

    Raises:
        ValueError: There is no such device, or a variable of ``torchrun`` makes no sense.
        StreamError: The other ranks cannot be reached.
    """
    rank, world_size, local_rank = read_ranks(os.environ)
    place = choose_device(device, local_rank=local_rank)
    if place.type == "cuda":
        torch.cuda.set_device(place)
    if world_size == 1:
        yield Ranks(0, 1, place)
        return
    backend = "nccl" if place.type == "cuda" else "gloo"
    timeout = timedelta(seconds=timeout_s)
    with _heard():
        dist.init_process_group(backend, rank=rank, world_size=world_size, timeout=timeout)
        group = dist.new_group(backend="gloo", timeout=timeout)
    yield Ranks(rank, world_size, place, group)
    # Not after an error: other ranks may wait in a collective that would never end.
    dist.destroy_process_group()


def read_ranks(variables: Mapping[str, str]) -> tuple[int, int, int]:
    """Read who this process is from the variables that ``torchrun`` sets.

    Args:
        variables: The environment; without these variables the process is alone.

    Returns:
        ``RANK``, ``WORLD_SIZE`` and ``LOCAL_RANK``.

    Raises:
        ValueError: A variable is no number, or not one that there can be; or one of them is
            missing where there are several ranks.
    """
    world_size = _whole_number(variables, "WORLD_SIZE", "1", least=1)
    if world_size > 1:
        for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
            if not variables.get(name):
                raise ValueError(
                    f"{name} must be set, as torchrun does: WORLD_SIZE is {world_size}"
                )
        _whole_number(variables, "MASTER_PORT", most=(1 << 16) - 1)
    rank = _whole_number(variables, "RANK", most=world_size - 1, why=f"WORLD_SIZE is {world_size}")
    return rank, world_size, _whole_number(variables, "LOCAL_RANK")


def _whole_number(
    variables: Mapping[str, str],
    name: str,
    default: str = "0",
    *,
    least: int = 0,
    most: int | None = None,
    why: str = "",
) -> int:
    text = variables.get(name, default)
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least or (most is not None and number > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        reason = f": {why}" if why else ""
        raise ValueError(f"{name} must be a whole number {bounds}, got {text!r}{reason}")
    return number


def choose_device(name: str | None, *, local_rank: int) -> torch.device:
    """Choose where to compute.

    Args:
        name: ``cpu``, ``cuda``, ``cuda:1``, ``mps``; None for the best there is.
        local_rank: Number of the process on its host, and of its GPU.

    Returns:
        The device, with its number for ``cuda``.

    Raises:
        ValueError: PyTorch does not have it here.
    """
    if name is None:
        if torch.cuda.is_available():
            name = "cuda"
        else:
            name = "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"--policy.device={name} is no device") from None
    if device.type == "cuda":
        count = torch.cuda.device_count()
        number = device.index if ":" in name else local_rank
        if not count:
            raise ValueError(f"--policy.device={name}: PyTorch finds no GPU here")
        if number >= count:
            raise ValueError(
                f"--policy.device={name} needs {counted(number + 1, 'GPU')}, PyTorch finds {count}"
            )
        return torch.device("cuda", number)
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise ValueError("--policy.device=mps is not available here")
    return device


@contextmanager
def _heard() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        first_line = str(error).partition("\n")[0]
        raise StreamError(
            f"the other ranks cannot be reached any more: {first_line}",
            hint="the first rank that failed says why",
        ) from error
