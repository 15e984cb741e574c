"""The ways to mix frames, by name."""

from __future__ import annotations

from typing import Literal

Strategy = Literal["remaining", "round_robin", "clip"]
"""How the frames of a share are mixed."""
