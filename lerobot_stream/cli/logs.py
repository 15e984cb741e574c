"""What the library logs, as lines on stderr."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import typer


@contextmanager
def shown_logs() -> Iterator[None]:
    """Show what this package logs while the block runs; nobody else's, and no debugging."""
    logger = logging.getLogger(__name__.partition(".")[0])
    handler, former = _Lines(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(former)


class _Lines(logging.Handler):
    """A line a record; what a person can act on says so first."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        label = "" if record.levelno < logging.WARNING else f"{record.levelname.lower()}: "
        typer.echo(f"{label}{record.getMessage()}", err=True)
