from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lerobot_stream.errors import AccessError, MissingFileError, SourceError
from lerobot_stream.source.hub import open_hub
from lerobot_stream.source.open import open_source
from lerobot_stream.source.patience import Clock
from lerobot_stream.source.remote import RemoteSource
from lerobot_stream.span import Span
from tests.hub import Hub, Status, WithHeaders, use_hub
from tests.hub.exchange import Reply

REPO = "robots/arm"
VIDEO = "videos/top/file-000.mp4"
FILES = {VIDEO: b"moov" * 1000, "meta/info.json": b"{}", ".gitattributes": b"*.mp4 lfs"}


def test_the_tag_is_read_and_its_commit_is_the_identity(
    hub: Hub, caplog: pytest.LogCaptureFixture
) -> None:
    tagged = hub.add_dataset(REPO, FILES)
    main = hub.commit(REPO, {VIDEO: b"newer"})
    with caplog.at_level(logging.INFO, "lerobot_stream"):
        source = open_hub(REPO)
    assert source.identity.revision == tagged
    assert source.identity.data_root == f"hf://datasets/{REPO}@{tagged}"
    assert source.read(VIDEO, Span(0, 4)) == b"moov"
    assert caplog.messages[0] == f"{REPO}: v3.0 → {tagged} (main is at {main})"


def test_a_dataset_without_the_tag_is_read_from_main(
    hub: Hub, caplog: pytest.LogCaptureFixture
) -> None:
    commit = hub.add_dataset(REPO, FILES, tags=["v2.1"])
    with caplog.at_level(logging.INFO, "lerobot_stream"):
        assert open_hub(REPO).identity.revision == commit
    assert caplog.messages == [f"{REPO}: no tag v3.0, reading main → {commit}"]
    assert caplog.records[0].levelname == "INFO"


