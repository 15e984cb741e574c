"""The manifest of a schema-3 sidecar: what it says about itself and each file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from lerobot_stream.errors import FormatError
from lerobot_stream.mp4.index import Movie
from lerobot_stream.source.base import Identity

SCHEMA_VERSION = 3
_PLACE = "manifest_json"
_LARGEST = 1 << 53
_MOVIE_NUMBERS = (
    "moov_offset",
    "mdat_offset",
    "mdat_payload_offset",
    "mdat_payload_size",
    "timescale",
    "duration",
    "track_id",
    "width",
    "height",
)
_MOVIE_BOUNDS = {
    "timescale": (1, (1 << 32) - 1),
    "width": (0, (1 << 16) - 1),
    "height": (0, (1 << 16) - 1),
}


@dataclass(frozen=True, slots=True)
class SidecarHeader:
    """A sidecar without its arrays."""

    identity: Identity
    """The dataset it describes."""
    fingerprints: Mapping[str, str]
    """Text that changes with a file's content, by path; empty where a commit pins it."""
    movies: Mapping[str, Movie]
    """Each file's own record, by path, sorted."""
    subset: bool = False
    """True where it doesn't hold all video files of the dataset."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files described, sorted; a file's position is the number of its arrays."""
        return tuple(self.movies)

    @property
    def source_files(self) -> tuple[tuple[str, int], ...]:
        """Path and bytes of each file, sorted by path."""
        return tuple((path, movie.file_size) for path, movie in self.movies.items())

    def to_bytes(self) -> bytes:
        """The manifest as JSON, equal for equal records."""
        record: dict[str, object] = {
            "version": SCHEMA_VERSION,
            "sidecar": {
                "schema_version": SCHEMA_VERSION,
                "repo_id": self.identity.repo_id,
                "revision": self.identity.revision,
                "data_root": self.identity.data_root,
                "source_files": [{"path": path, "size": size} for path, size in self.source_files],
                "source_fingerprints": dict(sorted(self.fingerprints.items())),
            },
            "files": [
                {
                    "file_path": path,
                    "file_size": movie.file_size,
                    "mp4": movie_record(path, movie),
                }
                for path, movie in self.movies.items()
            ],
        }
        if self.subset:
            record["subset"] = True
        return json.dumps(record).encode()


def movie_record(path: str, movie: Movie) -> dict[str, object]:
    """A file's own record as JSON values.

    Args:
        path: The file.
        movie: What is known of it.
    """
    return {
        "file_path": path,
        "file_size": movie.file_size,
        "moov_offset": movie.moov_offset,
        "mdat_offset": movie.mdat_offset,
        "mdat_payload_offset": movie.mdat_payload_offset,
        "mdat_payload_size": movie.mdat_payload_size,
        "faststart": movie.faststart,
        "codec": movie.codec,
        "timescale": movie.timescale,
        "duration": movie.duration,
        "track_id": movie.track_id,
        "width": movie.width,
        "height": movie.height,
        "ftyp": movie.ftyp.hex(),
        "stsd_body": movie.stsd_body.hex(),
    }


