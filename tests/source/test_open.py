from __future__ import annotations

from pathlib import Path

import pytest

from lerobot_stream.errors import MissingFileError, SourceError
from lerobot_stream.source.home import lerobot_home
from lerobot_stream.source.local import LocalSource
from lerobot_stream.source.open import open_source


def make_dataset(folder: Path) -> Path:
    (folder / "meta").mkdir(parents=True)
    (folder / "meta" / "info.json").write_text("{}")
    return folder


def test_a_folder_is_read_in_place(tmp_path: Path) -> None:
    source = open_source("robots/arm", root=str(tmp_path))
    assert isinstance(source, LocalSource)
    assert source.identity.data_root == str(tmp_path.resolve())
    assert source.identity.repo_id == "robots/arm"


def test_a_folder_that_is_not_there_is_never_looked_for_elsewhere(tmp_path: Path) -> None:
    make_dataset(lerobot_home() / "robots/arm")
    with pytest.raises(MissingFileError, match="no such folder"):
        open_source("robots/arm", root=tmp_path / "typo")


def test_without_a_root_the_folder_in_lerobots_home_is_read() -> None:
    folder = make_dataset(lerobot_home() / "robots/arm")
    assert open_source("robots/arm").identity.data_root == str(folder.resolve())


def test_a_revision_is_not_taken_from_a_folder_that_cannot_say_its_own() -> None:
    make_dataset(lerobot_home() / "robots/arm")
    with pytest.raises(SourceError):
        open_source("robots/arm", revision="main")


def test_an_empty_folder_in_lerobots_home_is_no_dataset() -> None:
    (lerobot_home() / "robots/arm").mkdir(parents=True)
    with pytest.raises(SourceError, match="robots/arm"):
        open_source("robots/arm")


@pytest.mark.parametrize("repo_id", ["", "../arm", "/arm", "a/../../arm", "hf://datasets/a/b"])
def test_a_name_that_leads_elsewhere_is_refused(repo_id: str) -> None:
    with pytest.raises(ValueError, match="is not a dataset's name"):
        open_source(repo_id)


def test_an_unknown_type_of_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="repo_type 'model' is none of dataset, bucket"):
        open_source("robots/arm", root=tmp_path, repo_type="model")
