"""Reads requests from a connection and writes replies to it, as slowly and as wrongly as told."""

from __future__ import annotations

import time
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.hub.exchange import Asked, Origin, Part, Reply
from tests.hub.log import Logged

if TYPE_CHECKING:
    from tests.hub.server import Hub

_PIECE = 64 << 10
_PACE_S = 0.01
_NO_BODY = {204, 304}


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server_version = "LoopbackHub"

    @property
    def hub(self) -> Hub:
        """The Hub behind the server."""
        return cast("Hub", self.server.hub)  # type: ignore[attr-defined]

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent: the Hub keeps a log of its own."""

    def _serve(self) -> None:
        asked = self._read()
        entry = self.hub.log.add(asked)
        with self.hub.gauge:
            if self.hub.latency_s:
                self.hub.closing.wait(self.hub.latency_s)
            reply = self.hub.reply(asked)
            entry.status = reply.status
            try:
                self._write(asked, reply, entry)
            except ConnectionError:
                self.close_connection = True

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - names of http.server

    def _read(self) -> Asked:
        url = urlsplit(self.path)
        host = self.headers.get("Host", "")
        origin: Origin = "blobs" if host.startswith("localhost") else "hub"
        return Asked(
            method=self.command,
            origin=origin,
            raw_path=url.path,
            path=unquote(url.path),
            query=dict(parse_qsl(url.query)),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self._read_body(),
        )

    def _read_body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            pieces = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _write(self, asked: Asked, reply: Reply, entry: Logged) -> None:
        if reply.drop_after == -1:
            self.close_connection = True
            return
        if reply.stall_after == -1:
            self._stall()
            return
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.status not in _NO_BODY:
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if asked.method != "HEAD":
            self._write_body(reply, entry)
        self.wfile.flush()

    def _write_body(self, reply: Reply, entry: Logged) -> None:
        data = reply.body.read() if isinstance(reply.body, Part) else reply.body
        limits = [n for n in (reply.drop_after, reply.stall_after) if n is not None]
        stop = min([len(data), *limits])
        began = time.monotonic()
        rate = self.hub.bandwidth
        step = min(_PIECE, max(1, int(rate * _PACE_S))) if rate else _PIECE
        for at in range(0, stop, step):
            piece = memoryview(data)[at : min(at + step, stop)]
            self.wfile.write(piece)
            entry.sent += len(piece)
            if rate:
                self.wfile.flush()
                ahead = entry.sent / rate - (time.monotonic() - began)
                if ahead > 0:
                    self.hub.closing.wait(ahead)
        if reply.stall_after is not None:
            self.wfile.flush()
            self._stall()
        if reply.drop_after is not None:
            self.close_connection = True

    def _stall(self) -> None:
        self.close_connection = True
        self.hub.closing.wait()
