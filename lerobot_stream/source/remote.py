"""What the places on the Hub have in common: files behind addresses that it gives out."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urljoin

from lerobot_stream.errors import SourceError
from lerobot_stream.source.base import FileInfo, Identity
from lerobot_stream.source.http import HttpClient, Reply
from lerobot_stream.source.listing import find_file, find_span
from lerobot_stream.source.parts import Parts
from lerobot_stream.source.paths import is_hidden
from lerobot_stream.source.process import PerProcess
from lerobot_stream.source.refusal import Subject, changed, refused_by_hub, refused_by_store
from lerobot_stream.source.verdict import Judgement, Verdict, content_coding, strong_etag
from lerobot_stream.source.where import Address, expiry
from lerobot_stream.span import Span

_NEW_ADDRESS_HELPS = (Verdict.DENIED, Verdict.MISSING)


class _Locks:
    """A lock for each thing that only one thread at a time shall ask the Hub for."""

    def __init__(self) -> None:
        self._all: dict[str, threading.Lock] = {}

    def of(self, name: str) -> threading.Lock:
        return self._all.setdefault(name, threading.Lock())


class RemoteSource(ABC):
    """A source whose files lie behind addresses that the Hub gives out.

    The Hub is asked once where a file is; a signed address is used until it expires or is
    refused. Listing and addresses go along when the source is pickled, so that workers need
    not ask again; connections and tokens do not.

    Args:
        identity: What a sidecar is filed under.
        client: Makes the calls.
        subject: What its errors are about.
        subranges: Parts to fetch a large span in.
    """

    def __init__(
        self, identity: Identity, *, client: HttpClient, subject: Subject, subranges: int = 1
    ) -> None:
        self.identity = identity
        self.count = client.count
        self._client = client
        self._subject = subject
        self._listing: dict[str, FileInfo] | None = None
        self._addresses: dict[str, Address] = {}
        self._locks = PerProcess(_Locks)
        self._parts = Parts(parts=subranges, threads=client.connections)

    @abstractmethod
    def _list(self) -> Iterator[tuple[str, FileInfo]]:
        """List all files from the Hub."""

    @abstractmethod
    def _url(self, path: str) -> str:
        """Return the address at which the Hub is asked for a file."""

    def list_files(self) -> Mapping[str, FileInfo]:
        """List the files, once, without what hidden folders hold."""
        with self._locks.get().of(""):
            if self._listing is None:
                try:
                    found = {path: info for path, info in self._list() if not is_hidden(path)}
                except (KeyError, TypeError, ValueError, AttributeError) as error:
                    message = f"the list of its files is not understood: {error!r}"
                    raise SourceError(message, path=self.identity.repo_id) from error
                self._listing = dict(sorted(found.items()))
            return self._listing

    def read(self, path: str, span: Span) -> bytes:
        """Read exactly ``len(span)`` bytes, with one request for each part it is split into.

        Raises:
            MissingFileError: There is no such file.
            SourceError: The path leads outside the root, the bytes are not all there, the file
                has changed since the listing, or the server does not give them.
        """
        info = find_span(self, path, span)
        if not len(span):
            return b""
        return self._parts.fetch(span, partial(self._read_part, path, info))

    def resolve(self, paths: Iterable[str]) -> None:
        """Ask for the addresses of files now, many at a time.

        Copies made by pickling afterwards have them and need not ask.

        Raises:
            MissingFileError: There is no such file.
            SourceError: The Hub does not say where one is.
        """
        self._parts.map(lambda path: self._address(path, find_file(self, path)), list(paths))

    def close(self) -> None:
        """End the threads of this source; the session is huggingface_hub's own and stays."""
        self._parts.close()

    def __getstate__(self) -> dict[str, Any]:
        """Take listing and addresses along; counting starts anew."""
        state = {**self.__dict__, "_addresses": dict(self._addresses)}
        del state["count"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.count = self._client.count

    def _read_part(self, path: str, info: FileInfo, span: Span) -> bytes:
        subject = replace(self._subject, path=path)
        address = self._address(path, info)
        for is_last in (False, True):
            used, reply, judgement = self._client.get_range(address, span, subject, size=info.size)
            if judgement.verdict is Verdict.USE:
                self._remember(path, info, used, reply)
                return reply.body
            at_hub = self._client.is_hub(used.url)
            if at_hub or is_last or judgement.verdict not in _NEW_ADDRESS_HELPS:
                break
            address = self._address(path, info, stale=address)
        raise _refusal(judgement, reply, subject, url=used.url, at_hub=at_hub)

    def _address(self, path: str, info: FileInfo, *, stale: Address | None = None) -> Address:
        """Return where a file is, asking the Hub only where nothing good is known."""
        with self._locks.get().of(path):
            known = self._addresses.get(path)
            is_stale = known is not None and stale is not None and known.url == stale.url
            if known is None or is_stale or not known.is_good_at(self._client.clock.wall()):
                known = self._addresses[path] = self._ask_address(path, info)
            return known

    def _ask_address(self, path: str, info: FileInfo) -> Address:
        subject = replace(self._subject, path=path)
        asked, what = self._url(path), "its address"
        url, reply, judgement = self._client.look_up("HEAD", asked, subject, what=what)
        is_direct = judgement.verdict is Verdict.USE
        _check_unchanged(reply, info, subject, is_direct=is_direct)
        if is_direct:
            return Address(url, etag=strong_etag(reply.headers) if info.fingerprint else None)
        url = urljoin(url, reply.headers["location"])
        now = self._client.clock.wall()
        return Address(url, expires_at=expiry(url, reply.headers, now=now))

    def _remember(self, path: str, info: FileInfo, used: Address, reply: Reply) -> None:
        if info.fingerprint and used.etag is None:  # else the commit pins the content
            used = replace(used, etag=strong_etag(reply.headers))
        if self._addresses.get(path) != used:
            self._addresses[path] = used


def _check_unchanged(reply: Reply, info: FileInfo, subject: Subject, *, is_direct: bool) -> None:
    size = reply.headers.get("x-linked-size")
    if size is None and is_direct and not _tells_of_other_bytes(reply):
        size = reply.headers.get("content-length")
    if size is not None and size != str(info.size):
        reason = f"it has {size} bytes, {info.size} were listed"
        raise changed(Judgement(Verdict.CHANGED, reason), subject)
    content = reply.headers.get("x-xet-hash")
    if info.fingerprint and content is not None and content != info.fingerprint:
        reason = f"its content hash was {info.fingerprint[:12]}, now {content[:12]}"
        raise changed(Judgement(Verdict.CHANGED, reason), subject)


def _tells_of_other_bytes(reply: Reply) -> bool:
    """True where the length is that of coded bytes or of a part; the range's own reply decides."""
    return content_coding(reply.headers) != "" or "content-range" in reply.headers


def _refusal(
    judgement: Judgement, reply: Reply, subject: Subject, *, url: str, at_hub: bool
) -> SourceError:
    if judgement.verdict is Verdict.CHANGED:
        return changed(judgement, subject)
    if at_hub:
        return refused_by_hub(judgement, reply.status, reply.headers, subject, url=url)
    return refused_by_store(judgement, reply.status, subject, url=url)
