"""A source without files, and MP4 files without an encoder."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from lerobot_stream.errors import MissingFileError, SourceError
from lerobot_stream.mp4.mux import build_mini_mp4
from lerobot_stream.mp4.probe import read_mp4_index
from lerobot_stream.source.base import FileInfo, Identity, RequestCount
from lerobot_stream.span import Span
from tests.media import encode
from tests.sidecar.synthetic import make_index

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PINNED = Identity("robots/arm", COMMIT, f"hf://datasets/robots/arm@{COMMIT}")
UNPINNED = Identity("robots/arm", "v3.0", "memory://robots/arm")


class MemorySource:
    """Files held in memory; requests are counted per path."""

    def __init__(
        self,
        files: Mapping[str, bytes],
        identity: Identity = PINNED,
        fingerprints: Mapping[str, str] | None = None,
        faults: Mapping[str, SourceError] | None = None,
    ) -> None:
        self.files = dict(files)
        self.identity = identity
        self.count = RequestCount()
        self.requests: dict[str, int] = {}
        self.faults = dict(faults or {})
        self._listing = {
            path: FileInfo(len(data), (fingerprints or {}).get(path, ""))
            for path, data in sorted(self.files.items())
        }
        self._lock = threading.Lock()

    def list_files(self) -> Mapping[str, FileInfo]:
        return self._listing

    def read(self, path: str, span: Span) -> bytes:
        with self._lock:
            self.count.requests += 1
            self.requests[path] = self.requests.get(path, 0) + 1
        if path in self.faults:
            raise self.faults[path]
        if path not in self.files:
            raise MissingFileError("no such file", path=path)
        data = self.files[path][span.start : span.stop]
        if len(data) != len(span):
            raise SourceError(f"wanted {len(span)} bytes, got {len(data)}", path=path)
        with self._lock:
            self.count.bytes += len(data)
        return data

    def resolve(self, paths: Iterable[str]) -> None:
        """Nothing to look up."""

    def close(self) -> None:
        pass


def make_mp4(folder: Path, num_samples: int, *, size: int = 100) -> bytes:
    """A faststart MP4 of many equal samples that nothing could decode."""
    clip = folder / "head.mp4"
    if not clip.exists():
        encode(clip, range(2), codec="mpeg4")
    data = clip.read_bytes()
    movie = read_mp4_index(
        lambda span: data[span.start : span.stop], file_size=len(data), path="head.mp4"
    ).movie
    index = dataclasses.replace(make_index(num_samples, size=size), movie=movie)
    return build_mini_mp4(index, 0, num_samples, bytes(num_samples * size), 40).data
