"""Each fault of a server ends in a try that succeeds or in one clear error."""

from __future__ import annotations

import pickle
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest
from huggingface_hub import close_session

from lerobot_stream.errors import AccessError, MissingFileError, SourceError
from lerobot_stream.source.bucket import open_bucket
from lerobot_stream.source.hub import open_hub
from lerobot_stream.source.patience import Clock, Patience
from lerobot_stream.source.remote import RemoteSource
from lerobot_stream.span import Span
from tests.hub import (
    TOKEN,
    Drop,
    Fault,
    Gzip,
    Hub,
    IgnoreRange,
    Moved,
    ShortBody,
    Stall,
    Status,
    WithHeaders,
    WrongRange,
    use_hub,
)

REPO = "robots/arm"
VIDEO = "videos/top/file-000.mp4"
DATA = bytes(range(256)) * 4000
FILES = {VIDEO: DATA, "meta/info.json": b"{}"}
SPAN = Span(1000, 200_000)


@dataclass
class Waits:
    """A clock that notes waits instead of waiting."""

    seconds: list[float] = field(default_factory=list)
    skipped: float = 0.0

    def clock(self) -> Clock:
        def sleep(seconds: float) -> None:
            self.seconds.append(seconds)
            self.skipped += seconds

        def now() -> float:
            return time.monotonic() + self.skipped

        return Clock(now=now, sleep=sleep, draw=lambda: 0.5)


PATIENCE = Patience(tries=4)

Opener = Callable[[], RemoteSource]


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture(params=["dataset", "bucket", "bucket served by the Hub"])
def source(request: pytest.FixtureRequest, hub: Hub, waits: Waits) -> RemoteSource:
    """A source that has its listing and knows where the video is."""
    source: RemoteSource
    if request.param == "dataset":
        hub.add_dataset(REPO, FILES)
        source = open_hub(REPO, patience=PATIENCE, clock=waits.clock())
    else:
        hub.world.redirect_buckets = request.param == "bucket"
        hub.add_bucket(REPO, FILES)
        source = open_bucket(REPO, patience=PATIENCE, clock=waits.clock())
    assert source.read(VIDEO, Span(0, 4)) == DATA[:4]
    source.count.requests = source.count.lookups = 0
    hub.log.clear()
    return source


def ranged(hub: Hub) -> int:
    return sum(entry.range is not None for entry in hub.requests(f"*/{VIDEO}"))


BUSY = [
    *(Status(code) for code in (408, 425, 429, 500, 502, 503, 504)),
    Drop(),
    Drop(after=0),
    Drop(after=70_000),
]


@pytest.mark.parametrize("fault", BUSY, ids=str)
def test_what_passes_is_tried_again_until_it_succeeds(
    source: RemoteSource, hub: Hub, waits: Waits, fault: Fault
) -> None:
    rule = hub.fail(fault, f"*/{VIDEO}", times=2)
    assert source.read(VIDEO, SPAN) == DATA[SPAN.start : SPAN.stop]
    assert rule.hits == 2
    assert ranged(hub) == source.count.requests == 3
    assert len(waits.seconds) == 2


@pytest.mark.parametrize("fault", BUSY, ids=str)
def test_what_does_not_pass_is_one_error_that_names_the_host(
    source: RemoteSource, hub: Hub, fault: Fault
) -> None:
    hub.fail(fault, f"*/{VIDEO}", times=None)
    with pytest.raises(SourceError, match=rf"{VIDEO}: .* 4 tries") as caught:
        source.read(VIDEO, SPAN)
    assert caught.value.path == VIDEO
    assert type(caught.value) is SourceError
    assert str(hub.world.hub_url.rsplit(":", 1)[1]) in str(caught.value)
    assert ranged(hub) == PATIENCE.tries


