"""What the episodes lose when files cannot be indexed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lerobot_stream.dataset.episodes import EpisodeTable
from lerobot_stream.dataset.holders import Holders, excluding
from lerobot_stream.sidecar.build import BuildFailedError


@contextmanager
def losses_noted(table: EpisodeTable) -> Iterator[None]:
    """Note on a failed build what each file holds, and how to do without.

    Args:
        table: The dataset's episodes.
    """
    try:
        yield
    except BuildFailedError as error:
        holders, lost = Holders(table), set[int]()
        for path, _ in error.failures:
            error.add_note(f"{path}: {holders.describe(path)}")
            lost |= set(holders.episodes(path))
        advice = f"or train without its episodes: {excluding(sorted(lost))}"
        error.hint = f"{error.hint}; {advice}" if error.hint else advice
        raise
