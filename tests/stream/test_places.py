"""The same dataset gives the same items in the same order wherever it lies."""

from __future__ import annotations

import hashlib
import logging
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest
import torch
from torch.utils.data import DataLoader

from lerobot_stream.profile.batches import counted_batches
from lerobot_stream.stream.dataset import StreamingLeRobotDataset
from tests.hub import Hub
from tests.lerobot import Written
from tests.recordings import TOP, WRIST, WRITERS, record

REPO = "robots/pick"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return record(tmp_path_factory.mktemp("places") / "set", WRITERS["av1-g2"])


def on_hub(root: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    request.getfixturevalue("hub").add_dataset(REPO, root, tags=("v3.0",))
    return {}


def in_bucket(root: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    request.getfixturevalue("hub").add_bucket(REPO, root)
    return {"repo_type": "bucket"}


def in_memory(root: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    url = request.getfixturevalue("memory_url")
    fsspec.filesystem("memory").put(str(root), url, recursive=True)
    return {"root": url}


def on_s3(root: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    url = request.getfixturevalue("s3_url")
    fsspec.filesystem("s3").put(str(root), url, recursive=True)
    return {"root": url}


PLACES: dict[str, Callable[[Path, pytest.FixtureRequest], dict[str, Any]]] = {
    "hub": on_hub,
    "bucket": in_bucket,
    "memory": in_memory,
    "s3": on_s3,
}


def seen(**address: Any) -> list[tuple[Any, ...]]:
    dataset = StreamingLeRobotDataset(REPO, return_uint8=True, **address)
    return [
        (
            int(item["index"]),
            item["action"].tolist(),
            item["task"],
            _hash(item[TOP]),
            _hash(item[WRIST]),
        )
        for item in dataset
    ]


def _hash(pictures: torch.Tensor) -> str:
    return hashlib.sha256(pictures.contiguous().numpy().tobytes()).hexdigest()


@pytest.mark.parametrize("place", PLACES)
def test_a_dataset_gives_what_it_gives_from_a_folder(
    written: Written, place: str, request: pytest.FixtureRequest
) -> None:
    assert seen(**PLACES[place](written.root, request)) == seen(root=written.root)


@pytest.mark.parametrize(
    ("tags", "told"), [(("v3.0",), "v3.0 → "), ((), "no tag v3.0, reading main → ")]
)
def test_which_commit_is_read_is_told(
    written: Written,
    hub: Hub,
    caplog: pytest.LogCaptureFixture,
    tags: tuple[str, ...],
    told: str,
) -> None:
    commit = hub.add_dataset(REPO, written.root, tags=tags)
    with caplog.at_level(logging.INFO):
        dataset = StreamingLeRobotDataset(REPO)
    assert dataset.opened.source.identity.revision == commit
    assert f"{REPO}: {told}{commit}" in caplog.messages


def test_workers_ask_for_no_address_again(written: Written, hub: Hub) -> None:
    hub.add_dataset(REPO, written.root, tags=("v3.0",))
    dataset = StreamingLeRobotDataset(REPO, return_uint8=True)
    batches = dataset.worker_batches(8)
    before = len(hub.requests("*", method="HEAD")), len(hub.requests("*/tree/*"))
    copy = pickle.loads(pickle.dumps(batches))
    index = sorted(number for batch in copy for number in batch["index"].tolist())
    assert index == list(range(written.num_frames))
    assert (len(hub.requests("*", method="HEAD")), len(hub.requests("*/tree/*"))) == before


def test_worker_processes_stream_from_the_hub(written: Written, hub: Hub) -> None:
    hub.add_dataset(REPO, written.root, tags=("v3.0",))
    dataset = StreamingLeRobotDataset(REPO, return_uint8=True)
    loader = DataLoader(
        dataset.worker_batches(8), batch_size=None, num_workers=2, multiprocessing_context="fork"
    )
    index = sorted(number for batch in loader for number in batch["index"].tolist())
    assert index == list(range(written.num_frames))


def test_streaming_sends_only_reads(written: Written, hub: Hub) -> None:
    hub.add_dataset(REPO, written.root, tags=("v3.0",))
    assert len(seen()) == written.num_frames
    assert {request.method for request in hub.requests("*")} <= {"GET", "HEAD"}


@pytest.mark.parametrize("strategy", ["remaining", "round_robin"])
def test_an_epoch_over_the_hub_fetches_each_needed_byte_once(
    written: Written, hub: Hub, strategy: Any
) -> None:
    hub.add_dataset(REPO, written.root, tags=("v3.0",))
    dataset = StreamingLeRobotDataset(REPO, return_uint8=True, sampling_strategy=strategy)
    before = len(hub.requests("*.mp4", method="GET", origin="blobs"))
    assert sum(len(batch["task"]) for batch in dataset.batches(8)) == written.num_frames
    fetched = hub.requests("*.mp4", method="GET", origin="blobs")[before:]
    spans = dataset.opened.spans
    needed = int((spans.stop_byte - spans.start_byte).sum())
    assert 0 < sum(request.sent for request in fetched) <= 1.02 * needed
    assert len(fetched) <= len(written.lengths) * 2


@pytest.mark.parametrize("strategy", ["remaining", "round_robin", "clip"])
def test_an_epoch_over_the_hub_fetches_each_byte_once_that_the_plan_needs(
    written: Written, hub: Hub, strategy: Any
) -> None:
    hub.add_dataset(REPO, written.root, tags=("v3.0",))
    dataset = StreamingLeRobotDataset(REPO, return_uint8=True, sampling_strategy=strategy)
    before = len(hub.requests("*.mp4", method="GET", origin="blobs"))
    told = list(counted_batches(dataset.opened, dataset.config, batch_size=8, num_workers=0))
    fetched = hub.requests("*.mp4", method="GET", origin="blobs")[before:]
    assert told[-1].items == written.num_frames
    assert 0 < sum(request.sent for request in fetched) <= 1.02 * told[-1].wanted_bytes
