"""A Hub on the loopback interface, served by threads of this process."""

from __future__ import annotations

import shutil
import socket
import socketserver
import tempfile
import threading
from collections.abc import Mapping, Sequence
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.hub import datasets, storage, uploads
from tests.hub.cas import Cas
from tests.hub.content import Blob, Bucket, Content, Repository, make_blob, walk
from tests.hub.exchange import Asked, Origin, Reply
from tests.hub.faults import Fault, Rule
from tests.hub.handler import Handler
from tests.hub.log import Gauge, Logged, RequestLog
from tests.hub.routes import answer
from tests.hub.world import World

TOKEN = "hf_loopback"
"""The token that is right."""

ANSWERING = (datasets, storage, uploads)
"""Modules that register what they answer."""

Files = Path | Mapping[str, Content]
"""A folder, or content by path."""


class Hub:
    """A Hub with repositories, buckets, a log and faults on demand.

    ``with Hub() as hub:`` serves it; ``hub.url`` is its address, ``hub.env(home)`` is what a
    process needs to use it. Content, options and rules may be changed while it serves.
    ``hub.connections`` counts the connections it took, ``hub.gauge.most`` the requests that
    were answered at the same time.
    Leaving the block ends all connections and raises if the server itself failed.
    """

    def __init__(
        self,
        *,
        latency_s: float = 0.0,
        bandwidth: float | None = None,
        redirect_buckets: bool = True,
        port: int = 0,
    ) -> None:
        """Get ready to serve.

        Args:
            latency_s: Wait before each answer.
            bandwidth: Bytes a second that each connection gets; ``None``: as fast as can be.
            redirect_buckets: Whether bucket files lie behind signed addresses.
            port: Where to listen; 0: anywhere.
        """
        self.latency_s = latency_s
        self.bandwidth = bandwidth
        self.log = RequestLog()
        self.gauge = Gauge()
        self.connections = 0
        self.closing = threading.Event()
        self.errors: list[str] = []
        self._lock = threading.RLock()
        self._rules: list[Rule] = []
        self._folder = Path(tempfile.mkdtemp(prefix="loopback-hub-"))
        self._server = _Server(self, port)
        number = self._server.server_port
        self.world = World(
            cas=Cas(self._folder / "cas"),
            hub_url=f"http://127.0.0.1:{number}",
            blobs_url=f"http://localhost:{number}",
            redirect_buckets=redirect_buckets,
        )
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, name="hub"
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        if kind is None and self.errors:
            raise RuntimeError("the loopback Hub failed:\n" + "\n".join(self.errors))

    def close(self) -> None:
        """End every connection and every thread."""
        self.closing.set()
        self._server.shutdown()
        self._server.end_connections()
        self._server.server_close()
        self._thread.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def url(self) -> str:
        """Address of the Hub, for ``HF_ENDPOINT``."""
        return self.world.hub_url

    def env(self, home: Path, *, token: str | None = TOKEN) -> dict[str, str]:
        """Say what a process must have in its environment to use this Hub.

        Args:
            home: Its ``HF_HOME``.
            token: The token it has; ``None``: none.
        """
        settings = {
            "HF_ENDPOINT": self.url,
            "HF_HOME": str(home),
            "HF_HUB_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "NO_PROXY": "127.0.0.1,localhost",
        }
        return settings if token is None else {**settings, "HF_TOKEN": token}

    def add_dataset(
        self,
        repo_id: str,
        files: Files,
        *,
        tags: Sequence[str] = ("v3.0",),
        private: bool = False,
        gated: bool = False,
    ) -> str:
        """Make a dataset repository with one commit on ``main``.

        Returns:
            The commit.
        """
        with self._lock:
            self.world.repositories[repo_id] = Repository(repo_id, private=private, gated=gated)
            oid = self.commit(repo_id, files)
            for tag in tags:
                self.tag(repo_id, tag, oid)
        return oid

    def commit(
        self,
        repo_id: str,
        files: Files,
        *,
        delete: Sequence[str] = (),
        branch: str = "main",
    ) -> str:
        """Put one more commit on a branch.

        Returns:
            The commit.
        """
        changes: dict[str, Blob | None] = {**self._blobs(files), **dict.fromkeys(delete)}
        with self._lock:
            repository = self.world.repositories[repo_id]
            return repository.commit(changes, branch=branch, title="loopback").oid

    def tag(self, repo_id: str, name: str, commit: str) -> None:
        """Set or move a tag."""
        self.world.repositories[repo_id].tags[name] = commit

    def add_bucket(self, bucket_id: str, files: Files, *, private: bool = False) -> None:
        """Make a bucket with files."""
        self.world.buckets[bucket_id] = Bucket(bucket_id, private=private)
        self.put(bucket_id, files)

    def put(self, bucket_id: str, files: Files) -> None:
        """Store or replace files of a bucket."""
        blobs = self._blobs(files, lfs=True)
        hashes = self.world.cas.hashes([blob.content for blob in blobs.values()])
        with self._lock:
            for (path, blob), xet_hash in zip(blobs.items(), hashes, strict=True):
                self.world.buckets[bucket_id].put(path, blob, xet_hash)

    def _blobs(self, files: Files, *, lfs: bool | None = None) -> dict[str, Blob]:
        contents = walk(files) if isinstance(files, Path) else files
        blobs = {path: make_blob(path, content, lfs=lfs) for path, content in contents.items()}
        with self._lock:
            self.world.store.update({b.sha256: b for b in blobs.values() if b.lfs})
        return blobs

    def fail(
        self,
        fault: Fault,
        path: str = "*",
        *,
        method: str | None = None,
        origin: Origin | None = None,
        skip: int = 0,
        times: int | None = 1,
    ) -> Rule:
        """Let requests go wrong.

        Args:
            fault: What goes wrong.
            path: Pattern of the unquoted path, as in a shell.
            method: Only this method.
            origin: Only this host.
            skip: Matching requests that are answered rightly first.
            times: Matching requests that then go wrong; ``None``: all.

        Returns:
            The rule, which counts its hits.
        """
        rule = Rule(fault, path, method, origin, skip, times)
        with self._lock:
            self._rules.append(rule)
        return rule

    def heal(self) -> None:
        """Forget all rules."""
        with self._lock:
            self._rules.clear()

    def expire_addresses(self) -> None:
        """Make every signed address given out so far stale."""
        self.world.generation += 1

    def requests(
        self, path: str = "*", *, method: str | None = None, origin: Origin | None = None
    ) -> list[Logged]:
        """List the requests seen, oldest first; see :meth:`RequestLog.find`."""
        return self.log.find(path, method=method, origin=origin)

    def reply(self, asked: Asked) -> Reply:
        """Answer one request, rightly or by the first rule that takes it."""
        with self._lock:
            rule = next((rule for rule in self._rules if rule.takes(asked)), None)
            reply = answer(self.world, asked)
        return rule.fault.apply(asked, reply) if rule else reply


class _Server(ThreadingHTTPServer):
    """Threads that can all be ended."""

    daemon_threads = False
    block_on_close = True
    request_queue_size = 256

    def __init__(self, hub: Hub, port: int) -> None:
        self.hub = hub
        self._open: set[socket.socket] = set()
        self._open_lock = threading.Lock()
        super().__init__(("127.0.0.1", port), Handler)

    def server_bind(self) -> None:
        # the HTTP server's own method asks for the host's name, which may take seconds
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._open_lock:
            self._open.add(request)
            self.hub.connections += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._open_lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def end_connections(self) -> None:
        with self._open_lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # the other side has gone already

    def handle_error(self, request: Any, client_address: Any) -> None:
        import sys
        import traceback

        if not isinstance(sys.exception(), ConnectionError):
            self.hub.errors.append(traceback.format_exc())
