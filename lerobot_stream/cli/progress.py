"""How far a build is: a bar on a terminal, a few plain lines elsewhere; always on stderr."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

from lerobot_stream.counted import counted

if TYPE_CHECKING:
    from lerobot_stream.sidecar.build import BuildProgress

PLAIN_LINES = 10
"""Lines of a build that is not watched on a terminal."""


@contextmanager
def show_progress(console: Console) -> Iterator[Callable[[BuildProgress], None]]:
    """Show the progress of one build while the block runs.

    Args:
        console: Where to show it.

    Yields:
        A function to call after each file.
    """
    if not console.is_terminal:
        yield lambda progress: _plain(progress, console)
        return
    from rich import progress as bars

    with bars.Progress(
        bars.TextColumn("indexing videos"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn("{task.fields[rate]}, {task.fields[read]} read"),
        bars.TimeRemainingColumn(),
        console=console,
        transient=True,
    ) as display:
        task = display.add_task("", total=None, rate="0 files/s", read="0 B")
        started = time.monotonic()

        def update(progress: BuildProgress) -> None:
            rate = progress.done / max(time.monotonic() - started, 1e-3)
            display.update(
                task,
                completed=progress.done,
                total=progress.total,
                rate=f"{rate:.3g} files/s",
                read=format_bytes(progress.read_bytes),
            )

        yield update


def _plain(progress: BuildProgress, console: Console) -> None:
    """A line at each tenth of a long way, and at the end."""
    tenth = PLAIN_LINES * progress.done // progress.total
    passed = tenth > PLAIN_LINES * (progress.done - 1) // progress.total
    if progress.done == progress.total or (passed and progress.total > PLAIN_LINES):
        read = format_bytes(progress.read_bytes)
        failed = f", {progress.failures} failed" if progress.failures else ""
        line = f"indexed {progress.done} of {counted(progress.total, 'video')}, {read} read{failed}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def format_bytes(count: int) -> str:
    """Write a number of bytes for people, ``1.4 MB``."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