def parse_manifest(data: bytes, *, path: str) -> SidecarHeader:
    """Read a manifest that may say anything.

    Args:
        data: The JSON text.
        path: The sidecar, for messages.

    Raises:
        FormatError: It isn't schema 3, or a field is missing, of another type or out of bounds.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not JSON: {error}", path=path, where=_PLACE) from None
    manifest = _Fields(value, path, "manifest")
    if manifest.get("version") != SCHEMA_VERSION:
        manifest.fail(f"version is {manifest.get('version')!r}, wanted {SCHEMA_VERSION}")
    sidecar = manifest.fields("sidecar")
    if sidecar.get("schema_version") != SCHEMA_VERSION:
        sidecar.fail(
            f"schema_version is {sidecar.get('schema_version')!r}, wanted {SCHEMA_VERSION}"
        )
    identity = Identity(
        sidecar.text("repo_id"), sidecar.text("revision"), sidecar.text("data_root")
    )
    movies = _parse_movies(manifest)
    listed = [(item.text("path"), item.number("size")) for item in sidecar.items("source_files")]
    if listed != [(name, movie.file_size) for name, movie in movies.items()]:
        sidecar.fail(f"source_files lists other files than the {len(movies)} under files")
    fingerprints = sidecar.texts("source_fingerprints")
    if not fingerprints.keys() <= movies.keys():
        stray = min(fingerprints.keys() - movies.keys())
        sidecar.fail(f"source_fingerprints names {stray}, which is not under files")
    subset = manifest.get("subset", False)
    if not isinstance(subset, bool):
        manifest.fail(f"subset is {subset!r}, wanted true or false")
    return SidecarHeader(identity, fingerprints, movies, subset)


def _parse_movies(manifest: _Fields) -> dict[str, Movie]:
    movies: dict[str, Movie] = {}
    last = ""
    for item in manifest.items("files"):
        name = item.text("file_path")
        if movies and name <= last:
            item.fail(f"file_path {name!r} does not come after {last!r}")
        last = name
        movies[name] = _parse_movie(item.fields("mp4"), name, item.number("file_size"))
    return movies


def _parse_movie(mp4: _Fields, name: str, size: int) -> Movie:
    if mp4.text("file_path") != name or mp4.number("file_size") != size:
        mp4.fail(f"file_path and file_size differ from {name!r}, {size}")
    numbers = {key: mp4.number(key) for key in _MOVIE_NUMBERS}
    for key, (least, most) in _MOVIE_BOUNDS.items():
        if not least <= numbers[key] <= most:
            mp4.fail(f"{key} is {numbers[key]}, wanted {least} to {most}")
    if numbers["mdat_payload_offset"] + numbers["mdat_payload_size"] > size:
        mp4.fail(f"media data ends after the file's {size} bytes")
    for key in ("moov_offset", "mdat_offset"):
        if numbers[key] >= size:
            mp4.fail(f"{key} {numbers[key]} lies after the file's {size} bytes")
    faststart = mp4.get("faststart")
    if not isinstance(faststart, bool):
        mp4.fail(f"faststart is {faststart!r}, wanted true or false")
    return Movie(
        file_size=size,
        ftyp=mp4.hex("ftyp"),
        faststart=faststart,
        codec=mp4.text("codec"),
        stsd_body=mp4.hex("stsd_body"),
        **numbers,
    )


def parse_movie_record(data: bytes, *, file: str, path: str) -> Movie:
    """Read a file's own record that may say anything.

    Args:
        data: The JSON text of :func:`movie_record`.
        file: The file it is about.
        path: Where the record is kept, for messages.

    Raises:
        FormatError: A field is missing, of another type or out of bounds.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not JSON: {error}", path=path, where=file) from None
    fields = _Fields(value, path, file)
    return _parse_movie(fields, file, fields.number("file_size"))


class _Fields:
    """A JSON object whose fields are checked as they are read."""

    def __init__(self, value: object, path: str, place: str) -> None:
        self._path = path
        self._place = place
        if not isinstance(value, dict):
            self.fail(f"found {type(value).__name__}, wanted an object")
        self._value: dict[str, object] = value

    def fail(self, message: str) -> NoReturn:
        raise FormatError(message, path=self._path, where=f"{_PLACE}: {self._place}")

    def get(self, key: str, default: object = None) -> object:
        return self._value.get(key, default)

    def text(self, key: str) -> str:
        value = self._value.get(key)
        if not isinstance(value, str):
            self.fail(f"{key} is {_short(value)}, wanted text")
        return value

    def number(self, key: str) -> int:
        value = self._value.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _LARGEST:
            self.fail(f"{key} is {_short(value)}, wanted a whole number")
        return value

    def hex(self, key: str) -> bytes:
        try:
            return bytes.fromhex(self.text(key))
        except ValueError:
            self.fail(f"{key} is not hexadecimal")

    def fields(self, key: str) -> _Fields:
        return _Fields(self._value.get(key), self._path, f"{self._place}.{key}")

    def items(self, key: str) -> list[_Fields]:
        value = self._value.get(key)
        if not isinstance(value, list):
            self.fail(f"{key} is {_short(value)}, wanted a list")
        place = f"{self._place}.{key}"
        return [_Fields(item, self._path, f"{place}[{i}]") for i, item in enumerate(value)]

    def texts(self, key: str) -> dict[str, str]:
        value = self._value.get(key)
        if not isinstance(value, dict) or not all(isinstance(t, str) for t in value.values()):
            self.fail(f"{key} is {_short(value)}, wanted an object of texts")
        return value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
