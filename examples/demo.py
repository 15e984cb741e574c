"""From nothing to a trained policy: make a dataset, index, check and look at it, train on it.

    python examples/demo.py --output demo

Every step is a command that can be typed as it is shown. The caches stay in the output folder.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

REPO_ID = "local/reaching-arm"
POLICY = [
    "--policy.type=act",
    "--policy.device=cpu",
    "--policy.chunk_size=16",
    "--policy.n_action_steps=16",
    "--policy.dim_model=128",
    "--policy.n_heads=4",
    "--policy.dim_feedforward=512",
    "--policy.n_encoder_layers=2",
    "--policy.n_vae_encoder_layers=2",
    "--policy.latent_dim=8",
    "--policy.optimizer_lr=5e-4",
    "--policy.optimizer_lr_backbone=1e-4",
]
WORTH_IT = 0.6
"""Largest held-out error, as a share of that of predicting the mean, of a policy that learnt."""


class Shell:
    """Runs commands of this environment, shown as a person would type them."""

    def __init__(self, home: Path) -> None:
        """Keep caches below ``home``."""
        self._folder = Path(sys.executable).parent
        self._environment = os.environ | {"HF_LEROBOT_HOME": str(home)}

    def run(self, program: str, *arguments: str, answer: bool = False) -> str:
        """Run a command; what it prints is shown, or returned where that is asked for.

        Raises:
            SystemExit: It failed; it has said why.
        """
        print(f"\n$ {shlex.join([program, *arguments])}", flush=True)
        done = subprocess.run(
            [str(self._folder / program), *arguments],
            env=self._environment,
            stdout=subprocess.PIPE if answer else None,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(done.returncode)
        return done.stdout.strip() if answer else ""


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """Read all metrics of a run, in order of steps."""
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def report(metrics: Sequence[dict[str, Any]]) -> float:
    """Print how the loss fell and what was learnt; return the error as a share of the mean's."""
    losses = [(line["step"], line["loss"]) for line in metrics if "loss" in line]
    evaluation = next(line for line in reversed(metrics) if "eval/action_error_ratio" in line)
    print("\nloss   ", "  ".join(f"step {step}: {loss:.3f}" for step, loss in losses))
    ratio = float(evaluation["eval/action_error_ratio"])
    print(
        "held-out episodes, mean absolute action error: "
        f"{evaluation['eval/action_error']:.4f} rad, "
        f"predicting the mean action: {evaluation['eval/mean_action_error']:.4f} rad, "
        f"ratio {ratio:.2f}"
    )
    return ratio


def main() -> None:
    """Read the command line and run the demo."""
    parser = argparse.ArgumentParser(description="Train a small policy on a synthetic dataset.")
    parser.add_argument("--output", type=Path, default=Path("demo"))
    parser.add_argument("--codec", choices=["av1", "h264"], default="av1")
    parser.add_argument("--episodes", type=int, default=24)
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    dataset, train = options.output / "dataset", options.output / "train"
    for former in (dataset, train, options.output / "home"):
        shutil.rmtree(former, ignore_errors=True)
    shell = Shell(options.output.resolve() / "home")
    address = [f"--repo-id={REPO_ID}", f"--root={dataset}"]

    maker = Path(__file__).with_name("make_demo_dataset.py")
    made = [f"--codec={options.codec}", f"--episodes={options.episodes}"]
    shell.run("python", str(maker), str(dataset), *made)
    sidecar = shell.run("lerobot-stream", "build-sidecar", *address, answer=True)
    print(sidecar, flush=True)
    shell.run("lerobot-stream", "validate-sidecar", sidecar, *address)
    shell.run("lerobot-stream", "inspect-episodes", *address)
    checkpoint = shell.run(
        "lerobot-train",
        f"--dataset.repo_id={REPO_ID}",
        f"--dataset.root={dataset}",
        "--dataset.streaming=true",
        "--dataset.eval_split=0.15",
        *POLICY,
        "--batch_size=8",
        f"--steps={options.steps}",
        f"--log_freq={max(1, options.steps // 10)}",
        f"--output_dir={train}",
        answer=True,
    )
    ratio = report(read_metrics(train))
    print(checkpoint)
    if ratio > WORTH_IT:
        raise SystemExit(f"error: the policy learnt too little: {ratio:.2f}, wanted {WORTH_IT}")


if __name__ == "__main__":
    main()