@pytest.mark.parametrize("after", [-1, 0, 70_000])
def test_a_server_that_falls_silent_is_asked_again(hub: Hub, waits: Waits, after: int) -> None:
    hub.add_dataset(REPO, FILES)
    patience = Patience(tries=3, silence_s=0.2)
    source = open_hub(REPO, patience=patience, clock=waits.clock())
    source.resolve([VIDEO])
    hub.fail(Stall(after=after), f"*/{VIDEO}")
    assert source.read(VIDEO, SPAN) == DATA[SPAN.start : SPAN.stop]
    hub.fail(Stall(after=after), f"*/{VIDEO}", times=None)
    with pytest.raises(SourceError, match=r"failed \(ReadTimeout: .* after 3 tries"):
        source.read(VIDEO, SPAN)


WRONG = [IgnoreRange(), ShortBody(), ShortBody(missing=10**6), Gzip(), WrongRange(), Status(416)]


@pytest.mark.parametrize("fault", WRONG, ids=str)
def test_a_wrong_answer_is_doubted_once(source: RemoteSource, hub: Hub, fault: Fault) -> None:
    hub.fail(fault, f"*/{VIDEO}")
    assert source.read(VIDEO, SPAN) == DATA[SPAN.start : SPAN.stop]
    assert ranged(hub) == 2


@pytest.mark.parametrize("fault", WRONG, ids=str)
def test_a_wrong_answer_given_twice_is_an_error(
    source: RemoteSource, hub: Hub, fault: Fault
) -> None:
    hub.fail(fault, f"*/{VIDEO}", times=None)
    with pytest.raises(SourceError, match=r"sent|416"):
        source.read(VIDEO, SPAN)
    assert ranged(hub) == 2


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (Gzip(), "sent Content-Encoding gzip for bytes 1-4, wanted identity"),
        (WrongRange(), "sent Content-Range 'bytes 2-5/2000', wanted 'bytes 1-4/2000'"),
    ],
    ids=str,
)
def test_a_file_that_the_hub_itself_sends_otherwise_has_not_changed(
    hub: Hub, waits: Waits, fault: Fault, found: str
) -> None:
    name = "meta/info.json"
    hub.add_dataset(REPO, FILES | {name: b"{}" * 1000})
    source = open_hub(REPO, patience=PATIENCE, clock=waits.clock())
    hub.fail(fault, f"*/{name}", times=None)
    with pytest.raises(SourceError, match=rf"^{name}: 127.*{re.escape(found)}$"):
        source.read(name, Span(1, 5))


def test_a_whole_file_sent_for_a_range_is_not_even_received(source: RemoteSource, hub: Hub) -> None:
    hub.fail(IgnoreRange(), f"*/{VIDEO}", times=None)
    with pytest.raises(SourceError, match="sent the whole file for bytes 1000-199999"):
        source.read(VIDEO, SPAN)
    assert source.count.bytes == 4  # of the first read


def test_a_rate_limit_is_never_a_missing_file(source: RemoteSource, hub: Hub) -> None:
    hub.fail(Status(429, error_code="EntryNotFound"), f"*/{VIDEO}", times=None)
    with pytest.raises(SourceError, match="limits the rate of requests: still 429") as caught:
        source.read(VIDEO, SPAN)
    assert not isinstance(caught.value, MissingFileError)
    assert "connections" in str(caught.value.hint)


@pytest.mark.parametrize(("text", "least"), [("7", 7.0), ("100000", 20.0)])
def test_what_the_server_asks_to_wait_is_waited_up_to_a_limit(
    hub: Hub, waits: Waits, text: str, least: float
) -> None:
    hub.add_dataset(REPO, FILES)
    patience = Patience(longest_retry_after_s=20.0)
    source = open_hub(REPO, patience=patience, clock=waits.clock())
    hub.fail(Status(429, retry_after=text), f"*/{VIDEO}", origin="blobs")
    assert source.read(VIDEO, SPAN) == DATA[SPAN.start : SPAN.stop]
    assert [round(wait) for wait in waits.seconds] == [least]


def test_a_call_ends_when_its_time_is_over(hub: Hub, waits: Waits) -> None:
    hub.add_dataset(REPO, FILES)
    patience = Patience(tries=1000, call_s=60.0)
    source = open_hub(REPO, patience=patience, clock=waits.clock())
    hub.fail(Status(503), f"*/{VIDEO}", times=None)
    with pytest.raises(SourceError, match="answered 503 after"):
        source.read(VIDEO, SPAN)
    assert 20 < sum(waits.seconds) <= 60


