"""A headless Chromium that notes what a page asks for and what goes wrong in it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="no chromium and chromedriver on the PATH"
)


@contextmanager
def open_browser() -> Iterator[webdriver.Chrome]:
    """Start a browser and end it."""
    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"):
        options.add_argument(flag)
    options.add_argument("--window-size=1280,1600")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.binary_location = str(CHROMIUM)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        yield browser
    finally:
        browser.quit()


def requests_of(browser: webdriver.Chrome) -> list[str]:
    """Addresses asked for since the last call, without the pictures inside the page."""
    entries: list[dict[str, Any]] = browser.get_log("performance")  # type: ignore[no-untyped-call]
    messages = [json.loads(entry["message"])["message"] for entry in entries]
    sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    urls = [str(params["request"]["url"]) for params in sent]
    return [url for url in urls if not url.startswith("data:")]


def complaints_of(browser: webdriver.Chrome) -> list[str]:
    """What the browser logged since the last call."""
    entries: list[dict[str, Any]] = browser.get_log("browser")  # type: ignore[no-untyped-call]
    return [str(entry["message"]) for entry in entries]


def prefer(browser: webdriver.Chrome, scheme: str) -> None:
    """Let the system prefer ``light`` or ``dark``."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def show(browser: webdriver.Chrome, path: Path) -> None:
    """Open a file."""
    browser.get(path.resolve().as_uri())
