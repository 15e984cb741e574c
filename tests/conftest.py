"""Every test has caches of its own and no network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# huggingface_hub reads these once, when it is imported
os.environ.update({"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"})
settings.register_profile("untimed", deadline=None)  # a busy machine is no fault of the code
settings.load_profile("untimed")

_FOREIGN = ("HF_TOKEN", "HF_ENDPOINT", "HF_HUB_CACHE", "HUGGING_FACE_HUB_TOKEN", "HF_XET_CACHE")


@pytest.fixture(autouse=True)
def hf_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point every cache below the test's own folder, and keep clients from the network."""
    home = tmp_path / "hf_home"
    monkeypatch.setenv("HF_HOME", str(home))
    monkeypatch.setenv("HF_LEROBOT_HOME", str(home / "lerobot"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
    for name in _FOREIGN:
        monkeypatch.delenv(name, raising=False)
    return home
