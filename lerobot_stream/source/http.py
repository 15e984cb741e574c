"""HTTP calls with patience, over the session that huggingface_hub keeps."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

from huggingface_hub import constants
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
from huggingface_hub.utils import build_hf_headers, get_session

from lerobot_stream.errors import SourceError
from lerobot_stream.source.base import RequestCount
from lerobot_stream.source.patience import Clock, Patience, asked_wait_s
from lerobot_stream.source.process import PerProcess
from lerobot_stream.source.refusal import Subject, endless, gave_up, offline, refused_by_hub
from lerobot_stream.source.verdict import Judgement, Verdict, judge, judge_range
from lerobot_stream.source.where import Address, expiry, host, next_page, origin
from lerobot_stream.span import Span

logger = logging.getLogger(__name__)

CONNECTIONS = 16
"""Requests at a time where nothing else is said; the session keeps 20 connections alive."""
_MAX_REDIRECTS = 5
_MAX_JSON_BYTES = 256 << 20
_MAX_PAGES = 100_000
_IDENTITY = {"accept-encoding": "identity"}
_SMALL_BYTES = 64 << 10  # read to the end so that the connection can be used again

J = TypeVar("J", list[Any], dict[str, Any])

# httpx with huggingface_hub 1, httpx2 with 2: whichever its own errors come from
HTTP_ERROR: Any = next(kind for kind in HfHubHTTPError.__mro__ if kind.__name__ == "HTTPError")
_http: Any = import_module(HTTP_ERROR.__module__.partition(".")[0])


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered."""

    status: int
    """HTTP status; 0 where nothing came."""
    headers: Mapping[str, str]
    """Values by lower-case name."""
    body: bytes
    """Bytes as they came; empty where they were not wanted."""


_NOTHING = Reply(0, {}, b"")


class _FaultError(Exception):
    """A connection did not do what it should; another try may help."""


@dataclass(frozen=True, slots=True)
class _Ask:
    """One request, to be sent as often as it takes."""

    method: str
    url: str
    headers: Mapping[str, str]
    subject: Subject
    what: str
    judge: Callable[[Reply], Judgement]
    num_bytes: int | None = None  # exactly; None: as many as a listing may have


