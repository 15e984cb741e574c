"""Jobs as people start them: by torchrun, on one host or on several."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.train.tiny import TINY_ACT, write_tiny_dataset

LIMIT_S = 240
ROOT = Path(__file__).parents[2]
SETTINGS = ("chunk_size", "n_action_steps", "dim_model", "n_heads", "dim_feedforward", "latent_dim")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The program ``lerobot-train`` as an installed package has it."""
    path = tmp_path / "lerobot-train"
    path.write_text("from lerobot_stream.cli.main import train_main\ntrain_main()\n")
    return path


@contextmanager
def agent(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A running torchrun; its process group ends with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()  # its ranks with it
        process.communicate()


def ranks_of(torchrun: subprocess.Popen[str]) -> list[int]:
    """Process ids of the ranks that a torchrun has started."""
    children = Path(f"/proc/{torchrun.pid}/task/{torchrun.pid}/children")
    return [int(number) for number in children.read_text().split()]


def wait_for(moment: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not moment():
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
            raise AssertionError(process.communicate()[1])


def metrics(output: Path) -> Sequence[tuple[int, float]]:
    path = output / "metrics.jsonl"
    whole = path.read_text().split("\n")[:-1] if path.exists() else []
    return [(line["step"], line["items"]) for line in map(json.loads, whole)]


def test_two_nodes_are_stopped_by_a_signal_and_one_goes_on_with_other_ranks(
    tmp_path: Path, program: Path
) -> None:
    out = tmp_path / "out"
    write_tiny_dataset(tmp_path / "data", camera=False)
    flags = [
        "--dataset.repo_id=local/tiny",
        f"--dataset.root={tmp_path / 'data'}",
        "--dataset.streaming=true",
        "--policy.device=cpu",
        *(f"--policy.{name}={getattr(TINY_ACT, name)}" for name in SETTINGS),
        "--batch_size=4",
        "--steps=100000",
        "--log_freq=1",
        f"--output_dir={out}",
    ]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    nodes = ["--nnodes=2", "--nproc_per_node=1", "--master_addr=127.0.0.1", f"--master_port={port}"]
    with (
        agent(*nodes, "--node_rank=0", program, *flags) as first,
        agent(*nodes, "--node_rank=1", program, *flags) as second,
    ):
        wait_for(lambda: len(metrics(out)) > 1, first)
        for process in (*ranks_of(first), first.pid):  # as a scheduler does
            os.kill(process, signal.SIGTERM)
        said = [process.communicate(timeout=LIMIT_S)[1] for process in (first, second)]
    last = out / "checkpoints/last"
    step = len(metrics(out))
    assert metrics(out) == [(number, 8 * number) for number in range(1, step + 1)], said
    assert last.resolve().name == f"{step:06d}"

    path = last / "pretrained_model/train_config.json"
    going_on = ["--resume=true", "--resume_elastic=true", f"--config_path={path}"]
    with agent(
        "--standalone", "--nproc_per_node=3", program, *going_on, f"--steps={step + 1}"
    ) as job:
        printed, said_then = job.communicate(timeout=LIMIT_S)
    assert job.returncode == 0, said_then
    assert printed == f"{out}/checkpoints/{step + 1:06d}\n"
    assert metrics(out)[step:] == [(step + 1, 8 * step + 12)]
