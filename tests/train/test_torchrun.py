"""Jobs as people start them: by torchrun, on one host or on several."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
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


def answer(process: subprocess.Popen[str]) -> str:
    out, said = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, said
    return out


def metrics(output: Path) -> Sequence[tuple[int, float]]:
    lines = map(json.loads, (output / "metrics.jsonl").read_text().splitlines())
    return [(line["step"], line["items"]) for line in lines]


def test_two_nodes_train_together_and_one_goes_on_with_other_ranks(
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
        "--steps=2",
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
        printed = [answer(first), answer(second)]
    assert printed == [f"{out}/checkpoints/000002\n"] * 2
    assert metrics(out) == [(1, 8), (2, 16)]

    last = out / "checkpoints/last/pretrained_model/train_config.json"
    going_on = ["--resume=true", "--resume_elastic=true", f"--config_path={last}", "--steps=3"]
    with agent("--standalone", "--nproc_per_node=3", program, *going_on) as job:
        answer(job)
    assert metrics(out) == [(1, 8), (2, 16), (3, 28)]
