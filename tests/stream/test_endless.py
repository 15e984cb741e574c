"""Streams without end."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from lerobot_stream.stream.dataset import StreamingLeRobotDataset
from tests.lerobot import write_dataset


def test_a_prefetch_without_bound_still_begins(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[2, 3], image_cameras={"observation.images.top": (4, 4)})
    dataset = StreamingLeRobotDataset(
        "a/b", root=tmp_path, repeat=True, prefetch_episodes=1_000_000_000
    )
    assert len(list(islice(dataset.batches(2), 5))) == 5
