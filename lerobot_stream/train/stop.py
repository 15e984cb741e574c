"""A polite end: SIGTERM and SIGUSR1 let the current step finish."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
_ECHO_S = 5.0
"""Schedulers signal every process of a job, and ``torchrun`` passes on what it hears."""


class StopRequest:
    """Knows whether a signal has asked to stop; the second one ends the process at once.

    The same one again within five seconds is an echo of the first.
    """

    def __init__(self) -> None:
        """Nothing was asked for yet."""
        self.signal: signal.Signals | None = None
        self._heard_s = 0.0
        self._former: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopRequest:
        """Listen, where this is the main thread; others cannot."""
        if threading.current_thread() is threading.main_thread():
            self._former = {number: signal.signal(number, self._hear) for number in SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop listening."""
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal = signal.Signals(number)
            self._heard_s = time.monotonic()
        elif number != self.signal or time.monotonic() > self._heard_s + _ECHO_S:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
