"""The page is one file, holds what was found, and lets nothing of a dataset become markup."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.inspect.page import fetch_thumbnails, make_page, render_page
from lerobot_stream.inspect.page_plan import plan_drawn, plan_thumbnails
from lerobot_stream.inspect.summary import Cost, Summary, inspect_dataset
from lerobot_stream.inspect.thumbnails import Thumbnails
from lerobot_stream.source.local import LocalSource
from tests.inspect.damage import TOP, WRIST, base, stale_files, tables

HOSTILE = "</script><img src=x onerror=alert(1)>"


def look(root: Path, cost: Cost = "probe") -> tuple[LocalSource, Summary]:
    source = LocalSource(root, repo_id="lab/arm")
    return source, inspect_dataset(source, cost=cost, draw=plan_drawn)


def data_of(page: str) -> dict[str, Any]:
    [data] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    said: dict[str, Any] = json.loads(data)
    return said


def test_the_page_asks_for_nothing(tmp_path: Path) -> None:
    source, summary = look(base(tmp_path / "set"))
    page = make_page(summary, source, max_thumbnails=99)
    urls = set(re.findall(r"""(?:src|href|url)\s*[=(:]\s*["']?([a-z]+:[^"'\s>)]*)""", page))
    assert urls <= {"data:,", "data:image/jpeg;base64,${jpeg}"}
    assert "default-src 'none'" in page
    assert "http://www.w3.org/2000/svg" in page  # a name, not an address
    assert page.count("http") == page.count("http-equiv") + page.count("http://www.w3.org")


def test_every_episode_and_finding_is_there(tmp_path: Path) -> None:
    source, summary = look(stale_files(tmp_path / "set", 2))
    said = data_of(render_page(summary, fetch_thumbnails(summary, source, 99)))
    assert said["episodes"]["index"] == [0, 1, 2, 3]
    assert said["episodes"]["severity"] == ["", "", "error", ""]
    assert said["groups"][0]["summary"].startswith("rows are in another file")
    assert said["groups"][0]["episodes"] == [2]
    assert set(said["thumbnails"]) == {"0", "1", "2", "3"}
    assert set(said["sketches"]) == {"action", "observation.state"}


def test_a_line_goes_from_the_lowest_to_the_highest(tmp_path: Path) -> None:
    _, summary = look(tables(tmp_path, lengths=[3, 2]))
    lines = data_of(render_page(summary, []))["sketches"]["action"]["lines"]
    assert lines["0"].split(",")[0][0] == "0"
    assert lines["1"].split(",")[0][-1] == "Z"
    assert [len(line) for line in lines["0"].split(",")] == [3, 3]


def test_texts_of_the_dataset_stay_texts(tmp_path: Path) -> None:
    tables(tmp_path, tasks=[HOSTILE, "\u2028"])
    source = LocalSource(tmp_path, repo_id=HOSTILE)
    page = render_page(inspect_dataset(source), [])
    assert HOSTILE not in page
    assert data_of(page)["episodes"]["tasks"] == [HOSTILE, "\u2028"]


def test_metadata_alone_make_a_page_without_pictures(tmp_path: Path) -> None:
    source, summary = look(base(tmp_path), "metadata")
    assert fetch_thumbnails(summary, source, 99) == []
    said = data_of(render_page(summary, []))
    assert (said["thumbnails"], said["sketches"], said["drift"]) == ({}, {}, None)


def test_pictures_are_few_where_few_are_wanted(tmp_path: Path) -> None:
    source, summary = look(stale_files(tmp_path / "set", 2))
    cells = [(one.number, one.video_key) for one in fetch_thumbnails(summary, source, 7)]
    assert cells == [(2, TOP), (2, WRIST)]  # the episode with an error
    assert fetch_thumbnails(summary, source, 0) == []


def test_what_cannot_be_decoded_says_why(tmp_path: Path) -> None:
    _, summary = look(base(tmp_path))
    page = render_page(summary, [Thumbnails(1, TOP, (0, 1, 2), (), "no picture")])
    assert data_of(page)["thumbnails"]["1"][TOP]["fault"] == "no picture"


@given(st.sets(st.integers(0, 200)), st.integers(1, 9), st.integers(0, 100))
def test_thumbnails_stay_within_their_number(readable: set[int], pictures: int, most: int) -> None:
    flagged = {number for number in readable if number % 3 == 0}
    chosen = plan_thumbnails(sorted(readable), flagged, pictures=pictures, most=most)
    assert chosen == sorted(set(chosen))
    assert set(chosen) <= readable
    assert pictures * len(chosen) <= most
    if pictures * len(readable) <= most:
        assert set(chosen) == readable
    if set(chosen) - flagged:
        assert flagged <= set(chosen)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_any_number_of_episodes_makes_a_page(tmp_path: Path, count: int) -> None:
    _, summary = look(tables(tmp_path, lengths=[3] * count))
    assert len(data_of(render_page(summary, []))["episodes"]["index"]) == count
