"""A Hub dataset that is not streamed is brought to this machine, at one commit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lerobot_stream.stream.map_style import LeRobotDataset
from tests.hub import Hub, use_hub
from tests.lerobot import Written
from tests.recordings import WRITERS, record

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return record(tmp_path_factory.mktemp("download") / "set", WRITERS["h264-g2"])


PROGRAM = """
from lerobot_stream.stream.map_style import LeRobotDataset
from tests.media import read_number
dataset = LeRobotDataset("robots/pick", episodes=[2], return_uint8=True)
item = dataset[3]
shown = read_number(item["observation.images.top"].movedim(0, -1).numpy())
print(int(item["index"]), shown, dataset.opened.source.identity.data_root)
"""


def test_only_what_the_episodes_need_is_downloaded(written: Written, tmp_path: Path) -> None:
    with Hub() as hub:
        commit = hub.add_dataset("robots/pick", written.root, tags=("v3.0",))
        # The client reads the Hub's address when it is imported.
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, **hub.env(tmp_path), "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
            check=True,
        )
    index, shown, place = done.stdout.split()
    assert int(index) == int(shown) == sum(written.lengths[:2]) + 3
    folder = Path(place)
    assert folder.name == commit
    videos = {str(path.relative_to(folder)) for path in folder.rglob("*.mp4")}
    assert videos == {paths[2] for paths in written.video_paths.values()}


def test_a_bucket_can_only_be_streamed(written: Written) -> None:
    with Hub() as hub:
        hub.add_bucket("robots/shelf", written.root)
        with use_hub(hub), pytest.raises(ValueError, match=r"--dataset\.streaming=true"):
            LeRobotDataset("robots/shelf", repo_type="bucket")
