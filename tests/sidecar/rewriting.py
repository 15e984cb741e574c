"""Sidecars that say something else than they were built with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.sidecar.archive import compress, write_archive
from lerobot_stream.sidecar.manifest import SidecarHeader
from lerobot_stream.sidecar.members import MEMBERS, index_to_bytes, member_name, text_to_bytes
from lerobot_stream.sidecar.schema import MANIFEST, Sidecar


def rewrite(path: Path, change: Callable[[Mp4Index], Mp4Index], **header: object) -> None:
    """Write a sidecar again with the first file's index and the header changed."""
    sidecar = Sidecar(path)
    indexes = {name: sidecar.index(name) for name in sidecar.paths}
    first = sidecar.paths[0]
    indexes[first] = change(indexes[first])
    movies = {name: index.movie for name, index in indexes.items()}
    new: SidecarHeader = replace(sidecar.header, movies=movies, **header)  # type: ignore[arg-type]
    members = {MANIFEST: text_to_bytes(new.to_bytes())}
    for number, index in enumerate(indexes.values()):
        arrays = index_to_bytes(index)
        members |= {member_name(number, name): arrays[name] for name in MEMBERS}
    sidecar.close()
    with path.open("wb") as stream:
        write_archive(stream, (compress(name, data) for name, data in members.items()))
