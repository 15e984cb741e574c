"""A dataset at any address that fsspec can read."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from fsspec.asyn import sync
from fsspec.core import url_to_fs

from lerobot_stream.errors import AccessError, MissingFileError, SourceError, StreamError
from lerobot_stream.source.base import FileInfo, Identity, RequestCount
from lerobot_stream.source.http import CONNECTIONS
from lerobot_stream.source.listing import find_span
from lerobot_stream.source.parts import Parts
from lerobot_stream.source.paths import is_hidden
from lerobot_stream.source.patience import Clock, Patience
from lerobot_stream.source.process import PerProcess
from lerobot_stream.source.root import shown, without_credentials
from lerobot_stream.span import Span

logger = logging.getLogger(__name__)

T = TypeVar("T")

CHECK_S = 10.0
"""Where a look at a file costs a request, it is checked for changes this often."""
_UNMARKED = "opened-"
_CONTENT = ("ETag", "etag", "e_tag", "VersionId", "version_id", "generation", "md5Hash")
_TIMES = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")
_CREDENTIALS = ("NoCredentials", "PartialCredentials", "DefaultCredentials", "Authentication")
_FINAL = (FileNotFoundError, PermissionError, ImportError, NotImplementedError, ValueError)


def fingerprint(details: Mapping[str, Any]) -> str:
    """Return what tells one content of a file from another, of what a listing says about it.

    Args:
        details: As fsspec gives them; each file system has names of its own.

    Returns:
        Entity tag or version id, else the time of the last change; empty where none is said.
    """
    for name in (*_CONTENT, *_TIMES):
        value = details.get(name)
        if value not in (None, "", "null"):
            return _text(value)
    return ""


def in_time(call: Callable[[], T], limit_s: float) -> T:
    """Call what knows no deadline, in a thread that is left behind if it takes too long.

    Raises:
        TimeoutError: It has not returned in time.
    """
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised again below
            done.set_exception(error)

    threading.Thread(target=run, daemon=True, name="lerobot-stream-call").start()
    return done.result(limit_s)


class FsspecSource:
    """A source that reads an fsspec address, with the credentials that fsspec finds itself.

    Where a file system tells nothing by which a change could be noticed, each opening gives the
    files new fingerprints, so that nothing kept from before is taken for theirs.

    Args:
        url: The address of the dataset's root.
        repo_id: The dataset's name.
        revision: Text to file the dataset under.
        connections: Requests at a time; ``None``: a usual number.
        subranges: Parts to fetch a large span in.
        patience: Deadlines and waits; ``None``: the usual ones.
        clock: Where time and chance come from; ``None``: from the system.
    """

    def __init__(
        self,
        url: str,
        *,
        repo_id: str,
        revision: str = "v3.0",
        connections: int | None = None,
        subranges: int = 1,
        patience: Patience | None = None,
        clock: Clock | None = None,
    ) -> None:
        if connections is not None and connections < 1:
            raise ValueError(f"connections must be at least 1, not {connections}")
        self.identity = Identity(repo_id, revision, without_credentials(url))
        self.count = RequestCount()
        self._url = url
        self._patience = patience or Patience()
        self._clock = clock or Clock()
        threads = connections or CONNECTIONS
        self._parts = Parts(parts=subranges, threads=threads)
        self._slots = PerProcess(partial(threading.BoundedSemaphore, threads))
        self._lock = PerProcess(threading.Lock)
        self._counting = PerProcess(threading.Lock)
        self._system = PerProcess(partial(_open, url))
        self._listing: dict[str, FileInfo] | None = None
        self._checked: dict[str, float] = {}

    def list_files(self) -> Mapping[str, FileInfo]:
        """List the files, once, without what hidden folders hold."""
        with self._lock.get():
            if self._listing is None:
                found = self._patiently(self._find, path=None, what="its files")
                if not found:
                    raise MissingFileError("no files there", path=self.identity.data_root)
                self._listing = found
            return self._listing

    def read(self, path: str, span: Span) -> bytes:
        """Read exactly ``len(span)`` bytes, with one request for each part it is split into.

        Raises:
            MissingFileError: There is no such file.
            SourceError: The path leads outside the root, the bytes are not all there, the file
                has changed since the listing, or the file system does not give them.
        """
        info = find_span(self, path, span)
        if not len(span):
            return b""
        return self._parts.fetch(span, partial(self._read_part, path, info))

    def resolve(self, paths: Iterable[str]) -> None:
        """Nothing: a URL is its own address."""

    def close(self) -> None:
        """End the threads and forget the file system, which fsspec may keep for others."""
        self._parts.close()
        self._system.drop()

    def __getstate__(self) -> dict[str, Any]:
        """Take the listing along; counting starts anew."""
        return {**self.__dict__, "count": RequestCount(), "_checked": {}}

    def _find(self) -> dict[str, FileInfo]:
        system, root = self._system.get()
        system.invalidate_cache()
        self._count(lookups=1)
        listing = self._call(system, "find", root, detail=True)
        unmarked = f"{_UNMARKED}{uuid.uuid4().hex}"
        found: dict[str, FileInfo] = {}
        for name, details in listing.items():
            path = name.removeprefix(root).lstrip("/")
            if not path or is_hidden(path) or details.get("type") == "directory":
                continue
            size = details.get("size")
            if size is None:
                self._count(lookups=1)
                details = self._call(system, "info", name)
                size = details.get("size")
            if size is None:
                raise SourceError("the file system does not tell its size", path=path)
            found[path] = FileInfo(int(size), fingerprint(details) or unmarked)
        return dict(sorted(found.items()))

    def _read_part(self, path: str, info: FileInfo, span: Span) -> bytes:
        data: bytes = self._patiently(
            partial(self._fetch, path, info, span), path=path, what=f"{len(span)} bytes"
        )
        if len(data) != len(span):
            message = f"wanted {len(span)} bytes at {span.start}, got {len(data)}"
            raise SourceError(message, path=path)
        return data

    def _fetch(self, path: str, info: FileInfo, span: Span) -> bytes:
        system, root = self._system.get()
        name = f"{root}/{path}"
        pins = _is_s3(system) and not info.fingerprint.startswith(_UNMARKED)
        with self._slots.get():
            try:
                if pins:
                    limit = self._patience.try_deadline_s(len(span))
                    data = _fetch_s3(system, name, span, etag=info.fingerprint, timeout=limit)
                else:
                    where = {"start": span.start, "end": span.stop}
                    data = self._call(system, "cat_file", name, num_bytes=len(span), **where)
            except OSError:
                self._count(requests=1)
                self._check(system, name, path, info, at_least_every_s=0.0)
                raise
        self._count(requests=1, num_bytes=len(data))
        if not pins:
            every_s = CHECK_S if system.async_impl else 0.0
            self._check(system, name, path, info, at_least_every_s=every_s)
        return bytes(data)

    def _check(
        self, system: Any, name: str, path: str, info: FileInfo, *, at_least_every_s: float
    ) -> None:
        """Compare a file with the listing, unless that was done a moment ago."""
        now = self._clock.now()
        if now - self._checked.get(path, -1e9) < at_least_every_s:
            return
        self._checked[path] = now
        system.invalidate_cache(name)
        self._count(lookups=1)
        details = self._call(system, "info", name)
        size = details.get("size")
        if size not in (None, info.size):
            reason = f"{info.size} bytes listed, {size} found"
        elif not info.fingerprint.startswith(_UNMARKED) and not _is_same(details, info):
            reason = "it was written again"
        else:
            return
        raise SourceError(
            f"changed while in use: {reason}",
            path=path,
            hint="start again when nothing writes to the dataset",
        )

    def _call(
        self, system: Any, method: str, name: str, *, num_bytes: int = 0, **options: Any
    ) -> Any:
        """Call a method of a file system; it must return before the deadline."""
        limit = self._patience.try_deadline_s(num_bytes)
        call = partial(getattr(system, method), name, **options)
        if system.async_impl:
            return call(timeout=limit)
        return call() if "memory" in system.protocol else in_time(call, limit)

    def _count(self, *, requests: int = 0, num_bytes: int = 0, lookups: int = 0) -> None:
        with self._counting.get():
            self.count.requests += requests
            self.count.bytes += num_bytes
            self.count.lookups += lookups

    def _patiently(self, call: Callable[[], T], *, path: str | None, what: str) -> T:
        """Call until it succeeds, fails for good, or patience ends."""
        patience, clock = self._patience, self._clock
        began = clock.now()
        for tries in range(1, patience.tries + 1):
            try:
                return call()
            except StreamError:
                raise
            except Exception as error:  # noqa: BLE001 - each file system has errors of its own
                fault = error
            wait = patience.wait_s(tries, draw=clock.draw())
            spent = clock.now() - began
            if _is_final(fault) or tries == patience.tries or spent + wait > patience.call_s:
                break
            logger.debug("%s: %s; again in %.1f s", path, type(fault).__name__, wait)
            clock.sleep(wait)
        raise self._translate(fault, path=path, what=what, tries=tries) from fault

    def _translate(
        self, fault: Exception, *, path: str | None, what: str, tries: int
    ) -> SourceError:
        root = self.identity.data_root
        place, kind = path or root, type(fault).__name__
        said = shown(str(fault).replace(self._url, root))
        if isinstance(fault, FileNotFoundError):
            return MissingFileError(f"no such file in {root}", path=place)
        scheme = root.partition("://")[0]
        if isinstance(fault, PermissionError) or any(name in kind for name in _CREDENTIALS):
            hint = f"check the credentials that fsspec finds for {scheme}://"
            return AccessError(f"access to {root} is refused: {said}", path=place, hint=hint)
        if isinstance(fault, ImportError):
            hint = f"install the package that reads {scheme}://: {said}"
            return SourceError(f"nothing here reads {scheme}://", path=place, hint=hint)
        if "Protocol not known" in said:
            hint = "name a folder, or an address of hf:// or of what fsspec reads"
            return SourceError(f"nothing here reads {scheme}://", path=place, hint=hint)
        effort = f" after {tries} tries" if tries > 1 else ""
        return SourceError(f"{what} cannot be read{effort}: {kind}: {said}", path=place)


def _open(url: str) -> tuple[Any, str]:
    system, root = url_to_fs(url)
    return system, root.rstrip("/")


def _is_final(fault: Exception) -> bool:
    kind = type(fault).__name__
    return isinstance(fault, _FINAL) or any(name in kind for name in _CREDENTIALS)


def _is_same(details: Mapping[str, Any], info: FileInfo) -> bool:
    marks = {_text(details[name]) for name in (*_CONTENT, *_TIMES) if name in details}
    return not marks or info.fingerprint in marks


def _text(value: Any) -> str:
    if hasattr(value, "timestamp"):
        value = value.timestamp()  # some file systems list a number and show a date, or reverse
    return str(value).strip('"')


def _is_s3(system: Any) -> bool:
    return "s3" in system.protocol and hasattr(system, "call_s3")


def _fetch_s3(system: Any, name: str, span: Span, *, etag: str, timeout: float) -> bytes:
    """Read a range on condition that the object is still the one listed."""
    bucket, key, _ = system.split_path(name)
    reply = system.call_s3(
        "get_object",
        Bucket=bucket,
        Key=key,
        Range=f"bytes={span.start}-{span.stop - 1}",
        IfMatch=f'"{etag}"',
        timeout=timeout,
    )
    body = reply["Body"]
    try:
        data: bytes = sync(system.loop, body.read, timeout=timeout)
    finally:
        body.close()
    return data
