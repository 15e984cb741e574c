"""What a person can do with the page, in a real browser."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from lerobot_stream.inspect.page import make_page
from lerobot_stream.inspect.page_plan import plan_drawn
from lerobot_stream.inspect.summary import inspect_dataset
from lerobot_stream.source.local import LocalSource
from tests.inspect.browser import (
    complaints_of,
    needs_chromium,
    open_browser,
    prefer,
    requests_of,
    show,
)
from tests.inspect.damage import TOP, edited, film, point
from tests.lerobot import Camera, edit_episodes, write_dataset

pytestmark = needs_chromium
LENGTHS = (5, 3, 4, 6, 8, 2)


def make(root: Path, page: Path, *, max_thumbnails: int = 900) -> Path:
    source = LocalSource(root, repo_id="lab/arm")
    summary = inspect_dataset(source, draw=plan_drawn)
    page.write_text(make_page(summary, source, max_thumbnails=max_thumbnails), encoding="utf-8")
    return page


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A page of six episodes, one of which points at the wrong data file."""
    folder = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_LEROBOT_HOME", str(folder / "home"))
        cameras = {
            TOP: Camera(film, 2, width=96),
            "observation.images.wrist": Camera(film, 3, width=96),
        }
        write_dataset(folder / "set", lengths=LENGTHS, cameras=cameras)
        edited(folder / "set", point(data__file_index=0), episodes=(2,))
        yield make(folder / "set", folder / "page.html")


@pytest.fixture(scope="module")
def chromium() -> Iterator[webdriver.Chrome]:
    with open_browser() as browser:
        yield browser


@pytest.fixture
def browser(chromium: webdriver.Chrome, page: Path) -> webdriver.Chrome:
    """A browser that shows the page, freshly loaded."""
    prefer(chromium, "light")
    requests_of(chromium)
    complaints_of(chromium)
    show(chromium, page)
    return chromium


def episodes(browser: webdriver.Chrome) -> list[int]:
    code = "return [...document.querySelectorAll('.episode')].map((e) => +e.dataset.episode)"
    return list(script(browser, code))


def script(browser: webdriver.Chrome, code: str) -> Any:
    return browser.execute_script(code)


def wait_for_episodes(browser: webdriver.Chrome, wanted: list[int]) -> None:
    WebDriverWait(browser, 10).until(lambda _: episodes(browser) == wanted)


def test_it_loads_alone_and_without_a_complaint(browser: webdriver.Chrome, page: Path) -> None:
    assert requests_of(browser) == [page.resolve().as_uri()]
    assert complaints_of(browser) == []
    assert browser.title == "lab/arm"


def test_it_says_what_is_wrong(browser: webdriver.Chrome) -> None:
    assert "1 error" in browser.find_element(By.ID, "verdict").text
    finding = browser.find_element(By.CSS_SELECTOR, "details[data-kind=rows-elsewhere]")
    assert finding.get_attribute("open") is not None
    assert "rows are in another file" in finding.text
    finding.find_element(By.CSS_SELECTOR, "button").click()
    wait_for_episodes(browser, [2])
    browser.find_element(By.ID, "kind-filter").click()
    wait_for_episodes(browser, [0, 1, 2, 3, 4, 5])


def test_charts_are_drawn_in_the_page(browser: webdriver.Chrome) -> None:
    titles = [title.text for title in browser.find_elements(By.CSS_SELECTOR, "#charts h3")]
    assert titles[:3] == ["Frames an episode", "Bytes an episode", "Frames by drift in ms"]
    assert len(browser.find_elements(By.CSS_SELECTOR, "#charts svg")) == 4
    shards = browser.find_elements(By.CSS_SELECTOR, "#charts .shard title")
    texts = [shard.get_attribute("textContent") for shard in shards]
    assert f"videos/{TOP}/chunk-000/file-001.mp4: episodes 2 to 3" in texts
    assert len(browser.find_elements(By.CSS_SELECTOR, "#charts .mark.error")) == 3


def test_every_camera_has_its_pictures_and_every_column_its_lines(
    browser: webdriver.Chrome,
) -> None:
    card = browser.find_element(By.CSS_SELECTOR, "[data-episode='0']")
    pictures = card.find_elements(By.CSS_SELECTOR, ".thumb img")
    labels = [b.get_attribute("aria-label") for b in card.find_elements(By.CSS_SELECTOR, ".thumb")]
    assert labels[:3] == [f"Episode 0, top, frame {frame}" for frame in (0, 2, 4)]
    assert len(pictures) == 6
    WebDriverWait(browser, 10).until(
        lambda _: all(p.get_property("naturalWidth") == 96 for p in pictures)
    )
    assert len(card.find_elements(By.CSS_SELECTOR, ".sketch polyline")) == 2 + 3


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("0-1,4", [0, 1, 4]), ("drawer", [1, 3, 5]), ("5", [5]), ("nothing like it", [])],
)
def test_a_text_or_a_list_filters(browser: webdriver.Chrome, text: str, wanted: list[int]) -> None:
    browser.find_element(By.ID, "query").send_keys(text)
    wait_for_episodes(browser, wanted)
    count = f"{len(wanted)} of 6 episodes"
    assert browser.find_element(By.ID, "shown").text == count


