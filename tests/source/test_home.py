from __future__ import annotations

from pathlib import Path

import pytest

from lerobot_stream.source.home import lerobot_home


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"HF_LEROBOT_HOME": "/a/robots"}, "/a/robots"),
        ({"HOME": "/home/me", "HF_LEROBOT_HOME": "~/here"}, "/home/me/here"),
        ({"HF_HOME": "/a/hf"}, "/a/hf/lerobot"),
        ({"HOME": "/home/me", "HF_HOME": "$HOME/hf"}, "/home/me/hf/lerobot"),
        ({"HF_LEROBOT_HOME": "", "HF_HOME": "/a/hf"}, "/a/hf/lerobot"),
        ({"XDG_CACHE_HOME": "/a/cache"}, "/a/cache/huggingface/lerobot"),
        ({"HOME": "/home/me"}, "/home/me/.cache/huggingface/lerobot"),
    ],
)
def test_lerobots_home_follows_the_environment(
    environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_LEROBOT_HOME", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert lerobot_home() == Path(expected)
