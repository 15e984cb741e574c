"""Signals to a whole job, which loader workers leave to the process that started them.

Terminals and schedulers signal every process. A worker that died of it would end its rank with an
error before the rank could save, and one that is only starting would print where it was. So
workers are born with these signals blocked, and take SIGTERM from their own rank alone.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import FrameType

from lerobot_stream.train.stop import SIGNALS

LEFT_TO_THE_RANK = frozenset({signal.SIGINT, *SIGNALS})


@contextmanager
def signals_held() -> Iterator[None]:
    """Hold signals back while the block starts workers, which inherit that.

    What arrives meanwhile is heard by this process after the block.
    """
    with _heard_later(), _born_deaf():
        yield


@contextmanager
def _heard_later() -> Iterator[None]:
    """Put handlers off; another thread may take a signal that the main one has blocked."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: dict[int, None] = {}  # each once, as blocked signals come

    def note(number: int, frame: FrameType | None) -> None:
        heard[number] = None

    former = {number: signal.getsignal(number) for number in LEFT_TO_THE_RANK}
    former = {number: handler for number, handler in former.items() if callable(handler)}
    try:
        for number in former:
            signal.signal(number, note)
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
        for late in heard:
            signal.raise_signal(late)


@contextmanager
def _born_deaf() -> Iterator[None]:
    """Block signals in this thread, and in every process that it starts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, LEFT_TO_THE_RANK)
    try:
        resource_tracker.ensure_running()  # needed by workers; lets signals through once it runs
        signal.pthread_sigmask(signal.SIG_BLOCK, LEFT_TO_THE_RANK)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_signals_to_the_rank(worker: int) -> None:
    """Let only the process that started this worker end it.

    Args:
        worker: Its number, as a loader tells it; it does not matter.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, LEFT_TO_THE_RANK)
    if hasattr(signal, "sigwaitinfo"):
        threading.Thread(target=_end_when_asked, name=f"signals-{worker}", daemon=True).start()
    else:  # who sent it cannot be known here
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _end_when_asked() -> None:
    rank = multiprocessing.parent_process()
    while True:
        told = signal.sigwaitinfo({signal.SIGTERM})
        if rank is None or told.si_pid == rank.pid:
            os._exit(0)
