"""What the loopback Hub can do wrong on demand."""

from __future__ import annotations

import fnmatch
import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from tests.hub.exchange import Asked, Origin, Part, Reply, refusal


class Fault(Protocol):
    """Turns a right reply into a wrong one."""

    def apply(self, asked: Asked, reply: Reply) -> Reply:
        """Give the reply to send instead."""
        ...


@dataclass(frozen=True, slots=True)
class Status:
    """Answer with this status instead."""

    code: int
    """HTTP status."""
    error_code: str | None = None
    """Text of ``X-Error-Code``, by which the client tells errors apart."""
    retry_after: str | None = None
    """Text of ``Retry-After``."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers."""

    def apply(self, asked: Asked, reply: Reply) -> Reply:
        """Refuse."""
        refused = refusal(self.code, f"status {self.code} on demand", self.error_code)
        if self.retry_after is not None:
            refused = refused.with_headers(Retry_After=self.retry_after)
        return replace(refused, headers={**refused.headers, **self.headers})


@dataclass(frozen=True, slots=True)
class IgnoreRange:
    """Send the whole file with 200 where a range was asked for."""

    def apply(self, asked: Asked, reply: Reply) -> Reply:
        """Drop the range from a ranged reply."""
        if reply.whole is None:
            return reply
        headers = {k: v for k, v in reply.headers.items() if k != "Content-Range"}
        return replace(
            reply, status=200, headers=headers, body=Part(reply.whole, 0, reply.whole.size)
        )


@dataclass(frozen=True, slots=True)
class ShortBody:
    """Send less than asked, with a ``Content-Length`` that agrees with it."""

    missing: int = 1
    """Bytes left out at the end."""

    def apply(self, asked: Asked, reply: Reply) -> Reply:
        """Cut the body."""
        data = _bytes(reply)
        return replace(reply, body=data[: max(0, len(data) - self.missing)])


@dataclass(frozen=True, slots=True)
class Gzip:
    """Send the body compressed, though ``identity`` was asked for."""

    def apply(self, asked: Asked, reply: Reply) -> Reply:
        """Compress the body."""
        packed = replace(reply, body=gzip.compress(_bytes(reply), mtime=0))
        return packed.with_headers(Content_Encoding="gzip")


@dataclass(frozen=True, slots=True)
class WrongRange:
    """Send another range than asked, and say so in ``Content-Range``."""

    shift: int = 1
    """Bytes further on."""

    def apply(self, asked: Asked, reply: Reply) -> Reply:
        """Shift the range."""
        if not isinstance(reply.body, Part):
            return reply
        part, blob = reply.body, reply.body.blob
        start = min(part.start + self.shift, blob.size - 1)
        moved = Part(blob, start, min(start + len(part), blob.size))
        said = f"bytes {moved.start}-{moved.stop - 1}/{blob.size}"
        return replace(reply, body=moved).with_headers(Content_Range=said)


@dataclass(frozen=True, slots=True)
class Stall:
    """Fall silent and keep the connection open."""

    after: int = -1
    """Bytes of body sent before; -1: not even the status line is sent."""

    def apply(self, asked: Asked, reply: Reply) -> Reply:
        """Mark the reply."""
        return replace(reply, stall_after=self.after)


@dataclass(frozen=True, slots=True)
class Drop:
    """Close the connection."""

    after: int = -1
    """Bytes of body sent before; -1: not even the status line is sent."""

    def apply(self, asked: Asked, reply: Reply) -> Reply:
        """Mark the reply."""
        return replace(reply, drop_after=self.after)


@dataclass(frozen=True, slots=True)
class WithHeaders:
    """Send these headers as well, or instead."""

    headers: Mapping[str, str]
    """Values by name."""

    def apply(self, asked: Asked, reply: Reply) -> Reply:
        """Set the headers."""
        return replace(reply, headers={**reply.headers, **self.headers})


@dataclass(frozen=True, slots=True)
class Moved:
    """Redirect to another address."""

    location: str
    """Where to."""
    status: int = 302
    """Which redirect."""

    def apply(self, asked: Asked, reply: Reply) -> Reply:
        """Redirect."""
        return Reply(self.status, {**reply.headers, "Location": self.location})


def _bytes(reply: Reply) -> bytes:
    return reply.body.read() if isinstance(reply.body, Part) else reply.body


@dataclass(slots=True, eq=False)
class Rule:
    """One fault and the requests that meet it."""

    fault: Fault
    """What goes wrong."""
    path: str = "*"
    """Pattern of the unquoted path, as in a shell."""
    method: str | None = None
    """Only this method."""
    origin: Origin | None = None
    """Only this host."""
    skip: int = 0
    """Matching requests that are answered rightly first."""
    times: int | None = 1
    """Matching requests that then go wrong; ``None``: all."""
    hits: int = 0
    """Requests that went wrong so far."""
    _seen: int = 0

    def takes(self, asked: Asked) -> bool:
        """Count a request; say whether it shall go wrong."""
        if self.method not in (None, asked.method) or self.origin not in (None, asked.origin):
            return False
        if not fnmatch.fnmatchcase(asked.path, self.path):
            return False
        self._seen += 1
        if self._seen <= self.skip or (self.times is not None and self.hits >= self.times):
            return False
        self.hits += 1
        return True
