from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from lerobot_stream.errors import MissingFileError, SourceError
from lerobot_stream.source.local import LocalSource
from lerobot_stream.span import Span

PATH = "data/chunk-000/file-000.parquet"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    file = tmp_path / "arm" / PATH
    file.parent.mkdir(parents=True)
    file.write_bytes(b"0123456789")
    os.utime(file, ns=(1_000, 2_000))
    return tmp_path / "arm"


def open_local(root: Path) -> LocalSource:
    return LocalSource(root, repo_id="robots/arm")


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_the_data_root_is_the_real_path(root: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(root)
    assert open_local(link).identity.data_root == str(root.resolve())


def test_a_folder_has_the_revision_given_or_v3() -> None:
    assert LocalSource(Path(), repo_id="a/b").identity.revision == "v3.0"
    assert LocalSource(Path(), repo_id="a/b", revision="x").identity.revision == "x"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="nowhere: no such folder"):
        open_local(tmp_path / "nowhere")


def test_the_fingerprint_is_size_and_modification_time(root: Path) -> None:
    assert open_local(root).list_files()[PATH].fingerprint == "10-2000"


def test_a_change_of_rights_is_no_change_of_the_file(root: Path) -> None:
    source = open_local(root)
    source.list_files()
    (root / PATH).chmod(0o400)
    assert source.read(PATH, Span(0, 3)) == b"012"


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "read"])
@pytest.mark.parametrize("data", [b"0123456789", b"longer than before"], ids=["same size", "other"])
def test_a_file_that_changes_while_in_use_is_an_error(
    root: Path, data: bytes, listed: bool
) -> None:
    source = open_local(root)
    if listed:
        source.list_files()
    else:
        source.read(PATH, Span(0, 1))
    (root / PATH).write_bytes(data)
    with pytest.raises(SourceError, match=r"file-000\.parquet: changed while in use"):
        source.read(PATH, Span(0, 3))


def test_a_file_replaced_by_another_is_noticed_in_a_copy(root: Path) -> None:
    source = open_local(root)
    source.list_files()
    copy = pickle.loads(pickle.dumps(source))
    (root / "new").write_bytes(b"9876543210")
    (root / "new").rename(root / PATH)
    with pytest.raises(SourceError, match="changed while in use"):
        copy.read(PATH, Span(0, 3))


def test_a_file_truncated_while_in_use_is_a_change_not_a_short_read(root: Path) -> None:
    source = open_local(root)
    source.list_files()
    (root / PATH).write_bytes(b"01")
    with pytest.raises(SourceError, match="10 bytes listed, 2 found"):
        source.read(PATH, Span(0, 10))


def test_links_to_files_and_folders_elsewhere_are_followed(root: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "file-000.mp4").write_bytes(b"moov")
    (root / "videos").symlink_to(store)
    source = open_local(root)
    assert set(source.list_files()) == {PATH, "videos/file-000.mp4"}
    assert source.read("videos/file-000.mp4", Span(0, 4)) == b"moov"


def test_a_link_to_a_folder_above_ends(root: Path) -> None:
    (root / "data" / "again").symlink_to(root)
    assert set(open_local(root).list_files()) == {PATH}


def test_a_link_to_itself_is_named(root: Path) -> None:
    link = root / "videos" / "top"
    link.parent.mkdir()
    link.symlink_to(link)
    with pytest.raises(SourceError, match=r"^videos/top: cannot be followed") as caught:
        open_local(root).list_files()
    assert caught.value.hint == "remove or mend this link"


def test_hidden_folders_and_broken_links_are_not_listed(root: Path) -> None:
    (root / ".cache").mkdir()
    (root / ".cache" / "file").write_bytes(b"x")
    (root / "dangling").symlink_to(root / "nothing")
    assert set(open_local(root).list_files()) == {PATH}


def test_no_descriptor_outlives_a_read(root: Path) -> None:
    source = open_local(root)
    before = open_descriptors()
    for _ in range(20):
        source.read(PATH, Span(0, 5))
        with pytest.raises(SourceError, match="wanted"):
            source.read(PATH, Span(0, 50))
    assert open_descriptors() == before


def test_a_folder_in_place_of_a_file_is_an_error(root: Path) -> None:
    with pytest.raises(SourceError, match="chunk-000: cannot be read: Is a directory"):
        open_local(root).read("data/chunk-000", Span(0, 1))
