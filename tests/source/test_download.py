from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub import Hub, Status

REPOSITORY = Path(__file__).parents[2]
VIDEO, INFO = "videos/top/file-000.mp4", "meta/info.json"
FILES = {VIDEO: b"moov" * 800, INFO: b"{}", "videos/top/file-001.mp4": b"moov"}
PROGRAM = f"""
from lerobot_stream.source.download import download_files
from lerobot_stream.source.hub import open_hub
try:
    folder = download_files(open_hub("robots/arm"), ["{VIDEO}", "{INFO}"])
    print(*folder.list_files())
except Exception as error:
    print(type(error).__name__, error)
"""


def download(hub: Hub, home: Path) -> str:
    # The client reads the Hub's address when it is imported.
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **hub.env(home), "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as hub:
        hub.add_dataset("robots/arm", FILES, tags=("v3.0",))
        yield hub


def test_the_files_wanted_are_fetched_once(hub: Hub, tmp_path: Path) -> None:
    assert download(hub, tmp_path) == f"{INFO} {VIDEO}\n"
    assert len(hub.requests("*.mp4", method="GET")) > 0
    hub.log.clear()
    assert download(hub, tmp_path) == f"{INFO} {VIDEO}\n"
    assert hub.requests("*.mp4", method="GET") == []


def test_a_refusal_is_told_without_the_signature_of_the_address(hub: Hub, tmp_path: Path) -> None:
    hub.fail(Status(410), origin="blobs", times=None)
    said = download(hub, tmp_path)
    assert said.startswith(f"SourceError {VIDEO}: cannot be downloaded: ")
    assert "410" in said
    assert "Signature" not in said
