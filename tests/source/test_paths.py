from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.source.paths import leads_outside

names = st.text(st.characters(codec="utf-8", exclude_characters="/\\\0:"), min_size=1).filter(
    lambda name: name != ".."
)


@given(st.lists(names, min_size=1, max_size=5))
def test_plain_paths_stay_inside(parts: list[str]) -> None:
    assert not leads_outside("/".join(parts))


@given(st.lists(names, max_size=4), st.lists(names, max_size=4))
def test_a_step_up_anywhere_leads_outside(before: list[str], after: list[str]) -> None:
    assert leads_outside("/".join([*before, "..", *after]))


@pytest.mark.parametrize(
    "path", ["", "/a", "s3://a/b", "file:a", "c:/a", "a\\b", "a\0b", "a/..", "hf+x.y-z:a"]
)
def test_addresses_and_odd_characters_lead_outside(path: str) -> None:
    assert leads_outside(path)


@pytest.mark.parametrize("path", ["a..b/c", "...", "a/b:c", "videos/observation.images.top/x"])
def test_dots_and_colons_inside_names_do_not(path: str) -> None:
    assert not leads_outside(path)
