"""A job that goes on with other ranks, workers and batches still sees each frame once an epoch."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import islice
from typing import Any

import pytest
import torch

from lerobot_stream.errors import CheckpointError
from lerobot_stream.stream.batch import Batch
from lerobot_stream.stream.dataset import StreamingLeRobotDataset
from tests.lerobot import Written
from tests.media import read_number
from tests.recordings import FPS, TOP, WRITERS, record

State = dict[str, Any]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return record(tmp_path_factory.mktemp("elastic") / "set", WRITERS["h264-g30-b-open"])


def opened(written: Written, **settings: Any) -> StreamingLeRobotDataset:
    defaults: dict[str, Any] = {"repeat": True, "episode_pool_size": 3, "decoded_pool_gb": 0.002}
    return StreamingLeRobotDataset(
        "a/b", root=written.root, return_uint8=True, **(defaults | settings)
    )


def taken(
    dataset: StreamingLeRobotDataset, batches: int, *, batch_size: int, num_workers: int = 1
) -> list[int]:
    """What a rank gets from its workers in turn; pictures are checked to be the items' own."""
    seen: list[int] = []
    with ExitStack() as stack:
        streams: list[Iterator[Batch]] = []
        for worker in range(num_workers):
            stream = dataset._transformed(batch_size, worker=worker, num_workers=num_workers)
            streams.append(stack.enter_context(closing(stream)))  # type: ignore[type-var]
        for number in range(batches):
            batch: dict[str, Any] = next(streams[number % num_workers])
            pictures = batch[TOP].movedim(-3, -1)
            now = pictures if pictures.ndim == 4 else pictures[:, 0]
            assert [read_number(picture) for picture in now.numpy()] == batch["index"].tolist()
            seen += batch["index"].tolist()
    return seen


def job(
    written: Written,
    states: list[State] | None,
    batches: int,
    *,
    ranks: int,
    batch_size: int,
    num_workers: int = 1,
    **settings: Any,
) -> tuple[list[int], list[State]]:
    """Items of all ranks of a job that goes on with what another left, and its own states."""
    seen, left = [], []
    for rank in range(ranks):
        dataset = opened(written, rank=rank, world_size=ranks, **settings)
        if states:
            dataset.load_job_state(states)
        seen += taken(dataset, batches, batch_size=batch_size, num_workers=num_workers)
        state = dataset.state_dict(batches, batch_size, num_workers=num_workers)
        left.append(json.loads(json.dumps(state)))
    return seen, left


def rest(written: Written, states: list[State], *, ranks: int, **settings: Any) -> list[int]:
    """What all ranks deliver until the epochs that others began are complete."""
    seen = []
    for rank in range(ranks):
        dataset = opened(written, rank=rank, world_size=ranks, **settings)
        dataset.load_job_state(states)
        shares = dataset._layers(worker=0, num_workers=1).unfinished.values()
        left = sum(share.num_items for share in shares)
        seen += taken(dataset, left, batch_size=1)
    return seen


@pytest.mark.parametrize("windows", [False, True], ids=["frames", "windows"])
@pytest.mark.parametrize("strategy", ["remaining", "round_robin", "clip"])
def test_four_two_and_three_ranks_see_each_frame_of_an_epoch_once(
    written: Written, strategy: Any, windows: bool
) -> None:
    settings: dict[str, Any] = {"sampling_strategy": strategy}
    if windows:
        settings["delta_timestamps"] = {TOP: [0.0, 2 / FPS]}
    four, states = job(written, None, 4, ranks=4, batch_size=4, **settings)
    two, states = job(written, states, 7, ranks=2, batch_size=3, num_workers=2, **settings)
    three = rest(written, states, ranks=3, **settings)
    assert (len(four), len(two)) == (64, 42)
    assert Counter(four + two + three) == Counter(range(written.num_frames))


def test_epochs_that_ranks_end_at_different_steps_are_all_completed(written: Written) -> None:
    four, states = job(written, None, 10, ranks=4, batch_size=4)
    two, states = job(written, states, 30, ranks=2, batch_size=3)
    assert len(states[0]["base"]["unfinished"]) == 2
    three = rest(written, states, ranks=3)
    wanted = dict.fromkeys(range(written.num_frames), 3)
    assert Counter(four + two + three) == wanted


