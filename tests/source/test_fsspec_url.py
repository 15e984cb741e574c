from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from lerobot_stream.errors import AccessError, MissingFileError, SourceError
from lerobot_stream.source.fsspec_url import FsspecSource, fingerprint
from lerobot_stream.source.local import LocalSource
from lerobot_stream.source.open import open_source
from lerobot_stream.source.patience import Clock, Patience
from lerobot_stream.span import Span

REPO = "robots/arm"
VIDEO = "videos/top/file-000.mp4"
DATA = b"moov" * 1000


def write(url: str, files: dict[str, bytes]) -> None:
    system = fsspec.filesystem(url.partition("://")[0])
    for path, data in files.items():
        system.pipe_file(f"{url}/{path}", data)


def open_url(url: str, **options: Any) -> FsspecSource:
    return FsspecSource(url, repo_id=REPO, **options)


@pytest.fixture(params=["memory_url", "s3_url"])
def url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(request.param)
    write(url, {VIDEO: DATA, "meta/info.json": b"{}", ".cache/x": b"x"})
    return url


def test_fingerprints_are_equal_from_opening_to_opening(url: str) -> None:
    before, again = open_url(url).list_files(), open_url(url).list_files()
    assert before == again
    assert all(info.fingerprint for info in before.values())


def test_a_file_written_again_gets_another_fingerprint(url: str) -> None:
    before = open_url(url).list_files()
    write(url, {VIDEO: b"MOOV" * 1000})
    after = open_url(url).list_files()
    assert after[VIDEO].size == before[VIDEO].size
    assert after[VIDEO].fingerprint != before[VIDEO].fingerprint
    assert after["meta/info.json"] == before["meta/info.json"]


@pytest.mark.parametrize("content", [b"MOOV" * 1000, b"short"], ids=["same size", "other size"])
@pytest.mark.parametrize("read_before", [True, False])
def test_a_file_written_again_while_in_use_is_an_error(
    url: str, content: bytes, read_before: bool
) -> None:
    source = open_url(url, patience=Patience(tries=2), clock=Clock(sleep=lambda _: None))
    source.list_files()
    if read_before:
        assert source.read(VIDEO, Span(0, 4)) == b"moov"
    write(url, {VIDEO: content})
    with pytest.raises(SourceError, match=r"file-000\.mp4: changed while in use"):
        source.read(VIDEO, Span(0, 4))


def test_a_file_deleted_while_in_use_is_missing(url: str) -> None:
    source = open_url(url)
    source.list_files()
    fsspec.filesystem(url.partition("://")[0]).rm(f"{url}/{VIDEO}")
    with pytest.raises(MissingFileError, match="no such file"):
        source.read(VIDEO, Span(0, 4))


def test_a_copy_in_another_process_does_not_list_again(s3_url: str) -> None:
    write(s3_url, {VIDEO: DATA})
    source = open_url(s3_url)
    source.list_files()
    copy = pickle.loads(pickle.dumps(source))
    assert copy.read(VIDEO, Span(8, 12)) == b"moov"
    assert (copy.count.requests, copy.count.lookups) == (1, 0)


def test_an_address_without_files_is_missing(url: str) -> None:
    with pytest.raises(MissingFileError, match="no files there"):
        open_url(f"{url}-typo").list_files()


def test_a_bucket_that_is_not_there_is_missing(s3_url: str) -> None:
    source = open_url("s3://no-such-bucket-here/set")
    with pytest.raises(MissingFileError) as caught:
        source.list_files()
    assert caught.value.path == "s3://no-such-bucket-here/set"


class Wrong(MemoryFileSystem):  # type: ignore[misc]
    """A file system whose reads or listings fail as told."""

    protocol = "wrong"
    cachable = False
    store: dict[str, Any] = {}  # noqa: RUF012 - as its base has it
    pseudo_dirs = [""]  # noqa: RUF012 - as its base has it
    faults: list[Exception] = []  # noqa: RUF012 - shared by all instances
    on_listing = False
    marks = True

    def cat_file(self, *args: Any, **options: Any) -> Any:
        if self.faults and not self.on_listing:
            raise self.faults.pop(0)
        return super().cat_file(*args, **options)

    def find(self, *args: Any, **options: Any) -> Any:
        if self.faults and self.on_listing:
            raise self.faults.pop(0)
        found = super().find(*args, **options)
        return found if self.marks else {n: _without_marks(d) for n, d in found.items()}

    def info(self, *args: Any, **options: Any) -> Any:
        found = super().info(*args, **options)
        return found if self.marks else _without_marks(found)