def test_a_server_that_drips_is_given_up(hub: Hub, waits: Waits) -> None:
    hub.add_dataset(REPO, FILES)
    patience = Patience(tries=2, try_s=0.05, slowest_rate=1e9)
    source = open_hub(REPO, patience=patience, clock=waits.clock())
    source.resolve([VIDEO])
    hub.bandwidth = 100_000
    with pytest.raises(SourceError, match=r"sent only \d+ bytes in time after 2 tries"):
        source.read(VIDEO, SPAN)


def test_a_session_closed_by_others_is_opened_again(source: RemoteSource) -> None:
    close_session()
    assert source.read(VIDEO, SPAN) == DATA[SPAN.start : SPAN.stop]


@pytest.mark.parametrize("status", [401, 403, 404])
def test_an_address_that_is_refused_is_asked_for_again(hub: Hub, waits: Waits, status: int) -> None:
    hub.add_dataset(REPO, FILES)
    source = open_hub(REPO, patience=PATIENCE, clock=waits.clock())
    source.resolve([VIDEO])
    hub.fail(Status(status), origin="blobs")
    assert source.read(VIDEO, SPAN) == DATA[SPAN.start : SPAN.stop]
    assert len(hub.requests(f"*/{VIDEO}", method="HEAD")) == 2
    assert waits.seconds == []


@pytest.mark.parametrize(
    ("status", "kind", "text"),
    [
        (401, AccessError, "refuses the address that the Hub signed, twice"),
        (403, AccessError, "refuses the address that the Hub signed, twice"),
        (404, MissingFileError, "has no such file"),
    ],
)
def test_an_address_refused_twice_names_the_host(
    hub: Hub, waits: Waits, status: int, kind: type[SourceError], text: str
) -> None:
    hub.add_dataset(REPO, FILES)
    source = open_hub(REPO, patience=PATIENCE, clock=waits.clock())
    hub.fail(Status(status), origin="blobs", times=None)
    with pytest.raises(kind, match=rf"localhost:\d+ {text}") as caught:
        source.read(VIDEO, SPAN)
    assert "Signature" not in str(caught.value)
    assert len(hub.requests(f"*/{VIDEO}", method="HEAD")) == 2


def test_addresses_that_expire_at_once_for_many_threads_are_asked_for_once(
    hub: Hub, waits: Waits
) -> None:
    hub.add_dataset(REPO, FILES)
    source = open_hub(REPO, patience=PATIENCE, clock=waits.clock())
    source.read(VIDEO, Span(0, 4))
    hub.expire_addresses()
    hub.log.clear()
    with ThreadPoolExecutor(8) as pool:
        reads = pool.map(lambda i: source.read(VIDEO, Span(i, i + 9)), range(64))
        assert list(reads) == [DATA[i : i + 9] for i in range(64)]
    assert len(hub.requests(f"*/{VIDEO}", method="HEAD")) == 1


def test_an_address_near_its_end_is_not_used(hub: Hub) -> None:
    hub.add_dataset(REPO, FILES)
    wall = [1_000.0]
    source = open_hub(REPO, clock=Clock(wall=lambda: wall[0]))
    source.read(VIDEO, Span(0, 4))
    wall[0] += 3000
    source.read(VIDEO, Span(0, 4))
    assert len(hub.requests(f"*/{VIDEO}", method="HEAD")) == 1
    wall[0] += 590
    source.read(VIDEO, Span(0, 4))
    assert len(hub.requests(f"*/{VIDEO}", method="HEAD")) == 2
    assert {entry.status for entry in hub.requests(origin="blobs")} == {206}


