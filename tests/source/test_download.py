from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.hub import Hub, Status

REPOSITORY = Path(__file__).parents[2]
VIDEO = "videos/top/file-000.mp4"
PROGRAM = f"""
from lerobot_stream.source.download import download_files
from lerobot_stream.source.hub import open_hub
try:
    download_files(open_hub("robots/arm"), ["{VIDEO}"])
except Exception as error:
    print(type(error).__name__, error)
"""


def test_a_refusal_is_told_without_the_signature_of_the_address(tmp_path: Path) -> None:
    with Hub() as hub:
        hub.add_dataset("robots/arm", {VIDEO: bytes(3000)}, tags=("v3.0",))
        hub.fail(Status(410), origin="blobs", times=None)
        # The client reads the Hub's address when it is imported.
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, **hub.env(tmp_path), "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout.startswith(f"SourceError {VIDEO}: cannot be downloaded: ")
    assert "410" in done.stdout
    assert "Signature" not in done.stdout
