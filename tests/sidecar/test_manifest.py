"""The manifest says the same after writing and reading, and may say anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.errors import FormatError
from lerobot_stream.sidecar.manifest import SidecarHeader, parse_manifest
from tests.sidecar.memory import PINNED
from tests.sidecar.synthetic import make_movie

A, B = "videos/a.mp4", "videos/b.mp4"
HEADER = SidecarHeader(PINNED, {A: "x"}, {A: make_movie(1000), B: make_movie(2000)})
Change = Callable[[dict[str, Any]], object]


def record() -> dict[str, Any]:
    value: dict[str, Any] = json.loads(HEADER.to_bytes())
    return value


@pytest.mark.parametrize("subset", [False, True])
def test_parsing_undoes_writing(subset: bool) -> None:
    header = SidecarHeader(HEADER.identity, HEADER.fingerprints, HEADER.movies, subset)
    assert parse_manifest(header.to_bytes(), path="s.npz") == header


def test_only_a_subset_is_marked() -> None:
    assert "subset" not in record()


def test_files_and_source_files_are_listed_by_path() -> None:
    assert HEADER.paths == (A, B)
    assert HEADER.source_files == ((A, 1000), (B, 2000))


CHANGES: dict[str, tuple[Change, str]] = {
    "older schema": (lambda m: m.update(version=2), "version is 2, wanted 3"),
    "other schema inside": (lambda m: m["sidecar"].update(schema_version=4), "is 4, wanted 3"),
    "no sidecar": (lambda m: m.pop("sidecar"), "NoneType, wanted an object"),
    "no root": (lambda m: m["sidecar"].pop("data_root"), "data_root is None, wanted text"),
    "files missing": (lambda m: m.pop("files"), "files is None, wanted a list"),
    "files differ": (lambda m: m["files"].pop(), "source_files lists other files than the 1"),
    "unsorted": (lambda m: m["files"].reverse(), "does not come after"),
    "twice": (lambda m: m["files"].append(m["files"][1]), "does not come after"),
    "stray fingerprint": (
        lambda m: m["sidecar"].update(source_fingerprints={"c": "x"}),
        "names c, which is not under files",
    ),
    "numeric fingerprint": (
        lambda m: m["sidecar"].update(source_fingerprints={A: 1}),
        "wanted an object of texts",
    ),
    "negative size": (lambda m: m["files"][0].update(file_size=-1), "file_size is -1"),
    "huge size": (lambda m: m["files"][0].update(file_size=1 << 60), "wanted a whole number"),
    "boolean size": (lambda m: m["files"][0].update(file_size=True), "file_size is True"),
    "other mp4": (lambda m: m["files"][0]["mp4"].update(file_path="z"), "differ from"),
    "no clock": (lambda m: m["files"][0]["mp4"].update(timescale=0), "timescale is 0, wanted 1"),
    "too wide": (lambda m: m["files"][0]["mp4"].update(width=1 << 16), "width is 65536"),
    "media past the end": (
        lambda m: m["files"][0]["mp4"].update(mdat_payload_size=2000),
        "media data ends after the file's 1000 bytes",
    ),
    "movie past the end": (
        lambda m: m["files"][0]["mp4"].update(moov_offset=1000),
        "moov_offset 1000 lies after",
    ),
    "no hex": (lambda m: m["files"][0]["mp4"].update(ftyp="xy"), "ftyp is not hexadecimal"),
    "faststart text": (lambda m: m["files"][0]["mp4"].update(faststart="no"), "wanted true or"),
    "subset text": (lambda m: m.update(subset="yes"), "subset is 'yes'"),
}


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES.keys())
def test_what_is_wrong_is_named_with_its_place(change: Change, message: str) -> None:
    value = record()
    change(value)
    with pytest.raises(FormatError, match=r"^s\.npz: manifest_json: manifest") as caught:
        parse_manifest(json.dumps(value).encode(), path="s.npz")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"9" * 5000, b"null", b"[]", b"{}"]
)
def test_text_that_is_no_manifest_is_one_error(data: bytes) -> None:
    with pytest.raises(FormatError, match=r"^s\.npz: manifest_json: "):
        parse_manifest(data, path="s.npz")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.data())
def test_any_value_anywhere_is_an_error_or_a_header(data: st.DataObject) -> None:
    value = record()
    place: Any = value
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            place[key] = data.draw(JSON)
            break
        place = place[key]
    try:
        header = parse_manifest(json.dumps(value).encode(), path="s.npz")
    except FormatError:
        return
    assert parse_manifest(header.to_bytes(), path="s.npz") == header
