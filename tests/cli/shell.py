"""Command lines in processes of their own, against a loopback Hub."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.hub import TOKEN, Hub

ROOT = Path(__file__).parents[2]
_MAIN = "from lerobot_stream.cli.main import main; main()"
TINY_TRAINING = (
    "--policy.device=cpu",
    "--policy.dim_model=16",
    "--policy.n_heads=2",
    "--policy.dim_feedforward=16",
    "--policy.chunk_size=2",
    "--policy.n_action_steps=2",
    "--policy.pretrained_backbone_weights=null",
    "--batch_size=2",
    "--steps=1",
    "--save_checkpoint=false",
)
"""Flags of a training that takes as little as can be."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a command line came to."""

    code: int
    """Exit code."""
    out: str
    """What it printed."""
    err: str
    """What it said."""

    @property
    def path(self) -> Path:
        """The path that it printed."""
        return Path(self.out.strip())

    @property
    def error(self) -> list[str]:
        """The error and its hints, a line each."""
        lines = self.err.splitlines()
        starts = [i for i, line in enumerate(lines) if line.startswith("error: ")]
        return lines[starts[0] :] if len(starts) == 1 else lines


@dataclass
class Shell:
    """Runs ``lerobot-stream`` as one user on one machine does."""

    hub: Hub
    home: Path
    """Its ``HF_HOME``."""
    token: str | None = TOKEN
    settings: Mapping[str, str] = field(default_factory=dict)
    """More of its environment."""

    def environment(self) -> dict[str, str]:
        """Everything that a process is told."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
        path = {"PYTHONPATH": str(ROOT)}
        return {**kept, **path, **self.hub.env(self.home, token=self.token), **self.settings}

    def start(self, *arguments: str | Path, code: str = _MAIN) -> subprocess.Popen[str]:
        """Start a command line."""
        return subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            env=self.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str | Path) -> Done:
        """Run a command line to its end."""
        return finish(self.start(*arguments))


def finish(child: subprocess.Popen[str]) -> Done:
    """Wait for a process."""
    out, err = child.communicate(timeout=120)
    return Done(child.returncode, out, err)


def finish_all(children: Sequence[subprocess.Popen[str]]) -> list[Done]:
    """Wait for processes."""
    return [finish(child) for child in children]
