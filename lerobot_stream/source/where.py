"""Addresses: what host they name, how long they are good, what of them may be shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import parse_qsl, urlsplit

_PORTS = {"http": 80, "https": 443}
_LINK_NEXT = re.compile(r'<([^>]*)>\s*;[^,]*\brel="?next"?')
MARGIN_S = 30.0
"""A signed address is not used for the last seconds before it expires."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a file's bytes are, found by asking the Hub."""

    url: str
    """The address; a signed one is a credential and is never shown."""
    expires_at: float | None = None
    """Seconds since 1970 by this machine's clock; ``None``: unknown, good until refused."""
    etag: str | None = None
    """Entity tag of the file where the Hub serves it itself."""

    def is_good_at(self, time: float) -> bool:
        """Say whether it may still be used."""
        return self.expires_at is None or time < self.expires_at


def origin(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port: what must be equal for a token to be sent."""
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    return scheme, (parts.hostname or "").lower(), parts.port or _PORTS.get(scheme, 0)


def host(url: str) -> str:
    """Return the host and its port if it is not the usual one, to be shown."""
    scheme, name, port = origin(url)
    return name if port == _PORTS.get(scheme) else f"{name}:{port}"


def next_page(headers: Mapping[str, str]) -> str | None:
    """Return the address of the next page of a listing, from the ``link`` header."""
    match = _LINK_NEXT.search(headers.get("link", ""))
    return match.group(1) if match else None


def lifetime_s(url: str, *, now: float) -> float | None:
    """Read from a signed address how long it is still good.

    Args:
        url: Signed by CloudFront, S3, Google or Azure.
        now: The server's time, in seconds since 1970.

    Returns:
        Seconds; ``None`` where the address does not tell.
    """
    query = {name.lower(): value for name, value in parse_qsl(urlsplit(url).query)}
    if query.get("expires", "").isdecimal():
        return int(query["expires"]) - now
    for kind in ("x-amz", "x-goog"):
        date, seconds = query.get(f"{kind}-date", ""), query.get(f"{kind}-expires", "")
        try:
            signed = datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
            return signed.timestamp() + int(seconds) - now
        except ValueError:
            continue
    try:
        until = datetime.fromisoformat(query.get("se", ""))
    except ValueError:
        return None
    return (until if until.tzinfo else until.replace(tzinfo=UTC)).timestamp() - now


def expiry(url: str, headers: Mapping[str, str], *, now: float) -> float | None:
    """Say when a signed address has to be asked for again.

    Args:
        url: The address.
        headers: Of the reply that named it; its date makes up for clocks that differ.
        now: This machine's time, in seconds since 1970.

    Returns:
        Seconds since 1970 by this machine's clock, a margin before the address expires.
    """
    try:
        server = parsedate_to_datetime(headers.get("date", "")).timestamp()
    except ValueError:
        server = now
    left = lifetime_s(url, now=server)
    if left is None:
        return None
    return now + max(left - MARGIN_S, left / 2)