def test_no_token_leaves_the_hub(hub: Hub) -> None:
    hub.add_dataset(REPO, FILES, private=True)
    source = open_hub(REPO, patience=PATIENCE)
    source.read(VIDEO, SPAN)
    with Hub() as other:
        stolen, more = f"{other.url}/stolen", f"{other.url}/more"
        hub.fail(Moved(stolen), f"*/{VIDEO}", method="HEAD", times=None)
        hub.fail(WithHeaders({"Link": f'<{more}>; rel="next"'}), "*/tree/*", times=None)
        hub.expire_addresses()
        with pytest.raises(SourceError):
            source.read(VIDEO, SPAN)
        with pytest.raises(SourceError):
            open_hub(REPO).list_files()
        assert {entry.path for entry in other.requests()} == {"/stolen", "/more"}
        assert not any(entry.authorized for entry in other.requests())
    assert not any(entry.authorized for entry in hub.requests(origin="blobs"))
    assert all(entry.authorized for entry in hub.requests(origin="hub"))


def test_a_redirect_within_the_hub_keeps_the_token(hub: Hub) -> None:
    commit = hub.add_dataset(REPO, FILES, private=True)
    hub.fail(Moved(f"/datasets/{REPO}/resolve/v3.0/{VIDEO}", 307), f"*/{commit}/{VIDEO}")
    assert open_hub(REPO).read(VIDEO, SPAN) == DATA[SPAN.start : SPAN.stop]
    assert [entry.status for entry in hub.requests("*/resolve/*")] == [307, 302]


def test_redirects_without_an_end_are_an_error(hub: Hub) -> None:
    hub.add_dataset(REPO, FILES)
    hub.fail(Moved(f"/datasets/{REPO}/resolve/v3.0/{VIDEO}"), f"*/{VIDEO}", times=None)
    with pytest.raises(SourceError, match="redirects without an end"):
        open_hub(REPO).read(VIDEO, SPAN)


def test_pages_without_an_end_are_an_error(hub: Hub) -> None:
    commit = hub.add_dataset(REPO, FILES)
    again = f"{hub.url}/api/datasets/{REPO}/tree/{commit}?recursive=true"
    hub.fail(WithHeaders({"Link": f'<{again}>; rel="next"'}), "*/tree/*", times=None)
    with pytest.raises(SourceError, match="does not end: 2 pages"):
        open_hub(REPO).list_files()


def test_no_token_is_pickled(hub: Hub) -> None:
    hub.add_dataset(REPO, FILES)
    source = open_hub(REPO)
    source.read(VIDEO, Span(0, 4))
    assert TOKEN.encode() not in pickle.dumps(source)


def test_a_host_that_cannot_be_reached_is_named(waits: Waits) -> None:
    with Hub() as gone, use_hub(gone):
        url = gone.url
        gone.close()
        with pytest.raises(SourceError, match=rf"robots/arm: {url[7:]} failed .* after 4 tries"):
            open_hub(REPO, patience=PATIENCE, clock=waits.clock())


def test_every_wait_is_told(hub: Hub, waits: Waits, caplog: pytest.LogCaptureFixture) -> None:
    hub.add_dataset(REPO, FILES)
    source = open_hub(REPO, patience=PATIENCE, clock=waits.clock())
    hub.fail(Status(503), f"*/{VIDEO}", origin="blobs", times=2)
    source.read(VIDEO, SPAN)
    told = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(told) == len(waits.seconds) == 2
    where = rf"{VIDEO}: localhost:\d+ answered 503"
    for number, (record, wait) in enumerate(zip(told, waits.seconds, strict=True), start=1):
        wanted = rf"{where} \(try {number} of 4\); again in {wait:.1f} s, given up .* in \d+ s"
        assert re.fullmatch(wanted, record.message)


def test_a_host_that_cannot_be_reached_is_told_at_once(
    waits: Waits, caplog: pytest.LogCaptureFixture
) -> None:
    with Hub() as gone, use_hub(gone):
        url = gone.url
        gone.close()
        with pytest.raises(SourceError):
            open_hub(REPO, patience=PATIENCE, clock=waits.clock())
    told = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert len(told) == PATIENCE.tries - 1
    assert told[0].startswith(f"robots/arm: {url[7:]} failed (ConnectError: ")
    assert told[0].endswith("(try 1 of 4); again in 0.4 s, given up at the latest in 600 s")
