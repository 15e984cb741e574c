"""Points the real client of this process at a loopback Hub."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from huggingface_hub import close_session, constants

from tests.hub.server import TOKEN, Hub


@contextmanager
def use_hub(hub: Hub, *, token: str | None = TOKEN, offline: bool = False) -> Iterator[None]:
    """Let huggingface_hub in this process talk to a loopback Hub.

    The client reads its environment once, when it is imported; these are the same settings.

    Args:
        hub: Where to.
        token: The token it finds in the environment; ``None``: none.
        offline: Whether it is told to stay offline.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "ENDPOINT", hub.url)
        patch.setattr(constants, "HF_HUB_OFFLINE", offline)
        patch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)
        patch.setattr(constants, "HF_TOKEN_PATH", "/nonexistent")
        patch.setenv("HF_ENDPOINT", hub.url)
        patch.setenv("HF_HUB_OFFLINE", "1" if offline else "0")
        patch.setenv("NO_PROXY", "127.0.0.1,localhost")
        if token is None:
            patch.delenv("HF_TOKEN", raising=False)
        else:
            patch.setenv("HF_TOKEN", token)
        close_session()
        try:
            yield
        finally:
            close_session()
