"""What a stream has done so far, and what it was waited for."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StreamStats:
    """Counts of one stream since it was started, and what it holds now."""

    items: int
    """Items handed out."""
    pictures: int
    """Pictures decoded for items that are handed out or in the making."""
    decoded: int
    """Pictures that decoders went through for them, those before the wanted ones included."""
    network_s: float
    """Seconds in which a batch was waited for while the decoders lacked bytes."""
    decode_s: float
    """Seconds in which a batch was waited for while it, or one behind it, was decoded."""
    assembly_s: float
    """Seconds in which a batch was waited for while it was planned, filled or finished."""
    requests: int
    """Requests made of the source."""
    fetched_bytes: int
    """Bytes that the source gave."""
    wanted_bytes: int
    """Coded bytes of the pictures of every visit asked for, each once."""
    reserved_bytes: int
    """Bytes of every visit that is being fetched, waiting or being decoded."""
    resident_bytes: int
    """Bytes of the visits that have arrived and are still needed."""
    open_bytes: int
    """Bytes of the pictures of batches that are not handed out yet."""


class WaitClock:
    """Divides the time in which a batch is waited for by what is under way.

    Whoever uses it holds one lock around every call.
    """

    def __init__(self, threads: int) -> None:
        """Start with nothing under way.

        Args:
            threads: Decoder jobs that run at once.
        """
        self._threads = threads
        self._since = time.perf_counter()
        self._asked = self._finishing = self._fetching = False
        self._jobs = 0
        self.network_s = 0.0
        """Waited while bytes were missing and a decode thread had nothing to do."""
        self.decode_s = 0.0
        """Waited while pictures were decoded."""
        self.assembly_s = 0.0
        """Waited for anything else."""

    def ask(self) -> None:
        """A batch is waited for from now on."""
        self._turn()
        self._asked = True

    def finish(self) -> None:
        """The batch is full; its tensors are made."""
        self._turn()
        self._finishing = True

    def hand_out(self) -> None:
        """The batch is there."""
        self._turn()
        self._asked = self._finishing = False

    def fetch(self, under_way: bool) -> None:
        """The next task has begun, or ended, to wait for its bytes."""
        self._turn()
        self._fetching = under_way

    def run(self, jobs: int) -> None:
        """So many decoder jobs run or wait for a thread from now on."""
        self._turn()
        self._jobs = jobs

    def _turn(self) -> None:
        now = time.perf_counter()
        passed, self._since = now - self._since, now
        if not self._asked:
            return
        if self._finishing:
            self.assembly_s += passed
        elif self._fetching and self._jobs < self._threads:
            self.network_s += passed
        elif self._jobs:
            self.decode_s += passed
        else:
            self.assembly_s += passed