@pytest.mark.parametrize("revision", ["main", "v3.0", "lab/day 2", "refs/pr/1", "short"])
def test_any_revision_is_resolved_once(
    hub: Hub, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    commit = hub.add_dataset(REPO, FILES)
    hub.world.repositories[REPO].branches |= {"lab/day 2": commit, "refs/pr/1": commit}
    revision = commit[:9] if revision == "short" else revision
    with caplog.at_level(logging.INFO, "lerobot_stream"):
        source = open_hub(REPO, revision=revision)
    hub.commit(REPO, {VIDEO: b"newer"})
    assert source.read(VIDEO, Span(0, 4)) == b"moov"
    assert source.identity.revision == commit
    assert caplog.messages[0] == f"{REPO}: {revision} → {commit}"
    assert len(hub.requests("*/revision/*")) == 1


def test_a_commit_needs_no_look_up_and_equals_its_tag(hub: Hub) -> None:
    commit = hub.add_dataset(REPO, FILES)
    source = open_hub(REPO, revision=commit)
    assert hub.requests() == []
    assert source.identity == open_hub(REPO, revision="v3.0").identity


def test_files_come_from_one_listing_without_fingerprints(hub: Hub) -> None:
    hub.world.page_size = 2
    hub.add_dataset(REPO, FILES | {f"data/file-{i:03d}.parquet": b"x" * i for i in range(9)})
    listing = open_hub(REPO).list_files()
    assert listing[VIDEO].size == 4000
    assert len(listing) == 2 + 9
    assert {info.fingerprint for info in listing.values()} == {""}
    pages = hub.requests("*/tree/*")
    assert [page.query["recursive"] for page in pages] == ["true"] * len(pages)
    assert len(pages) == 8  # 12 files in 4 folders, two entries a page


def test_a_file_costs_one_look_up_and_then_one_request_a_read(hub: Hub) -> None:
    hub.add_dataset(REPO, FILES)
    source = open_hub(REPO)
    source.list_files()
    hub.log.clear()
    for start in range(5):
        source.read(VIDEO, Span(start, start + 8))
    seen = [(entry.method, entry.origin, entry.range) for entry in hub.requests()]
    assert seen == [
        ("HEAD", "hub", None),
        *(("GET", "blobs", f"bytes={start}-{start + 7}") for start in range(5)),
    ]
    encodings = {entry.headers["accept-encoding"] for entry in hub.requests()}
    assert encodings == {"identity"}


def test_nothing_is_asked_for_an_empty_span_or_one_past_the_end(hub: Hub) -> None:
    hub.add_dataset(REPO, FILES)
    source = open_hub(REPO)
    source.list_files()
    hub.log.clear()
    assert source.read(VIDEO, Span(4000, 4000)) == b""
    with pytest.raises(SourceError, match="wanted 1 bytes at 4000, got 0"):
        source.read(VIDEO, Span(4000, 4001))
    assert hub.requests() == []


def test_a_large_span_is_fetched_in_parts_at_once(hub: Hub) -> None:
    data = bytes(range(256)) * (5 << 12)
    hub.add_dataset(REPO, {VIDEO: data})
    hub.latency_s = 0.05
    source = open_hub(REPO, subranges=4)
    assert source.read(VIDEO, Span(1, len(data))) == data[1:]
    assert source.read(VIDEO, Span(0, 1000)) == data[:1000]
    source.close()
    assert len(hub.requests(origin="blobs")) == source.count.requests == 5
    assert hub.gauge.most == 4


@pytest.mark.parametrize("connections", [1, 3])
def test_connections_are_limited_and_used_again(hub: Hub, connections: int) -> None:
    hub.add_dataset(REPO, {f"videos/{i}.mp4": b"moov" * 100 for i in range(20)})
    hub.latency_s = 0.01
    source = open_hub(REPO, connections=connections)
    source.resolve(source.list_files())
    assert hub.gauge.most == connections
    assert hub.connections <= connections
    source.close()


@pytest.mark.parametrize("status", [429, 500, 503])
def test_look_ups_have_patience_too(hub: Hub, status: int) -> None:
    hub.add_dataset(REPO, FILES)
    rules = [
        hub.fail(Status(status, retry_after="0"), path, times=1)
        for path in ("*/refs", "*/tree/*", "*/resolve/*")
    ]
    waits: list[float] = []
    source = open_hub(REPO, clock=Clock(sleep=waits.append))
    assert source.read(VIDEO, Span(0, 4)) == b"moov"
    assert [rule.hits for rule in rules] == [1, 1, 1]
    assert len(waits) == 3


def test_a_dataset_that_is_not_there_is_named(hub: Hub) -> None:
    with pytest.raises(MissingFileError, match="robots/none: no dataset robots/none on 127"):
        open_hub("robots/none")


def test_a_revision_that_is_not_there_is_named(hub: Hub) -> None:
    hub.add_dataset(REPO, FILES)
    with pytest.raises(MissingFileError, match="Invalid rev id: v9"):
        open_hub(REPO, revision="v9")
    with pytest.raises(MissingFileError, match="Invalid rev id: 0000"):
        open_hub(REPO, revision="0" * 40).list_files()


def test_an_empty_repository_names_what_was_looked_for(hub: Hub) -> None:
    hub.add_dataset(REPO, FILES, tags=["old"])
    hub.world.repositories[REPO].branches.clear()
    with pytest.raises(SourceError, match=r"neither a tag v3\.0 nor a branch main") as caught:
        open_hub(REPO)
    assert caught.value.hint == "name a revision: old"


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (None, r"does not exist on 127\.0\.0\.1:\d+, or needs a token \(401\)"),
        ("hf_wrong", r"does not know the token it was sent \(401\)"),
    ],
)
def test_a_private_dataset_says_how_to_log_in(hub: Hub, token: str | None, text: str) -> None:
    hub.add_dataset(REPO, FILES, private=True)
    with use_hub(hub, token=token), pytest.raises(AccessError, match=text) as caught:
        open_hub(REPO)
    assert "hf auth login" in str(caught.value.hint)


def test_a_forbidden_dataset_names_its_page(hub: Hub) -> None:
    hub.add_dataset(REPO, FILES)
    hub.fail(Status(403), "*/refs", times=None)
    with pytest.raises(AccessError, match=r"does not let this token read .* \(403\)") as caught:
        open_hub(REPO)
    assert f"{hub.url}/datasets/{REPO}" in str(caught.value.hint)


@pytest.mark.parametrize("token", [None, "hf_loopback"])
def test_a_gated_dataset_says_where_to_accept_its_terms(hub: Hub, token: str | None) -> None:
    hub.add_dataset(REPO, FILES, gated=True)
    with use_hub(hub, token=token), pytest.raises(AccessError, match="is gated") as caught:
        open_hub(REPO).read(VIDEO, Span(0, 1))
    assert f"accept its terms at {hub.url}/datasets/{REPO}" in str(caught.value.hint)


def test_offline_says_what_is_missing(hub: Hub) -> None:
    commit = hub.add_dataset(REPO, FILES)
    with use_hub(hub, offline=True):
        with pytest.raises(SourceError, match="the commit of revision main must come from"):
            open_hub(REPO, revision="main")
        with pytest.raises(SourceError, match="the list of its files must come from") as caught:
            open_hub(REPO, revision=commit).list_files()
    assert "HF_HUB_OFFLINE" in str(caught.value.hint)
    assert hub.requests() == []


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[1]",
        b'[{"type": "file"}]',
        b'{"error": 1}',
        b'[{"type":"file","path":1,"size":1}]',
    ],
    ids=repr,
)
def test_a_listing_that_makes_no_sense_is_an_error(hub: Hub, body: bytes) -> None:
    hub.add_dataset(REPO, FILES)
    hub.fail(_Says(body), "*/tree/*", times=None)
    with pytest.raises(SourceError, match="the list of its files"):
        open_hub(REPO).list_files()