def test_a_state_with_a_base_continues_like_any_other(written: Written) -> None:
    _, states = job(written, None, 4, ranks=4, batch_size=4)
    unbroken = opened(written, rank=1, world_size=2)
    unbroken.load_job_state(states)
    wanted = taken(unbroken, 40, batch_size=4)
    stopped = opened(written, rank=1, world_size=2)
    stopped.load_job_state(states)
    seen = []
    for _ in range(4):
        with closing(stopped.batches(4)) as batches:  # type: ignore[type-var]
            seen += [i for batch in islice(batches, 10) for i in batch["index"].tolist()]  # type: ignore[union-attr]
        state = json.loads(json.dumps(stopped.state_dict()))
        stopped = opened(written, rank=1, world_size=2)
        stopped.load_state_dict(state)
    assert seen == wanted


def test_picture_changes_are_those_of_the_items_epoch(written: Written) -> None:
    def noise(pictures: torch.Tensor) -> torch.Tensor:
        return torch.randint(0, 256, pictures.shape[:-2])

    def changes(dataset: StreamingLeRobotDataset, items: int) -> dict[int, list[int]]:
        with closing(dataset.batches(1)) as batches:  # type: ignore[type-var]
            return {
                int(batch["index"][0]): batch[TOP][0].tolist()  # type: ignore[union-attr]
                for batch in islice(batches, items)
            }

    wanted = changes(opened(written, image_transforms=noise), written.num_frames)
    seen, states = job(written, None, 4, ranks=4, batch_size=4)
    resumed = opened(written, image_transforms=noise)
    resumed.load_job_state(states)
    left = written.num_frames - len(seen)
    found = changes(resumed, left)
    assert found == {index: wanted[index] for index in found}
    assert len(found) == left


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"episodes": [0, 1, 2]}, r"run's: episodes 13, now 3; frames \d+, now \d+$"),
        ({"exclude_episodes": [4]}, r"run's: episodes 13, now 12; frames \d+, now \d+$"),
    ],
    ids=["some", "one less"],
)
def test_a_job_of_other_episodes_is_refused(
    written: Written, settings: dict[str, Any], message: str
) -> None:
    _, states = job(written, None, 1, ranks=2, batch_size=4)
    with pytest.raises(CheckpointError, match=message) as caught:
        opened(written, **settings).load_job_state(states)
    assert "--policy.path" in (caught.value.hint or "")


def test_states_of_all_ranks_at_the_same_step_are_needed(written: Written) -> None:
    _, states = job(written, None, 2, ranks=2, batch_size=4)
    with pytest.raises(CheckpointError, match=r"saved by 2 ranks, found those of \[0\]"):
        opened(written).load_job_state(states[:1])
    states[1]["batches"] = 3
    with pytest.raises(CheckpointError, match=r"rank 1 stood at .*batches=3"):
        opened(written).load_job_state(states)


def test_a_damaged_base_is_named(written: Written) -> None:
    _, states = job(written, None, 4, ranks=2, batch_size=4)
    _, (state,) = job(written, states, 1, ranks=1, batch_size=4)
    state["base"]["unfinished"]["0"] = "AAAA"
    with pytest.raises(CheckpointError, match="bitmap of frames seen is damaged"):
        opened(written).load_state_dict(state)


def test_only_endless_streams_complete_what_others_began(written: Written) -> None:
    _, states = job(written, None, 1, ranks=2, batch_size=4)
    with pytest.raises(ValueError, match="repeat=True"):
        opened(written, repeat=False).load_job_state(states)


def test_another_epoch_leaves_the_base_behind(written: Written) -> None:
    _, states = job(written, None, 1, ranks=2, batch_size=4)
    dataset = opened(written)
    dataset.load_job_state(states)
    dataset.set_epoch(0)
    assert taken(dataset, 5, batch_size=4) == taken(opened(written), 5, batch_size=4)


def test_a_worker_started_before_the_base_was_known_says_so(written: Written) -> None:
    _, states = job(written, None, 1, ranks=2, batch_size=4)
    dataset = opened(written)
    worker = pickle.loads(pickle.dumps(dataset))
    worker._position._shared = dataset._position._shared  # as between processes
    dataset.load_job_state(states)
    with pytest.raises(ValueError, match="make a new loader"):
        next(worker.batches(4))
