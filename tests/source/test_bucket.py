from __future__ import annotations

import pytest

from lerobot_stream.errors import AccessError, MissingFileError, SourceError
from lerobot_stream.source.bucket import BucketSource, open_bucket
from lerobot_stream.source.open import open_source
from lerobot_stream.span import Span
from tests.hub import Hub, use_hub

BUCKET = "robots/shelf"
VIDEO = "videos/top cam/file-000.mp4"
FILES = {VIDEO: b"moov" * 1000, "meta/info.json": b"{}"}


@pytest.fixture(params=[True, False], ids=["signed", "direct"])
def redirects(hub: Hub, request: pytest.FixtureRequest) -> bool:
    hub.world.redirect_buckets = request.param
    return bool(request.param)


def test_each_opening_lists_anew_and_hashes_are_the_fingerprints(hub: Hub) -> None:
    hub.world.page_size = 1
    hub.add_bucket(BUCKET, FILES)
    before = open_bucket(BUCKET).list_files()
    stored = hub.world.buckets[BUCKET].files[VIDEO]
    assert before[VIDEO].size == 4000
    assert before[VIDEO].fingerprint == stored.xet_hash
    hub.put(BUCKET, {VIDEO: b"MOOV" * 1000})
    after = open_bucket(BUCKET).list_files()
    assert after[VIDEO].size == before[VIDEO].size
    assert after[VIDEO].fingerprint != before[VIDEO].fingerprint
    assert after["meta/info.json"] == before["meta/info.json"]


@pytest.mark.parametrize(("revision", "expected"), [(None, "v3.0"), ("friday", "friday")])
def test_the_identity_has_the_given_revision_and_no_commit(
    hub: Hub, revision: str | None, expected: str
) -> None:
    identity = open_bucket(BUCKET, revision=revision).identity
    assert (identity.revision, identity.data_root) == (expected, f"hf://buckets/{BUCKET}")
    assert hub.requests() == []


@pytest.mark.usefixtures("redirects")
def test_ranges_are_read_without_asking_again_where_a_file_is(hub: Hub) -> None:
    hub.add_bucket(BUCKET, FILES)
    source = open_bucket(BUCKET)
    for start in range(4):
        assert source.read(VIDEO, Span(start, start + 4)) == FILES[VIDEO][start : start + 4]
    assert len(hub.requests("*/resolve/*", method="HEAD")) == 1
    assert source.count.requests == 4


@pytest.mark.usefixtures("redirects")
@pytest.mark.parametrize("content", [b"MOOV" * 1000, b"short"], ids=["same size", "other size"])
def test_a_file_replaced_before_its_first_read_is_an_error(hub: Hub, content: bytes) -> None:
    hub.add_bucket(BUCKET, FILES)
    source = open_bucket(BUCKET)
    source.list_files()
    hub.put(BUCKET, {VIDEO: content})
    with pytest.raises(SourceError, match=r"top cam/file-000\.mp4: changed while in use"):
        source.read(VIDEO, Span(0, 4))


def test_a_file_replaced_between_reads_is_an_error_or_still_the_old_one(
    hub: Hub, redirects: bool
) -> None:
    hub.add_bucket(BUCKET, FILES)
    source = open_bucket(BUCKET)
    assert source.read(VIDEO, Span(0, 4)) == b"moov"
    hub.put(BUCKET, {VIDEO: b"MOOV" * 1000})
    if redirects:  # a signed address names the content itself
        assert source.read(VIDEO, Span(0, 4)) == b"moov"
        hub.expire_addresses()
    with pytest.raises(SourceError, match="changed while in use"):
        source.read(VIDEO, Span(0, 4))
    assert {e.headers.get("if-match") for e in hub.requests(origin="blobs")} <= {None}


def test_a_file_deleted_after_the_listing_is_missing(hub: Hub) -> None:
    hub.add_bucket(BUCKET, FILES)
    source = open_bucket(BUCKET)
    source.list_files()
    del hub.world.buckets[BUCKET].files[VIDEO]
    with pytest.raises(MissingFileError, match=f"not found in bucket {BUCKET}"):
        source.read(VIDEO, Span(0, 4))


def test_a_bucket_that_is_not_there_is_named(hub: Hub) -> None:
    with pytest.raises(MissingFileError, match="no bucket robots/none on 127"):
        open_bucket("robots/none").list_files()


def test_a_private_bucket_says_how_to_log_in(hub: Hub) -> None:
    hub.add_bucket(BUCKET, FILES, private=True)
    with use_hub(hub, token=None), pytest.raises(AccessError) as caught:
        open_bucket(BUCKET).list_files()
    assert "hf auth login" in str(caught.value.hint)


def test_no_token_goes_along_a_redirect(hub: Hub) -> None:
    hub.add_bucket(BUCKET, FILES, private=True)
    open_bucket(BUCKET).read(VIDEO, Span(0, 4))
    assert [entry.authorized for entry in hub.requests(origin="blobs")] == [False]


def test_a_bucket_is_never_looked_for_among_datasets(hub: Hub) -> None:
    hub.add_bucket(BUCKET, FILES)
    by_type = open_source(BUCKET, repo_type="bucket")
    by_root = open_source(BUCKET, root=f"hf://buckets/{BUCKET}")
    assert isinstance(by_type, BucketSource)
    assert by_type.identity == by_root.identity
    assert by_type.list_files() == by_root.list_files()
    assert all("/datasets/" not in entry.path for entry in hub.requests())
