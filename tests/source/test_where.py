from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.source.where import (
    MARGIN_S,
    Address,
    expiry,
    host,
    lifetime_s,
    next_page,
    origin,
)

SIGNED_AT = 1_767_268_800  # 2026-01-01T12:00:00Z


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"Expires={SIGNED_AT + 600}&Signature=x&Key-Pair-Id=y", 600),
        ("X-Amz-Date=20260101T120000Z&X-Amz-Expires=3600&X-Amz-Signature=x", 3600),
        ("X-Goog-Date=20260101T120000Z&X-Goog-Expires=60", 60),
        ("sig=x&se=2026-01-01T12:10:00Z", 600),
        ("se=2026-01-01T12:10:00", 600),
        ("", None),
        ("Expires=never", None),
        ("X-Amz-Date=20260101T120000Z", None),
        ("X-Amz-Date=yesterday&X-Amz-Expires=3600", None),
    ],
)
def test_a_signed_address_tells_how_long_it_is_good(query: str, expected: float | None) -> None:
    assert lifetime_s(f"https://store.example/a.mp4?{query}", now=SIGNED_AT) == expected


def test_clocks_that_differ_do_not_matter() -> None:
    url = f"https://store.example/a?Expires={SIGNED_AT + 600}"
    headers = {"date": "Thu, 01 Jan 2026 12:00:00 GMT"}
    assert expiry(url, headers, now=5000.0) == 5000.0 + 600 - MARGIN_S


@given(st.integers(1, 10_000))
def test_a_new_address_is_good_for_half_its_life_at_least(seconds: int) -> None:
    url = f"https://store.example/a?Expires={SIGNED_AT + seconds}"
    until = expiry(url, {}, now=float(SIGNED_AT))
    assert until is not None
    assert SIGNED_AT + seconds / 2 <= until < SIGNED_AT + seconds


def test_an_address_without_an_end_is_good_until_it_is_refused() -> None:
    assert Address("https://store.example/a").is_good_at(1e12)
    assert not Address("https://store.example/a", expires_at=10.0).is_good_at(10.0)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://hub.example/a", "https://HUB.example:443/b?c", True),
        ("http://hub.example/a", "http://hub.example:80", True),
        ("https://hub.example", "http://hub.example", False),
        ("https://hub.example", "https://hub.example:8443", False),
        ("https://hub.example", "https://hub.example.evil.example", False),
        ("https://hub.example", "https://hub.example@evil.example/", False),
        ("http://127.0.0.1:80", "http://localhost:80", False),
    ],
)
def test_an_origin_is_scheme_host_and_port(one: str, other: str, same: bool) -> None:
    assert (origin(one) == origin(other)) is same


def test_a_host_is_shown_without_the_signature() -> None:
    assert host("https://store.example/a?Signature=secret") == "store.example"
    assert host("http://127.0.0.1:8000/a") == "127.0.0.1:8000"


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ('<https://hub.example/x?cursor=1>; rel="next"', "https://hub.example/x?cursor=1"),
        ('<https://a/1>; rel="prev", <https://a/3>; rel="next"', "https://a/3"),
        ("<https://a/3>; rel=next", "https://a/3"),
        ('<https://a/1>; rel="prev"', None),
        ("", None),
    ],
)
def test_the_next_page_is_found(link: str, expected: str | None) -> None:
    assert next_page({"link": link}) == expected
