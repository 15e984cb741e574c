"""A loopback Hub: what the real client needs of a server, with faults on demand.

The server speaks the protocol that huggingface_hub speaks; nothing of the client is replaced.
It has two origins: the Hub at ``http://127.0.0.1:PORT`` and, behind signed addresses, the store
at ``http://localhost:PORT``, to which no token may go.

    with Hub() as hub:
        hub.add_dataset("robots/pick", folder)
        rule = hub.fail(Status(429, retry_after="1"), "*/resolve/*", times=2)
        subprocess.run([...], env={**os.environ, **hub.env(tmp_path)})
        assert rule.hits == 2
        assert not any(entry.authorized for entry in hub.requests(origin="blobs"))

``python -m tests.hub --dataset robots/pick=FOLDER`` serves one from a process of its own.
"""

from __future__ import annotations

from tests.hub.client import use_hub
from tests.hub.faults import (
    Drop,
    Fault,
    Gzip,
    IgnoreRange,
    Moved,
    Rule,
    ShortBody,
    Stall,
    Status,
    WithHeaders,
    WrongRange,
)
from tests.hub.log import Logged
from tests.hub.server import TOKEN, Hub

__all__ = [
    "TOKEN",
    "Drop",
    "Fault",
    "Gzip",
    "Hub",
    "IgnoreRange",
    "Logged",
    "Moved",
    "Rule",
    "ShortBody",
    "Stall",
    "Status",
    "WithHeaders",
    "WrongRange",
    "use_hub",
]
