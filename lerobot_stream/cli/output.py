"""Standard output and error that take any text, and that may be closed or full."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

_STREAMS = ("stdout", "stderr")


def ready_output() -> None:
    """Let any text be written, to nowhere where a stream was closed by whoever started us.

    What the encoding of a terminal lacks is written with backslashes.
    """
    for name in _STREAMS:
        stream = getattr(sys, name)
        if stream is None:
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - stays open
            setattr(sys, name, nowhere)
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def give_output_up() -> None:
    """Write no more to standard output, nor what is still buffered, which would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
