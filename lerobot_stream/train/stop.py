"""A polite end: SIGTERM and SIGUSR1 let the current step finish."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGUSR1)


class StopRequest:
    """Knows whether a signal has asked to stop; the second one ends the process at once."""

    def __init__(self) -> None:
        """Nothing was asked for yet."""
        self.signal: signal.Signals | None = None
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
        self.signal = signal.Signals(number)
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)
