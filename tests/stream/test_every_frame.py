"""Every frame comes back once and right, for every way to write video and to split the work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lerobot_stream.stream.dataset import StreamingLeRobotDataset
from lerobot_stream.stream.map_style import LeRobotDataset
from tests.lerobot import Written
from tests.media import needs_ffmpeg, read_number
from tests.recordings import FPS, TOP, WRIST, WRITERS, record

WINDOWS = {
    TOP: [-2 / FPS, 0.0, 1 / FPS],
    "action": [-1 / FPS, 0.0, 1 / FPS, 2 / FPS],
}


@pytest.fixture(scope="module", params=WRITERS)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Written:
    return record(tmp_path_factory.mktemp(request.param) / "set", WRITERS[request.param])


def numbers(pictures: torch.Tensor) -> list[int]:
    """The number in each ``(C, H, W)`` picture, whatever axes are in front."""
    flat = pictures.movedim(-3, -1).reshape(-1, *pictures.shape[-2:], 3)
    return [read_number(picture) for picture in flat.numpy()]


def shown(written: Written, index: int, offsets: list[int]) -> tuple[list[int], list[bool]]:
    """The dataset indices that a window shows, and which of them are padding."""
    episode = int(np.searchsorted(np.cumsum(written.lengths), index, side="right"))
    start = written.starts[episode]
    stop = start + written.lengths[episode]
    wanted = [index + offset for offset in offsets]
    return (
        [min(max(number, start), stop - 1) for number in wanted],
        [not start <= number < stop for number in wanted],
    )


def check_item(written: Written, item: dict[str, Any]) -> int:
    """Compare everything in an item with what was written; returns its index."""
    index = int(item["index"])
    top, top_pad = shown(written, index, [-2, 0, 1])
    assert numbers(item[TOP]) == top
    assert item[f"{TOP}_is_pad"].tolist() == top_pad
    assert numbers(item[WRIST]) == [index]
    action, action_pad = shown(written, index, [-1, 0, 1, 2])
    assert torch.equal(item["action"], torch.from_numpy(written.columns["action"][action]))
    assert item["action_is_pad"].tolist() == action_pad
    for key in ("observation.state", "timestamp", "frame_index", "episode_index", "task_index"):
        assert torch.equal(item[key], torch.as_tensor(written.columns[key][index])), key
    assert item["task"] == written.tasks[int(item["task_index"])]
    return index


def rows_of(batch: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for row in range(len(batch["task"])):
        yield {key: value[row] for key, value in batch.items()}


@needs_ffmpeg
@pytest.mark.parametrize("strategy", ["remaining", "round_robin", "clip"])
def test_each_frame_is_streamed_once_and_right(written: Written, strategy: Any) -> None:
    dataset = StreamingLeRobotDataset(
        "a/b",
        root=written.root,
        delta_timestamps=WINDOWS,
        return_uint8=True,
        sampling_strategy=strategy,
        episode_pool_size=3,
        decoded_pool_gb=0.002,
    )
    seen = [check_item(written, item) for batch in dataset.batches(8) for item in rows_of(batch)]
    assert sorted(seen) == list(range(written.num_frames))
    assert seen != sorted(seen)


@needs_ffmpeg
@pytest.mark.parametrize("strategy", ["remaining", "round_robin", "clip"])
@pytest.mark.parametrize(("world_size", "num_workers"), [(1, 3), (4, 1), (4, 3)])
def test_shards_together_deliver_each_frame_once(
    written: Written, strategy: Any, world_size: int, num_workers: int
) -> None:
    seen: Counter[int] = Counter()
    for rank in range(world_size):
        dataset = StreamingLeRobotDataset(
            "a/b",
            root=written.root,
            return_uint8=True,
            sampling_strategy=strategy,
            rank=rank,
            world_size=world_size,
        )
        for worker in range(num_workers):
            for batch in dataset._transformed(5, worker=worker, num_workers=num_workers):
                index = batch["index"].tolist()  # type: ignore[union-attr]
                assert numbers(batch[TOP]) == index  # type: ignore[arg-type]
                assert numbers(batch[WRIST]) == index  # type: ignore[arg-type]
                seen.update(index)
    assert seen == Counter(range(written.num_frames))


@needs_ffmpeg
def test_map_style_items_are_right(written: Written) -> None:
    dataset = LeRobotDataset("a/b", root=written.root, delta_timestamps=WINDOWS, return_uint8=True)
    assert len(dataset) == written.num_frames
    order = np.random.default_rng(0).permutation(len(dataset)).tolist()
    assert [check_item(written, dataset[index]) for index in order] == order


def test_streaming_items_equal_map_style_items(tmp_path: Path) -> None:
    written = record(tmp_path / "set", WRITERS["h264-g2"])
    by_number = LeRobotDataset("a/b", root=written.root, delta_timestamps=WINDOWS)
    stream = StreamingLeRobotDataset("a/b", root=written.root, delta_timestamps=WINDOWS)
    for item in stream:
        wanted = by_number[int(item["index"])]
        assert item.keys() == wanted.keys()
        for key, value in wanted.items():
            same = torch.equal(item[key], value) if isinstance(value, torch.Tensor) else None
            assert same if same is not None else item[key] == value, key
        assert item[TOP].dtype == torch.float32
        assert 0 <= float(item[TOP].min()) <= float(item[TOP].max()) <= 1