class HttpClient:
    """Calls to the Hub and to the stores it signs addresses of.

    Each call has deadlines and is repeated while that makes sense. A token is sent to the
    Hub's own origin and nowhere else. Nothing of a connection crosses a process border.

    Args:
        connections: Requests at a time; ``None``: a usual number.
        patience: Deadlines and waits.
        clock: Where time and chance come from.
    """

    def __init__(self, *, connections: int | None, patience: Patience, clock: Clock) -> None:
        if connections is not None and connections < 1:
            raise ValueError(f"connections must be at least 1, not {connections}")
        self.endpoint = constants.ENDPOINT.rstrip("/")
        self.connections = connections or CONNECTIONS
        self.count = RequestCount()
        self.patience = patience
        self.clock = clock
        self._slots = PerProcess(partial(threading.BoundedSemaphore, self.connections))
        self._counting = PerProcess(threading.Lock)

    def look_up(
        self, method: str, url: str, subject: Subject, *, what: str
    ) -> tuple[str, Reply, Judgement]:
        """Ask the Hub something, following it as long as it stays on its own origin.

        Args:
            method: ``GET`` or ``HEAD``.
            url: The address.
            subject: What the call is about.
            what: What is asked for, in words.

        Returns:
            The address that answered in the end, its reply, and a verdict: ``USE``, or
            ``FOLLOW`` where the reply leads to another host.

        Raises:
            SourceError: The Hub refuses, or patience has ended.
        """
        headers = _IDENTITY if method == "HEAD" else {}  # so that its length is the file's
        for _ in range(_MAX_REDIRECTS):
            ask = _Ask(method, url, headers, subject, what, _judge)
            reply, judgement = self._repeat(ask)
            if judgement.verdict is not Verdict.FOLLOW:
                break
            target = urljoin(url, reply.headers["location"])
            if not self.is_hub(target):
                return url, reply, judgement
            url = target
        else:
            raise endless(subject, url=url)
        if judgement.verdict is not Verdict.USE:
            raise refused_by_hub(judgement, reply.status, reply.headers, subject, url=url)
        return url, reply, judgement

    def get_json(
        self, url: str, subject: Subject, *, kind: type[J], what: str
    ) -> tuple[J, str | None]:
        """Get a JSON list or object from the Hub, and the address of the next page if any.

        Raises:
            SourceError: The Hub refuses, patience has ended, or it is something else.
        """
        at, reply, judgement = self.look_up("GET", url, subject, what=what)
        if judgement.verdict is not Verdict.USE:
            message = f"{host(at)} sends to another host for {what}"
            raise SourceError(message, path=subject.name)
        try:
            value = json.loads(reply.body)
        except ValueError as error:
            message = f"{host(at)} sent no JSON for {what}"
            raise SourceError(message, path=subject.name) from error
        if not isinstance(value, kind):
            message = f"{host(at)} sent a {type(value).__name__} for {what}"
            raise SourceError(message, path=subject.name)
        return value, next_page(reply.headers)

    def get_pages(self, url: str, subject: Subject, *, what: str) -> Iterator[Any]:
        """Get all entries of a listing, page by page.

        Raises:
            SourceError: The Hub refuses, or the pages do not end.
        """
        seen: set[str] = set()
        following: str | None = url
        while following is not None:
            if following in seen or len(seen) == _MAX_PAGES:
                message = f"{what} does not end: {len(seen)} pages seen"
                raise SourceError(message, path=subject.name)
            seen.add(following)
            entries, following = self.get_json(following, subject, kind=list, what=what)
            yield from entries

    def get_range(
        self, address: Address, span: Span, subject: Subject, *, size: int
    ) -> tuple[Address, Reply, Judgement]:
        """Get a range of a file.

        Args:
            address: Where the file is.
            span: Bytes ``[start, stop)``, not empty, inside the file.
            subject: The file.
            size: Its size in bytes, as it was listed.

        Returns:
            The address that answered in the end, its reply, and a verdict; only with ``USE``
            the body is the range.

        Raises:
            SourceError: Patience has ended.
        """
        for _ in range(_MAX_REDIRECTS):
            headers = {"range": f"bytes={span.start}-{span.stop - 1}", **_IDENTITY}
            if address.etag is not None and self.is_hub(address.url):
                headers["if-match"] = address.etag
            etag = address.etag

            def check(reply: Reply, etag: str | None = etag) -> Judgement:
                return _judge_range(reply, span, size, etag)

            what = f"{len(span)} bytes at {span.start}"
            ask = _Ask("GET", address.url, headers, subject, what, check, len(span))
            reply, judgement = self._repeat(ask)
            if judgement.verdict is not Verdict.FOLLOW:
                return address, reply, judgement
            target = urljoin(address.url, reply.headers["location"])
            until = expiry(target, reply.headers, now=self.clock.wall())
            address = Address(target, expires_at=until)
        raise endless(subject, url=address.url)

    def is_hub(self, url: str) -> bool:
        """Say whether an address is on the Hub's own origin."""
        return origin(url) == origin(self.endpoint)

    def _repeat(self, ask: _Ask) -> tuple[Reply, Judgement]:
        """Send until the verdict stands: what waits is tried again, a doubt once."""
        patience, clock = self.patience, self.clock
        began = clock.now()
        doubts = 0
        for tries in range(1, patience.tries + 1):
            reply, judgement = self._try(ask)
            doubts += judgement.verdict is Verdict.DOUBT
            first_doubt = judgement.verdict is Verdict.DOUBT and doubts == 1
            if judgement.verdict is not Verdict.WAIT and not first_doubt:
                return reply, judgement
            asked = asked_wait_s(reply.headers)
            wait = patience.wait_s(tries, draw=clock.draw(), asked_s=asked)
            spent = clock.now() - began
            if tries == patience.tries or spent + wait > patience.call_s:
                break
            logger.warning(
                "%s: %s %s (try %d of %d); again in %.1f s, given up at the latest in %.0f s",
                ask.subject.name,
                host(ask.url),
                judgement.reason,
                tries,
                patience.tries,
                wait,
                patience.call_s - spent,
            )
            clock.sleep(wait)
        raise gave_up(
            judgement.reason,
            ask.subject,
            url=ask.url,
            status=reply.status,
            tries=tries,
            spent_s=clock.now() - began,
        )

    def _try(self, ask: _Ask) -> tuple[Reply, Judgement]:
        try:
            reply = self._exchange(ask)
        except _FaultError as fault:
            return _NOTHING, Judgement(Verdict.WAIT, str(fault))
        judgement = ask.judge(reply)
        if judgement.verdict is Verdict.USE and ask.num_bytes not in (None, len(reply.body)):
            found = f"sent {len(reply.body)} of {ask.num_bytes} bytes"
            return reply, Judgement(Verdict.DOUBT, found)
        return reply, judgement

    def _exchange(self, ask: _Ask) -> Reply:
        """Send one request and read the reply, its body only where the headers are right."""
        patience, session = self.patience, get_session()
        timeout = (patience.connect_s, patience.silence_s, patience.silence_s, patience.try_s)
        reply = _NOTHING
        with self._slots.get():
            try:
                with session.stream(
                    ask.method,
                    ask.url,
                    headers=self._headers(ask),
                    follow_redirects=False,
                    timeout=timeout,
                ) as response:
                    found = {k.lower(): v for k, v in response.headers.items()}
                    reply = Reply(response.status_code, found, b"")
                    reply = replace(reply, body=self._read(response, reply, ask))
            except OfflineModeIsEnabled as error:
                raise offline(ask.what, ask.subject, url=ask.url) from error
            except (_http.UnsupportedProtocol, _http.InvalidURL) as error:
                message = f"{host(ask.url)!r} is no address: {error}"
                raise SourceError(message, path=ask.subject.name) from error
            except (_http.TransportError, _http.DecodingError) as error:
                raise _FaultError(f"failed ({type(error).__name__}: {error})") from error
            except RuntimeError as error:
                if not session.is_closed:  # huggingface_hub closes it when a connection fails
                    raise
                raise _FaultError("was cut off: the session was closed") from error
            finally:
                self._note(ask, reply)
        return reply

    def _headers(self, ask: _Ask) -> dict[str, str]:
        own = build_hf_headers() if self.is_hub(ask.url) else {}
        return {**own, **ask.headers}

    def _read(self, response: Any, reply: Reply, ask: _Ask) -> bytes:
        wanted = ask.judge(reply).verdict is Verdict.USE
        length = int(reply.headers.get("content-length") or ask.num_bytes or 0)
        if not wanted and length > _SMALL_BYTES and ask.method != "HEAD":
            return b""
        most = (ask.num_bytes or _MAX_JSON_BYTES) if wanted else _SMALL_BYTES
        deadline = self.clock.now() + self.patience.try_deadline_s(length)
        parts: list[bytes] = []
        size = 0
        for part in response.iter_raw() if ask.num_bytes else response.iter_bytes():
            parts.append(part)
            size += len(part)
            if size > most:
                raise _FaultError(f"sent more than {most} bytes")
            if self.clock.now() > deadline:
                raise _FaultError(f"sent only {size} bytes in time")
        return b"".join(parts) if wanted else b""

    def _note(self, ask: _Ask, reply: Reply) -> None:
        with self._counting.get():
            if "range" in ask.headers:
                self.count.requests += 1
                self.count.bytes += len(reply.body)
            else:
                self.count.lookups += 1
        path = urlsplit(ask.url).path  # what follows may be a signature
        logger.debug("%s %s%s %s: %d", ask.method, host(ask.url), path, ask.what, reply.status)

    def __getstate__(self) -> dict[str, Any]:
        """Take no connection along; counting starts anew."""
        return {**self.__dict__, "count": RequestCount()}


def _judge(reply: Reply) -> Judgement:
    return judge(reply.status, reply.headers)


def _judge_range(reply: Reply, span: Span, size: int, etag: str | None) -> Judgement:
    return judge_range(reply.status, reply.headers, span=span, size=size, etag=etag)
