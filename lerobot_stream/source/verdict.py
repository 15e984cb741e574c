"""What a reply means, decided from its status and headers alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from lerobot_stream.span import Span

_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_UNSATISFIED = re.compile(r"bytes \*/(\d+)")
_BUSY = frozenset({408, 425, 429})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Verdict(Enum):
    """What to do with a reply."""

    USE = auto()
    """It is what was asked for."""
    FOLLOW = auto()
    """It names another address."""
    WAIT = auto()
    """The server cannot now: try again later, as often as patience allows."""
    DOUBT = auto()
    """It answers another question: try once more, perhaps another server answers."""
    DENIED = auto()
    """The server wants to see other rights, or a signed address has expired."""
    MISSING = auto()
    """There is nothing at this address."""
    CHANGED = auto()
    """The file is not the one that was listed."""
    REFUSED = auto()
    """Anything else; trying again would not help."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and why."""

    verdict: Verdict
    """What to do."""
    reason: str = ""
    """What was found, in words."""


USE = Judgement(Verdict.USE)


def judge(status: int, headers: Mapping[str, str]) -> Judgement:
    """Judge the reply to a request without a range.

    Args:
        status: HTTP status.
        headers: By lower-case name.
    """
    if status == 200:
        return USE
    if status in _REDIRECTS and "location" in headers:
        return Judgement(Verdict.FOLLOW)
    if status in _BUSY or status >= 500:
        return Judgement(Verdict.WAIT, f"answered {status}")
    if status in (401, 403):
        return Judgement(Verdict.DENIED, f"answered {status}")
    if status in (404, 410):
        return Judgement(Verdict.MISSING, f"answered {status}")
    return Judgement(Verdict.REFUSED, f"answered {status}")


def judge_range(
    status: int, headers: Mapping[str, str], *, span: Span, size: int, etag: str | None
) -> Judgement:
    """Judge the reply to a ranged request.

    Args:
        status: HTTP status.
        headers: By lower-case name.
        span: The bytes asked for.
        size: Bytes of the file, as it was listed.
        etag: The entity tag that an earlier reply had; ``None``: none is known.
    """
    if status == 206:
        return _judge_part(headers, span, size, etag)
    if status == 200:
        return Judgement(Verdict.DOUBT, f"sent the whole file for {_asked(span)}")
    if status == 412:
        return Judgement(Verdict.CHANGED, "its entity tag is another one")
    if status == 416:
        match = _UNSATISFIED.fullmatch(headers.get("content-range", ""))
        if match and int(match.group(1)) != size:
            return Judgement(Verdict.DOUBT, f"has {match.group(1)} bytes, {size} were listed")
        return Judgement(Verdict.DOUBT, f"answered 416 to {_asked(span)} of {size} bytes")
    return judge(status, headers)


def _judge_part(headers: Mapping[str, str], span: Span, size: int, etag: str | None) -> Judgement:
    coding = content_coding(headers)
    if coding:  # before all sizes, which are then those of the coded bytes
        reason = f"sent Content-Encoding {coding} for {_asked(span)}, wanted identity"
        return Judgement(Verdict.DOUBT, reason)
    said = headers.get("content-range", "")
    match = _CONTENT_RANGE.fullmatch(said)
    if match is None or (int(match[1]), int(match[2]) + 1) != (span.start, span.stop):
        wanted = f"{_asked(span)}/{size}"
        return Judgement(Verdict.DOUBT, f"sent Content-Range {said!r}, wanted {wanted!r}")
    total = match[3]
    if total != "*" and int(total) != size:
        return Judgement(Verdict.CHANGED, f"it has {total} bytes, {size} were listed")
    length = headers.get("content-length")
    if length is not None and length != str(len(span)):
        return Judgement(Verdict.DOUBT, f"sent {length} of {len(span)} bytes at {span.start}")
    found = strong_etag(headers)
    if etag is not None and found is not None and found != etag:
        return Judgement(Verdict.CHANGED, f"its entity tag was {etag}, now {found}")
    return USE


def _asked(span: Span) -> str:
    return f"bytes {span.start}-{span.stop - 1}"


def content_coding(headers: Mapping[str, str]) -> str:
    """Return how a body is coded, such as ``gzip``; empty where it comes as it is."""
    coding = headers.get("content-encoding", "").strip().lower()
    return "" if coding == "identity" else coding


def strong_etag(headers: Mapping[str, str]) -> str | None:
    """Return the entity tag as sent; ``None`` where there is none that stands for the bytes."""
    text = headers.get("etag", "")
    return text if text.startswith('"') else None
