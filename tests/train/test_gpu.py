"""Training on a GPU, where there is one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.recordings import WRITERS, record

REPOSITORY = Path(__file__).parents[2]
TINY = [
    "--policy.dim_model=16",
    "--policy.n_heads=2",
    "--policy.dim_feedforward=16",
    "--policy.chunk_size=4",
    "--policy.n_action_steps=4",
    "--batch_size=2",
    "--steps=3",
]

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


@pytest.mark.parametrize("launcher", [[], ["--standalone", "--nproc_per_node=1"]])
@pytest.mark.parametrize("use_amp", ["true", "false"])
def test_a_gpu_trains_alone_and_as_an_nccl_rank(
    tmp_path: Path, launcher: list[str], use_amp: str
) -> None:
    written = record(tmp_path / "set", WRITERS["h264-g2"])
    program = ["-m", "torch.distributed.run", *launcher] if launcher else []
    script = tmp_path / "train.py"
    script.write_text("from lerobot_stream.cli.main import train_main\ntrain_main()\n")
    arguments = [
        "--dataset.repo_id=a/b",
        f"--dataset.root={written.root}",
        "--dataset.streaming=true",
        "--policy.device=cuda",
        f"--policy.use_amp={use_amp}",
        f"--output_dir={tmp_path / 'out'}",
        *TINY,
    ]
    subprocess.run(
        [sys.executable, *program, str(script), *arguments],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        check=True,
        timeout=300,
    )
    assert (tmp_path / "out/checkpoints/last/pretrained_model/model.safetensors").exists()
