"""Items equal to those of LeRobot's own reader, bit for bit, on a real recording."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lerobot_stream.stream.dataset import StreamingLeRobotDataset
from lerobot_stream.stream.map_style import LeRobotDataset

SHARED = Path(__file__).parents[2].parent / "shared"
ITEMS = SHARED / "interop/g1_inspire_items.json"
ROOT = SHARED / "data/g1_inspire"
CAM = "observation.images.cam_high"

pytestmark = pytest.mark.skipif(not ITEMS.exists(), reason="no recording beside the repository")


@pytest.fixture(scope="module")
def wanted() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(ITEMS.read_text())
    return loaded


def sha256(pictures: torch.Tensor) -> str:
    return hashlib.sha256(np.ascontiguousarray(pictures.numpy()).tobytes()).hexdigest()


def check(item: dict[str, Any], wanted: dict[str, Any]) -> None:
    for key in ("index", "episode_index", "frame_index", "timestamp", "task"):
        value = item[key]
        assert (value.item() if isinstance(value, torch.Tensor) else value) == wanted[key], key
    assert item["action"].dtype == torch.float32
    assert item["action"].tolist() == wanted["action_window"]
    assert item["observation.state"].tolist() == wanted["observation.state"]
    assert item["action_is_pad"].tolist() == wanted["action_is_pad"]
    assert item[f"{CAM}_is_pad"].tolist() == wanted[f"{CAM}_is_pad"]
    means = item[CAM][1].to(torch.float64).mean(dim=(1, 2))
    assert means.tolist() == pytest.approx(wanted[f"{CAM}_mean"], abs=1e-4)
    assert sha256(item[CAM][1]) == wanted[f"{CAM}_sha256"]
    assert sha256(item[CAM]) == wanted[f"{CAM}_window_sha256"]


def test_map_style_items_are_lerobots(wanted: dict[str, Any]) -> None:
    dataset = LeRobotDataset(
        "local/g1", root=ROOT, delta_timestamps=wanted["delta_timestamps"], return_uint8=True
    )
    assert len(wanted["items"]) == 57
    for item in wanted["items"]:
        check(dataset[item["index"]], item)


@pytest.mark.parametrize("strategy", ["remaining", "clip"])
def test_streamed_items_are_lerobots(wanted: dict[str, Any], strategy: Any) -> None:
    dataset = StreamingLeRobotDataset(
        "local/g1",
        root=ROOT,
        delta_timestamps=wanted["delta_timestamps"],
        return_uint8=True,
        sampling_strategy=strategy,
    )
    left = {item["index"]: item for item in wanted["items"]}
    for item in dataset:
        if (index := int(item["index"])) in left:
            check(item, left.pop(index))
    assert not left