def test_severity_filters(browser: webdriver.Chrome) -> None:
    Select(browser.find_element(By.ID, "filter")).select_by_value("error")
    wait_for_episodes(browser, [2])
    Select(browser.find_element(By.ID, "filter")).select_by_value("clean")
    wait_for_episodes(browser, [0, 1, 3, 4, 5])


def test_columns_sort_either_way(browser: webdriver.Chrome) -> None:
    Select(browser.find_element(By.ID, "sort")).select_by_value("length")
    wait_for_episodes(browser, [4, 3, 0, 2, 1, 5])
    browser.find_element(By.ID, "direction").click()
    wait_for_episodes(browser, [5, 1, 2, 0, 3, 4])


def test_the_keyboard_is_enough(browser: webdriver.Chrome) -> None:
    body = browser.find_element(By.TAG_NAME, "body")
    body.send_keys("/")
    assert script(browser, "return document.activeElement.id") == "query"
    browser.switch_to.active_element.send_keys("0-3")
    wait_for_episodes(browser, [0, 1, 2, 3])
    browser.find_element(By.ID, "direction").send_keys(Keys.ENTER)
    wait_for_episodes(browser, [3, 2, 1, 0])
    for key, episode in (("j", "3"), ("j", "2"), ("k", "3")):
        browser.switch_to.active_element.send_keys(key)
        assert script(browser, "return document.activeElement.dataset.episode") == episode
    browser.switch_to.active_element.send_keys(Keys.TAB)
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    text = browser.find_element(By.ID, "viewer-text")
    assert text.text == f"Episode 3 · {TOP} · frame 0 of 6"
    browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert "frame 2 of 6" in text.text or "frame 3 of 6" in text.text
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not browser.find_element(By.ID, "viewer").is_displayed()
    assert script(browser, "return document.activeElement.className") == "thumb"


@pytest.mark.parametrize(("scheme", "bright"), [("light", True), ("dark", False)])
def test_light_and_dark_follow_the_system_and_the_button(
    browser: webdriver.Chrome, page: Path, scheme: str, bright: bool
) -> None:
    prefer(browser, scheme)
    show(browser, page)

    def is_bright() -> bool:
        colour = script(browser, "return getComputedStyle(document.body).backgroundColor")
        return int(str(colour).removeprefix("rgb(").split(",")[0]) > 128

    assert is_bright() == bright
    browser.find_element(By.ID, "theme").click()
    assert is_bright() != bright


def test_names_and_roles_are_told(browser: webdriver.Chrome) -> None:
    unnamed = script(
        browser,
        "return [...document.querySelectorAll('button, input, select')].filter((e) => !("
        "e.hidden || e.textContent.trim() || e.ariaLabel || e.closest('label'))).length",
    )
    assert unnamed == 0
    assert browser.find_element(By.TAG_NAME, "html").get_attribute("lang") == "en"


def test_a_narrow_window_is_not_left_to_scroll_sideways(browser: webdriver.Chrome) -> None:
    browser.set_window_size(500, 900)
    try:
        width = script(browser, "return document.documentElement.scrollWidth - innerWidth")
    finally:
        browser.set_window_size(1280, 1600)
    assert width <= 0


def test_five_thousand_episodes_are_shown_a_few_at_a_time(
    chromium: webdriver.Chrome, tmp_path: Path
) -> None:
    root = tmp_path / "set"
    count = 5000
    cameras = {TOP: Camera(lambda path, n: film(path, list(n)[:4]), 10**6, width=96)}
    write_dataset(
        root, lengths=[4] * count, cameras=cameras, episodes_per_data_file=500, row_group=2000
    )
    shared = {f"videos/{TOP}/from_timestamp": 0.0, f"videos/{TOP}/to_timestamp": 0.4}
    edit_episodes(root, lambda row: row.update(shared))
    page = make(root, tmp_path / "page.html", max_thumbnails=60)
    shutil.rmtree(root)
    assert page.stat().st_size < 3_000_000
    started = time.monotonic()
    show(chromium, page)
    assert time.monotonic() - started < 20
    assert complaints_of(chromium) == []
    assert chromium.find_element(By.ID, "shown").text == "5,000 of 5,000 episodes"
    assert len(episodes(chromium)) < 100
    chromium.find_element(By.ID, "query").send_keys("4990-4999")
    wait_for_episodes(chromium, list(range(4990, 5000)))
