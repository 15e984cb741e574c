"""A run stopped anywhere and continued sees exactly the items of the unbroken run."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import pytest
from torch.utils.data import DataLoader

from lerobot_stream.errors import CheckpointError
from lerobot_stream.stream.dataset import StreamingLeRobotDataset
from tests.lerobot import Written
from tests.recordings import WRITERS, record

STRATEGIES = ["remaining", "round_robin", "clip"]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return record(tmp_path_factory.mktemp("resume") / "set", WRITERS["h264-g30-b-open"])


def opened(written: Written, **settings: Any) -> StreamingLeRobotDataset:
    defaults: dict[str, Any] = {"repeat": True, "episode_pool_size": 3, "decoded_pool_gb": 0.001}
    return StreamingLeRobotDataset(
        "a/b", root=written.root, return_uint8=True, **(defaults | settings)
    )


def taken(dataset: StreamingLeRobotDataset, count: int, batch_size: int = 4) -> list[list[int]]:
    batches = dataset.batches(batch_size)
    index = [batch["index"].tolist() for batch in islice(batches, count)]  # type: ignore[union-attr]
    batches.close()  # type: ignore[attr-defined]
    return index


def passed_on(state: dict[str, Any]) -> dict[str, Any]:
    """A state as it comes back from a file."""
    back: dict[str, Any] = json.loads(json.dumps(state))
    return back


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_two_resumes_in_a_row_continue_the_unbroken_run(written: Written, strategy: Any) -> None:
    unbroken = taken(opened(written, sampling_strategy=strategy), 100)
    first = opened(written, sampling_strategy=strategy)
    seen = taken(first, 33)
    second = opened(written, sampling_strategy=strategy)
    second.load_state_dict(passed_on(first.state_dict()))
    seen += taken(second, 20)
    third = opened(written, sampling_strategy=strategy)
    third.load_state_dict(passed_on(second.state_dict()))
    seen += taken(third, 47)
    assert seen == unbroken


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_place_of_an_epoch_can_be_continued(written: Written, strategy: Any) -> None:
    unbroken = taken(opened(written, sampling_strategy=strategy, repeat=False), 1000)
    for batches in range(0, len(unbroken) + 1, 3):
        dataset = opened(written, sampling_strategy=strategy, repeat=False)
        dataset.load_state_dict(dataset.state_dict(batches, 4))
        assert taken(dataset, 1000) == unbroken[batches:]


def test_the_epoch_after_a_resumed_one_is_whole(written: Written) -> None:
    dataset = opened(written, repeat=False)
    dataset.load_state_dict(dataset.state_dict(10, 4))
    assert sum(map(len, taken(dataset, 1000))) == written.num_frames - 40
    dataset.set_epoch(1)
    index = sorted(number for batch in taken(dataset, 1000) for number in batch)
    assert index == list(range(written.num_frames))


def test_epochs_differ_and_are_the_same_in_every_run(written: Written) -> None:
    orders = []
    for epoch in (0, 1, 0):
        dataset = opened(written, repeat=False)
        dataset.set_epoch(epoch)
        orders.append(taken(dataset, 1000))
    assert orders[0] == orders[2] != orders[1]


@pytest.mark.parametrize("repeat", [True, False])
def test_a_loader_with_workers_continues_where_it_stopped(written: Written, repeat: bool) -> None:
    def loaded(dataset: StreamingLeRobotDataset, count: int) -> list[list[int]]:
        loader = DataLoader(
            dataset.worker_batches(4),
            batch_size=None,
            num_workers=2,
            multiprocessing_context="fork",
        )
        return [batch["index"].tolist() for batch in islice(loader, count)]

    count = 60 if repeat else 1000
    unbroken = loaded(opened(written, repeat=repeat), count)
    dataset = opened(written, repeat=repeat)
    dataset.load_state_dict(passed_on(dataset.state_dict(7, 4, num_workers=2)))
    assert loaded(dataset, count - 7) == unbroken[7:]


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"seed": 7}, "seed"),
        ({"episode_pool_size": 2}, "pool"),
        ({"sampling_strategy": "round_robin"}, "strategy"),
        ({"episodes": [0, 1, 2, 3, 4]}, "episodes 13, now 5"),
        ({"world_size": 2}, "world size"),
    ],
)
def test_what_changes_the_order_is_named(
    written: Written, settings: dict[str, Any], field: str
) -> None:
    state = passed_on(opened(written).state_dict())
    with pytest.raises(CheckpointError, match=field) as caught:
        opened(written, **settings).load_state_dict(state)
    assert caught.value.hint


def test_another_order_of_equal_settings_is_refused(written: Written) -> None:
    dataset = opened(written)
    state = passed_on(dataset.state_dict()) | {"digest": "0" * 64}
    with pytest.raises(CheckpointError, match="another order here"):
        dataset.load_state_dict(state)


def test_another_readers_state_points_to_the_weights(written: Written) -> None:
    with pytest.raises(CheckpointError) as caught:
        opened(written).load_state_dict({"samples_seen": 12})
    assert "--policy.path" in (caught.value.hint or "")
