from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from lerobot_stream.train.stop import SIGNALS, StopRequest


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_is_noted(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with StopRequest() as stop:
        assert stop.signal is None
        os.kill(os.getpid(), number)
        assert stop.signal is number
    assert signal.getsignal(number) == before


@pytest.mark.parametrize(
    ("first", "second", "wait_s", "ended_by"),
    [
        ("SIGUSR1", "SIGTERM", 0, signal.SIGTERM),
        ("SIGTERM", "SIGTERM", 6, signal.SIGTERM),
        ("SIGTERM", "SIGTERM", 4, 0),
    ],
    ids=["another", "again", "echo"],
)
def test_the_second_signal_ends_the_process_unless_it_is_an_echo(
    first: str, second: str, wait_s: int, ended_by: int
) -> None:
    code = (
        "import os, signal, time\n"
        "from lerobot_stream.train.stop import StopRequest\n"
        "with StopRequest() as stop:\n"
        "    now = time.monotonic()\n"
        f"    os.kill(os.getpid(), signal.{first})\n"
        "    assert stop.signal\n"
        f"    time.monotonic = lambda: now + {wait_s}\n"
        f"    os.kill(os.getpid(), signal.{second})\n"
        "    print('still here')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == -ended_by
    assert done.stdout == (b"" if ended_by else b"still here\n")