def _without_marks(details: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in details.items() if name != "created"}


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    fsspec.register_implementation("wrong", Wrong, clobber=True)
    monkeypatch.setattr(Wrong, "store", {})
    write("wrong://set", {VIDEO: DATA})

    def make(*faults: Exception, on_listing: bool = False) -> None:
        monkeypatch.setattr(Wrong, "faults", list(faults))
        monkeypatch.setattr(Wrong, "on_listing", on_listing)

    return make


@pytest.mark.parametrize("on_listing", [True, False])
def test_faults_that_pass_are_waited_for(wrong: Callable[..., None], on_listing: bool) -> None:
    waits: list[float] = []
    wrong(TimeoutError("slow"), ConnectionError("reset"), RuntimeError("x"), on_listing=on_listing)
    source = open_url("wrong://set", clock=Clock(sleep=waits.append))
    assert source.read(VIDEO, Span(0, 4)) == b"moov"
    assert len(waits) == 3


def test_faults_that_stay_are_one_error(wrong: Callable[..., None]) -> None:
    wrong(*(TimeoutError("slow") for _ in range(9)))
    source = open_url("wrong://set", patience=Patience(tries=3), clock=Clock(sleep=lambda _: None))
    text = "4 bytes cannot be read after 3 tries: TimeoutError: slow"
    with pytest.raises(SourceError, match=text):
        source.read(VIDEO, Span(0, 4))


def test_a_file_system_that_hangs_is_left_behind(
    wrong: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong()
    source = open_url(
        "wrong://set",
        patience=Patience(tries=2, try_s=0.3),
        clock=Clock(sleep=lambda _: None),
    )
    source.list_files()
    end = threading.Event()
    monkeypatch.setattr(Wrong, "cat_file", lambda *_, **__: end.wait())
    with pytest.raises(SourceError, match="cannot be read after 2 tries: TimeoutError"):
        source.read(VIDEO, Span(0, 4))
    end.set()


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (PermissionError("no"), AccessError),
        (type("NoCredentialsError", (Exception,), {})("none found"), AccessError),
        (FileNotFoundError("gone"), MissingFileError),
        (NotImplementedError("ranges"), SourceError),
    ],
    ids=repr,
)
def test_faults_that_will_not_pass_are_not_tried_again(
    wrong: Callable[..., None], fault: Exception, kind: type[SourceError]
) -> None:
    wrong(fault)
    with pytest.raises(SourceError) as caught:
        open_url("wrong://set").read(VIDEO, Span(0, 4))
    assert type(caught.value) is kind
    assert caught.value.path == VIDEO


def test_files_that_nothing_marks_are_new_at_each_opening(
    wrong: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong()
    monkeypatch.setattr(Wrong, "marks", False)
    before, after = open_url("wrong://set"), open_url("wrong://set")
    assert before.list_files()[VIDEO].fingerprint != after.list_files()[VIDEO].fingerprint
    assert before.read(VIDEO, Span(0, 4)) == b"moov"


def test_an_address_that_nothing_reads_says_what_to_install() -> None:
    with pytest.raises(SourceError, match="nothing here reads gopher://") as caught:
        open_url("gopher://set").list_files()
    assert "an address of hf:// or of what fsspec reads" in str(caught.value.hint)
    fsspec.register_implementation("absent", "no_such.System", errtxt="Install no_such")
    with pytest.raises(SourceError, match="nothing here reads absent://") as caught:
        open_url("absent://bucket/set").list_files()
    assert "Install no_such" in str(caught.value.hint)


def test_credentials_are_in_no_text(wrong: Callable[..., None]) -> None:
    wrong(OSError("wrong://me:secret@set failed"), on_listing=True)
    source = open_url("wrong://me:secret@set", patience=Patience(tries=1))
    with pytest.raises(SourceError) as caught:
        source.list_files()
    assert source.identity.data_root == "wrong://set"
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ({"ETag": '"abc"', "LastModified": 1}, "abc"),
        ({"etag": "abc", "mtime": 1}, "abc"),
        ({"VersionId": "null", "mtime": 5.5}, "5.5"),
        ({"LastModified": datetime(2026, 1, 1, tzinfo=UTC)}, "1767225600.0"),
        ({"generation": 17}, "17"),
        ({"size": 3, "name": "x"}, ""),
    ],
)
def test_a_fingerprint_is_what_changes_with_the_content(
    details: dict[str, Any], expected: str
) -> None:
    assert fingerprint(details) == expected


def test_open_source_reads_any_address(url: str, tmp_path: Any) -> None:
    source = open_source(REPO, root=f"{url}/", revision="friday")
    assert isinstance(source, FsspecSource)
    assert (source.identity.data_root, source.identity.revision) == (url, "friday")
    assert isinstance(open_source(REPO, root=f"file://{tmp_path}"), LocalSource)
