"""The folder on this machine that LeRobot keeps datasets and caches in."""

from __future__ import annotations

import os
from pathlib import Path


def lerobot_home() -> Path:
    """Return LeRobot's folder: ``$HF_LEROBOT_HOME``, else ``lerobot`` in Hugging Face's own."""
    home = os.environ.get("HF_LEROBOT_HOME")
    if home:
        return Path(home).expanduser()
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    hugging_face = os.environ.get("HF_HOME") or f"{caches}/huggingface"
    return Path(os.path.expandvars(hugging_face)).expanduser() / "lerobot"