@pytest.mark.parametrize(
    "body",
    [
        b'{"tags": [{"ref": "refs/tags/v3.0"}], "branches": []}',
        b'{"tags": [{"name": "v3.0"}]}',
        b'{"branches": [{"name": "main", "targetCommit": null}]}',
        b'{"branches": [{"name": "main", "targetCommit": "0123"}]}',
        b'{"branches": ["main"]}',
        b'{"branches": 7}',
        b'{"tags": null}',
    ],
    ids=repr,
)
def test_a_list_of_revisions_that_makes_no_sense_is_an_error(hub: Hub, body: bytes) -> None:
    hub.add_dataset(REPO, FILES)
    hub.fail(_Says(body), "*/refs", times=None)
    with pytest.raises(SourceError, match=rf"^{REPO}: the list of its revisions"):
        open_hub(REPO)


@pytest.mark.parametrize("body", [b"{}", b'{"sha": null}', b'{"sha": 7}', b'{"sha": "0123"}'])
def test_a_revision_without_a_commit_is_an_error(hub: Hub, body: bytes) -> None:
    hub.add_dataset(REPO, FILES)
    hub.fail(_Says(body), "*/revision/*", times=None)
    with pytest.raises(SourceError, match=f"^{REPO}: revision main has no commit"):
        open_hub(REPO, revision="main")


class _Says:
    def __init__(self, body: bytes) -> None:
        self.body = body

    def apply(self, asked: object, reply: object) -> Reply:
        return Reply(200, {"Content-Type": "application/json"}, self.body)


def test_a_file_with_another_size_than_listed_is_an_error(hub: Hub) -> None:
    hub.add_dataset(REPO, FILES)
    hub.fail(WithHeaders({"X-Linked-Size": "5"}), "*/resolve/*")
    with pytest.raises(SourceError, match="it has 5 bytes, 4000 were listed"):
        open_hub(REPO).read(VIDEO, Span(0, 4))


def test_open_source_reads_the_hub(hub: Hub) -> None:
    commit = hub.add_dataset(REPO, FILES)
    by_name = open_source(REPO, connections=2, subranges=2)
    by_address = open_source(REPO, root=f"hf://datasets/{REPO}@{commit}")
    by_both = open_source(REPO, root=f"hf://datasets/{REPO}@v3.0", revision="v3.0")
    assert isinstance(by_name, RemoteSource)
    assert by_name.identity == by_address.identity == by_both.identity


@pytest.mark.parametrize(
    ("root", "options", "text"),
    [
        ("hf://datasets/robots/other", {}, "is not the dataset robots/arm"),
        ("hf://buckets/robots/other", {}, "is not the dataset robots/arm"),
        ("hf://datasets/robots/arm", {"repo_type": "bucket"}, "is not a bucket"),
        ("hf://datasets/robots/arm@a", {"revision": "b"}, "revision b disagree"),
        ("hf://datasets/robots/arm/videos", {}, "leads into a dataset"),
        ("hf://buckets/robots/arm/sets/one", {}, "leads into a bucket"),
        (None, {"connections": 0}, "connections must be at least 1"),
        (None, {"subranges": 0, "revision": "0" * 40}, "subranges must be at least 1"),
    ],
)
def test_what_contradicts_itself_is_refused(
    hub: Hub, root: str | None, options: dict[str, str], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        open_source(REPO, root=root, **options)  # type: ignore[arg-type]
    assert hub.requests() == []


PROGRAM = """
import logging, sys
logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stdout)
from lerobot_stream.errors import StreamError
from lerobot_stream.source.open import open_source
from lerobot_stream.span import Span
try:
    source = open_source("robots/arm")
    print(source.identity.data_root)
    print(source.read("videos/top/file-000.mp4", Span(0, 4)))
except StreamError as error:
    print(f"{error} ({error.hint})")
"""


def run_program(environment: dict[str, str]) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    return [line for line in done.stdout.splitlines() if not line.startswith("http")]


def test_endpoint_and_token_come_from_the_environment(hub: Hub, tmp_path: Path) -> None:
    commit = hub.add_dataset(REPO, FILES, private=True)
    assert run_program(hub.env(tmp_path)) == [
        f"lerobot_stream.source.hub: {REPO}: v3.0 → {commit}",
        f"hf://datasets/{REPO}@{commit}",
        "b'moov'",
    ]


def test_offline_comes_from_the_environment(hub: Hub, tmp_path: Path) -> None:
    (line,) = run_program({**hub.env(tmp_path), "HF_HUB_OFFLINE": "1"})
    assert line.startswith(f"{REPO}: the list of its revisions must come from 127.0.0.1:")
    assert "name the folder where the dataset lies as its root" in line
    assert hub.requests() == []
