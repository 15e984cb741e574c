"""What a run says while it trains: a bar or lines on stderr, ``metrics.jsonl``, trackers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from lerobot_stream.counted import counted
from lerobot_stream.train.checkpoint import disk_faults
from lerobot_stream.train.distributed import Ranks
from lerobot_stream.train.metrics_file import METRICS, append_metrics, drop_later_metrics
from lerobot_stream.train.start import Run
from lerobot_stream.train.trackers import Tracker, open_trackers


class RunLog:
    """Everything that rank 0 reports; of other ranks nothing is heard."""

    def __init__(
        self,
        console: Console,
        *,
        folder: Path | None,
        trackers: Sequence[Tracker],
        step: int,
        steps: int,
    ) -> None:
        """Begin to report.

        Args:
            console: Where people read.
            folder: The run's output folder; None on ranks that do not report.
            trackers: Other places for metrics.
            step: Steps already made; metrics of later ones, left by a run that was killed,
                are dropped.
            steps: Steps of the whole run.
        """
        self._console = console
        self._metrics = folder / METRICS if folder else None
        self._trackers = trackers
        self._steps = steps
        self._bar = Progress(
            TextColumn("step"),
            MofNCompleteColumn(),
            BarColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=folder is None or not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=steps, completed=step)
        if self._metrics:
            drop_later_metrics(self._metrics, step)

    def __enter__(self) -> RunLog:
        """Show the bar."""
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bar away and close the trackers."""
        self._bar.stop()
        for tracker in self._trackers:
            tracker.close()

    def say(self, text: str) -> None:
        """Tell people something."""
        if self._metrics:
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def advance(self, step: int) -> None:
        """Move the bar."""
        self._bar.update(self._task, completed=step)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Report the metrics of a step everywhere.

        Args:
            step: The step.
            metrics: Numbers by name.
        """
        if self._metrics is None:
            return
        append_metrics(self._metrics, step, metrics)
        for tracker in self._trackers:
            tracker.log(step, metrics)
        shown = describe(metrics)
        if self._bar.disable:
            self.say(f"step {step}/{self._steps}  {shown}")
        else:
            self._bar.update(self._task, description=shown)


def open_log(run: Run, ranks: Ranks, console: Console) -> RunLog:
    """Open what a run reports to, and say what it is about to do.

    Args:
        run: The run.
        ranks: Only the first one reports.
        console: Where people read.

    Raises:
        CheckpointError: The output folder cannot be made.
    """
    if not ranks.is_first:
        return RunLog(console, folder=None, trackers=(), step=run.step, steps=run.config.steps)
    with disk_faults(run.folder, hint="name another folder with --output_dir"):
        run.folder.mkdir(parents=True, exist_ok=True)
    log = RunLog(
        console,
        folder=run.folder,
        trackers=open_trackers(run.config, run.folder),
        step=run.step,
        steps=run.config.steps,
    )
    parameters = sum(p.numel() for p in run.setup.policy.parameters() if p.requires_grad)
    log.say(
        f"{run.config.policy.type} with {parameters:,} parameters on {ranks.device}, "
        f"{counted(ranks.world_size, 'rank')}; "
        f"{counted(f'{run.data.num_frames:,}', 'frame')} of "
        f"{counted(f'{run.data.num_episodes:,}', 'episode')}; "
        f"from step {run.step} to {run.config.steps}, into {run.folder}"
    )
    return log


def describe(metrics: Mapping[str, float]) -> str:
    """The metrics that people watch, in one short line."""
    parts = []
    for name, words in (
        ("loss", "loss {:.4f}"),
        ("eval/action_error_ratio", "held-out error {:.3f} of the mean's"),
        ("items_per_s", "{:.0f} items/s"),
        ("data_wait_share", "{:.0%} waiting for data"),
        ("eta_s", "{:.0f} s left"),
    ):
        if name in metrics:
            parts.append(words.format(metrics[name]))
    return "  ".join(parts)
