"""One request and its reply, as plain records."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tests.hub.content import Blob

Origin = Literal["hub", "blobs"]
"""Which of the two hosts was asked: the Hub itself, or the store behind signed addresses."""

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it arrived."""

    method: str
    """``GET``, ``HEAD``, …"""
    origin: Origin
    """Which host."""
    raw_path: str
    """Path as it was sent, still quoted."""
    path: str
    """Path, unquoted."""
    query: Mapping[str, str]
    """Last value of each query parameter."""
    headers: Mapping[str, str]
    """Header values by lower-case name."""
    body: bytes
    """What was sent along."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a blob, read only when it is sent."""

    blob: Blob
    """What to send of."""
    start: int
    """First byte."""
    stop: int
    """One past the last byte."""

    def __len__(self) -> int:
        """Bytes in the part."""
        return self.stop - self.start

    def read(self) -> bytes:
        """Read it."""
        return self.blob.read(self.start, self.stop)


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply before it is written, with what shall go wrong while writing it."""

    status: int = 200
    """HTTP status."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers, without ``Content-Length``."""
    body: bytes | Part = b""
    """What is sent, or, for ``HEAD``, would be."""
    whole: Blob | None = None
    """The file that the body is of."""
    drop_after: int | None = None
    """Close the connection after so many bytes of body; -1: before any answer."""
    stall_after: int | None = None
    """Fall silent after so many bytes of body; -1: before any answer."""

    def with_headers(self, **headers: str) -> Reply:
        """Add headers; ``_`` in a name stands for ``-``."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return replace(self, headers={**self.headers, **named})


def json_reply(value: object, status: int = 200, **headers: str) -> Reply:
    """Answer with JSON."""
    body = json.dumps(value).encode()
    return Reply(status, {"Content-Type": "application/json"}, body).with_headers(**headers)


def refusal(status: int, text: str, code: str | None = None) -> Reply:
    """Answer with an error, as the Hub words it."""
    reply = json_reply({"error": text}, status).with_headers(X_Error_Message=text)
    return reply.with_headers(X_Error_Code=code) if code else reply


def file_reply(asked: Asked, blob: Blob, etag: str) -> Reply:
    """Answer with a file or the range of it that was asked for."""
    headers = {"ETag": f'"{etag}"', "Accept-Ranges": "bytes", "Content-Type": "binary/octet-stream"}
    wanted_tag = asked.headers.get("if-match")
    if wanted_tag is not None and wanted_tag != f'"{etag}"':
        return Reply(412, headers, b"precondition failed", blob)
    match = _RANGE.fullmatch(asked.headers.get("range", ""))
    if match is None or match.groups() == ("", ""):
        return Reply(200, headers, Part(blob, 0, blob.size), blob)
    first, last = match.groups()
    if first:
        start, stop = int(first), min(int(last) + 1, blob.size) if last else blob.size
    else:
        start, stop = max(0, blob.size - int(last)), blob.size
    if start >= blob.size or stop <= start:
        return Reply(416, {**headers, "Content-Range": f"bytes */{blob.size}"}, b"", blob)
    headers["Content-Range"] = f"bytes {start}-{stop - 1}/{blob.size}"
    return Reply(206, headers, Part(blob, start, stop), blob)
