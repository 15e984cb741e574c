"""Published files are looked for with one request, and written by nobody but who publishes."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from lerobot_stream.errors import SourceError
from lerobot_stream.source import published
from lerobot_stream.source.base import Source
from lerobot_stream.source.bucket import open_bucket
from lerobot_stream.source.hub import open_hub
from lerobot_stream.source.local import LocalSource
from lerobot_stream.source.published import BRANCH, FOLDER, fetch_published, find_published
from tests.hub import Hub, WithHeaders

REPO = "robots/arm"
NAME = "mp4-v3-x.npz"
PATH = f"{FOLDER}/{NAME}"
CONTENT = bytes(range(256)) * 40
PACKAGE = Path(__file__).parents[2] / "lerobot_stream"


def fetched(source: Source) -> bytes:
    found = find_published(source, NAME)
    assert found is not None
    stream = io.BytesIO()
    fetch_published(found, stream)
    return stream.getvalue()


@pytest.fixture
def commit(hub: Hub) -> str:
    return hub.add_dataset(REPO, {"meta/info.json": b"{}"})


@pytest.mark.parametrize("path", [PATH, f"{FOLDER}/{NAME}.txt"], ids=["lfs", "plain"])
def test_a_file_is_found_on_the_branch_and_read_in_pieces(
    hub: Hub, commit: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published, "_PIECE_BYTES", 4000)
    hub.commit(REPO, {path: CONTENT}, branch=BRANCH)
    source = open_hub(REPO, revision=commit)
    found = find_published(source, Path(path).name)
    assert found is not None
    assert (found.path, found.size) == (path, len(CONTENT))
    stream = io.BytesIO()
    fetch_published(found, stream)
    assert stream.getvalue() == CONTENT
    assert [e.range for e in hub.requests() if e.range] == [
        "bytes=0-3999",
        "bytes=4000-7999",
        "bytes=8000-10239",
    ]


def test_a_file_is_read_as_it_was_found(hub: Hub, commit: str) -> None:
    hub.commit(REPO, {PATH: CONTENT}, branch=BRANCH)
    found = find_published(open_hub(REPO, revision=commit), NAME)
    hub.commit(REPO, {PATH: b"newer"}, branch=BRANCH)
    assert found is not None
    stream = io.BytesIO()
    fetch_published(found, stream)
    assert stream.getvalue() == CONTENT


def test_a_bucket_holds_its_own(hub: Hub) -> None:
    hub.add_bucket(REPO, {PATH: CONTENT})
    assert fetched(open_bucket(REPO)) == CONTENT
    assert find_published(open_bucket(REPO), "other.npz") is None


def test_where_there_is_none_it_is_none(hub: Hub, commit: str) -> None:
    source = open_hub(REPO, revision=commit)
    assert find_published(source, NAME) is None
    hub.commit(REPO, {f"{FOLDER}/other.npz": CONTENT}, branch=BRANCH)
    assert find_published(source, NAME) is None


def test_a_folder_has_no_place_for_any(hub: Hub, tmp_path: Path) -> None:
    assert find_published(LocalSource(tmp_path, repo_id=REPO), NAME) is None
    assert hub.requests() == []


@pytest.mark.parametrize("header", ["X-Repo-Commit", "X-Linked-Size"])
def test_an_answer_that_says_too_little_is_an_error(hub: Hub, commit: str, header: str) -> None:
    hub.commit(REPO, {PATH: CONTENT}, branch=BRANCH)
    hub.fail(WithHeaders({header: ""}), f"*/{BRANCH}/*")
    with pytest.raises(SourceError, match="the Hub says commit"):
        find_published(open_hub(REPO, revision=commit), NAME)


def importers(module: str) -> set[str]:
    return {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if f"from {module} import" in path.read_text()
    }


def test_only_the_two_commands_that_publish_can_write() -> None:
    assert importers("lerobot_stream.source.publishing") == {"sidecar/publish.py"}
    assert importers("lerobot_stream.sidecar.publish") == {
        "cli/build_sidecar.py",
        "cli/publish_sidecar.py",
    }
