from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.source.verdict import Verdict, judge, judge_range
from lerobot_stream.span import Span

SIZE = 1000
SPAN = Span(100, 200)
RIGHT = {"content-range": "bytes 100-199/1000", "content-length": "100"}


def verdict(status: int, headers: dict[str, str], etag: str | None = None) -> Verdict:
    return judge_range(status, headers, span=SPAN, size=SIZE, etag=etag).verdict


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (206, RIGHT, Verdict.USE),
        (206, {"content-range": "bytes 100-199/*"}, Verdict.USE),
        (206, RIGHT | {"content-encoding": "identity"}, Verdict.USE),
        (206, {}, Verdict.DOUBT),
        (206, {"content-range": "bytes 100-198/1000"}, Verdict.DOUBT),
        (206, {"content-range": "bytes 101-200/1000"}, Verdict.DOUBT),
        (206, {"content-range": "bytes 100-199"}, Verdict.DOUBT),
        (206, RIGHT | {"content-length": "99"}, Verdict.DOUBT),
        (206, RIGHT | {"content-encoding": "gzip"}, Verdict.DOUBT),
        (206, {"content-range": "bytes 100-199/999"}, Verdict.CHANGED),
        (200, {"content-length": "1000"}, Verdict.DOUBT),
        (200, {"content-length": "100"}, Verdict.DOUBT),
        (416, {"content-range": "bytes */1000"}, Verdict.DOUBT),
        (416, {"content-range": "bytes */177"}, Verdict.DOUBT),
        (416, {}, Verdict.DOUBT),
        (412, {}, Verdict.CHANGED),
        (302, {"location": "https://else.where/x"}, Verdict.FOLLOW),
        (302, {}, Verdict.REFUSED),
        (304, {"location": "https://else.where/x"}, Verdict.REFUSED),
        (408, {}, Verdict.WAIT),
        (425, {}, Verdict.WAIT),
        (429, {}, Verdict.WAIT),
        (500, {}, Verdict.WAIT),
        (503, {}, Verdict.WAIT),
        (520, {}, Verdict.WAIT),
        (401, {}, Verdict.DENIED),
        (403, {}, Verdict.DENIED),
        (404, {}, Verdict.MISSING),
        (410, {}, Verdict.MISSING),
        (400, {}, Verdict.REFUSED),
        (451, {}, Verdict.REFUSED),
    ],
)
def test_a_reply_to_a_range_is_judged(
    status: int, headers: dict[str, str], expected: Verdict
) -> None:
    assert verdict(status, headers) is expected


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        (
            {"content-encoding": "gzip", "content-range": "bytes 100-199/317"},
            "sent Content-Encoding gzip for bytes 100-199, wanted identity",
        ),
        (
            {"content-range": "bytes 101-200/999"},
            "sent Content-Range 'bytes 101-200/999', wanted 'bytes 100-199/1000'",
        ),
        ({}, "sent Content-Range '', wanted 'bytes 100-199/1000'"),
    ],
    ids=["coded", "shifted", "nothing said"],
)
def test_another_answer_is_said_beside_what_was_wanted(
    headers: dict[str, str], reason: str
) -> None:
    judgement = judge_range(206, headers, span=SPAN, size=SIZE, etag=None)
    assert (judgement.verdict, judgement.reason) == (Verdict.DOUBT, reason)


@given(st.integers(100, 599), st.dictionaries(st.sampled_from(["etag", "link"]), st.text()))
def test_only_206_is_ever_used_for_a_range(status: int, headers: dict[str, str]) -> None:
    used = verdict(status, {**RIGHT, **headers}) is Verdict.USE
    assert used == (status == 206)


@given(st.integers(0, 999), st.integers(0, 999), st.integers(0, 2000))
def test_only_the_range_asked_for_is_used(first: int, last: int, total: int) -> None:
    used = verdict(206, {"content-range": f"bytes {first}-{last}/{total}"}) is Verdict.USE
    assert used == ((first, last, total) == (100, 199, SIZE))


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ('"a"', '"a"', Verdict.USE),
        ('"a"', '"b"', Verdict.CHANGED),
        ('"a"', 'W/"b"', Verdict.USE),
        ('"a"', None, Verdict.USE),
        (None, '"b"', Verdict.USE),
    ],
)
def test_another_entity_tag_means_another_file(
    before: str | None, now: str | None, expected: Verdict
) -> None:
    assert verdict(206, RIGHT | ({} if now is None else {"etag": now}), before) is expected


def test_a_rate_limit_is_never_taken_for_a_missing_file() -> None:
    assert judge(429, {"x-error-code": "EntryNotFound"}).verdict is Verdict.WAIT
