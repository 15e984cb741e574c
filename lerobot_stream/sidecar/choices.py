"""What can be chosen about sidecars, and what holds where nobody does."""

from __future__ import annotations

from typing import Literal

FramesBy = Literal["count", "time"]
"""Which reading decides where an episode starts in its video if both or none are plausible."""
LOCK_TIMEOUT_S = 1800.0
"""How long to wait for another process that builds."""
WORKERS = 8
"""Files read at once."""
PROBE_BYTES = 64 << 20
"""Most bytes read of one file to find its movie box."""
