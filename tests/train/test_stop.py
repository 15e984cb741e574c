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


def test_the_second_signal_ends_the_process() -> None:
    code = (
        "import os, signal\n"
        "from lerobot_stream.train.stop import StopRequest\n"
        "with StopRequest() as stop:\n"
        "    os.kill(os.getpid(), signal.SIGUSR1)\n"
        "    assert stop.signal\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    print('still here')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, b"")
