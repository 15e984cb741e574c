from __future__ import annotations

import pytest

from lerobot_stream.source.root import (
    HubRoot,
    is_commit,
    parse_hub_root,
    shown,
    without_credentials,
)

COMMIT = "0123456789abcdef" * 2 + "01234567"


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        ("hf://datasets/robots/arm", HubRoot("dataset", "robots/arm")),
        (f"hf://datasets/robots/arm@{COMMIT}", HubRoot("dataset", "robots/arm", COMMIT)),
        ("hf://datasets/robots/arm@refs/pr/1", HubRoot("dataset", "robots/arm", "refs/pr/1")),
        ("hf://buckets/robots/shelf/", HubRoot("bucket", "robots/shelf")),
    ],
)
def test_an_address_on_the_hub_is_taken_apart(root: str, expected: HubRoot) -> None:
    assert parse_hub_root(root) == expected


@pytest.mark.parametrize(
    "root",
    [
        "hf://robots/arm",
        "hf://models/robots/arm",
        "hf://datasets/arm",
        "hf://datasets/robots/arm@",
        "hf://datasets/robots/arm/videos",
        "hf://datasets/robots//arm",
        "hf://buckets/robots",
        "hf://buckets/robots/shelf/sets/one",
    ],
)
def test_what_is_no_root_on_the_hub_is_refused(root: str) -> None:
    with pytest.raises(ValueError, match="hf://"):
        parse_hub_root(root)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("s3://bucket/set/", "s3://bucket/set"),
        ("s3://KEY:SECRET@bucket/set", "s3://bucket/set"),
        ("ftp://me:p%40ss@host:2121/set", "ftp://host:2121/set"),
        ("https://host/set?token=secret#part", "https://host/set"),
        ("abfs://box@me.dfs.core.windows.net/x", "abfs://box@me.dfs.core.windows.net/x"),
        ("abfs://box:key@me.dfs.core.windows.net/x", "abfs://me.dfs.core.windows.net/x"),
        ("simplecache::s3://K:S@bucket/set", "simplecache::s3://bucket/set"),
        ("memory://set", "memory://set"),
    ],
)
def test_no_credentials_are_left_in_an_address(url: str, expected: str) -> None:
    assert without_credentials(url) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("410 Gone for url 'https://h/a?Signature=s'", "410 Gone for url 'https://h/a'"),
        ("s3://K:S@box/a, then http://h:1/b?t=s#f", "s3://box/a, then http://h:1/b"),
        ("s3://box: access is denied", "s3://box: access is denied"),
        ("http://[1:2/a?t=s", "http://…"),
        ("no address: a=b?c", "no address: a=b?c"),
    ],
)
def test_no_credentials_are_left_in_a_message(text: str, expected: str) -> None:
    assert shown(text) == expected


@pytest.mark.parametrize("text", ["main", "v3.0", COMMIT[:39], COMMIT.upper(), COMMIT + "0"])
def test_only_forty_lower_case_hex_digits_are_a_commit(text: str) -> None:
    assert is_commit(COMMIT)
    assert not is_commit(text)
