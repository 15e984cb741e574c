"""Both kinds of dataset describe themselves under LeRobot's names."""

from __future__ import annotations

from pathlib import Path

import pytest

from lerobot_stream.stream.dataset import StreamingLeRobotDataset
from lerobot_stream.stream.map_style import LeRobotDataset
from tests.hub import Hub
from tests.lerobot import Written, write_dataset

KINDS = [StreamingLeRobotDataset, LeRobotDataset]
Kind = type[StreamingLeRobotDataset] | type[LeRobotDataset]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return write_dataset(tmp_path / "set", lengths=[3, 4, 5], fps=20)


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_dataset_says_what_it_is(written: Written, kind: Kind) -> None:
    dataset = kind("a/b", root=written.root)
    assert (dataset.repo_id, dataset.root) == ("a/b", written.root)
    assert dataset.episodes is None
    assert (dataset.num_episodes, dataset.num_frames, dataset.fps) == (3, 12, 20)
    assert dataset.meta.total_frames == 12
    assert dataset.features is dataset.meta.features


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("choice", [{"episodes": [2, 0]}, {"exclude_episodes": [1]}], ids=str)
def test_a_selection_is_listed(written: Written, kind: Kind, choice: dict[str, list[int]]) -> None:
    dataset = kind("a/b", root=written.root, **choice)  # type: ignore[arg-type]
    assert dataset.episodes == [0, 2]
    assert (dataset.num_episodes, dataset.num_frames) == (2, 8)


def test_the_root_of_a_streamed_dataset_is_its_address(written: Written, hub: Hub) -> None:
    commit = hub.add_dataset("robots/arm", written.root)
    dataset = StreamingLeRobotDataset("robots/arm")
    assert (dataset.repo_id, dataset.root) == ("robots/arm", f"hf://datasets/robots/arm@{commit}")
