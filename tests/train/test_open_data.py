from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from lerobot_stream.errors import DatasetError, PlanError
from lerobot_stream.plan.share import Share
from lerobot_stream.stream.dataset import StreamingLeRobotDataset
from lerobot_stream.train.distributed import Ranks
from lerobot_stream.train.open_data import (
    HeldOutData,
    fitting_workers,
    open_training_data,
    read_header,
    split_episodes,
)
from tests.hub import Hub, use_hub
from tests.lerobot import edit_episodes
from tests.train.tiny import tiny_config, write_tiny_dataset

LENGTHS = (9, 7, 8, 6)
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tiny") / "data"
    write_tiny_dataset(root, camera=False, lengths=LENGTHS)
    return root


@given(st.integers(2, 40), st.floats(0.01, 0.99))
def test_the_last_episodes_are_held_out(count: int, share: float) -> None:
    assume(share * count <= count - 1)
    episodes = list(range(count))
    kept, held_out = split_episodes(episodes, share=share)
    assert kept + held_out == episodes
    assert kept
    assert len(held_out) - 1 < share * count <= len(held_out)


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "map-style"])
@pytest.mark.parametrize("world_size", [1, 3])
def test_held_out_episodes_are_seen_in_evaluation_alone(
    data: Path, tmp_path: Path, streaming: bool, world_size: int
) -> None:
    reading = {"streaming": streaming, "eval_split": 0.5, "exclude_episodes": (1,)}
    config = tiny_config(data, tmp_path, dataset=reading)
    header = read_header(config.dataset)
    assert header.train_episodes == [0]
    assert header.eval_episodes == [2, 3]
    evaluated: list[int] = []
    for rank in range(world_size):
        held_out = HeldOutData(config, header, {}, Ranks(rank, world_size, CPU))
        again = [batch["index"].tolist() for batch in held_out]
        assert [batch["index"].tolist() for batch in held_out] == again
        evaluated += [index for batch in again for index in batch]
    assert sorted(evaluated) == list(range(16, 30))

    trained = iter(open_training_data(config, header, {}, Ranks(0, 1, CPU)))
    seen = {int(index) for _ in range(9) for index in next(trained)["index"]}
    trained.close()
    assert seen == set(range(9))


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "map-style"])
def test_rows_are_found_elsewhere_only_where_asked(tmp_path: Path, streaming: bool) -> None:
    root = tmp_path / "data"
    write_tiny_dataset(root, camera=False, lengths=LENGTHS)
    edit_episodes(root, lambda row: row.update({"data/file_index": 0}))
    reading = {"streaming": streaming}
    found = tiny_config(root, tmp_path, dataset=reading | {"find_rows": True})
    header = read_header(found.dataset)
    trained = iter(open_training_data(found, header, {}, Ranks(0, 1, CPU)))
    seen = {int(index) for _ in range(8) for index in next(trained)["index"]}
    trained.close()
    assert seen == set(range(30))
    with pytest.raises(DatasetError):
        next(
            iter(
                open_training_data(
                    tiny_config(root, tmp_path, dataset=reading), header, {}, Ranks(0, 1, CPU)
                )
            )
        )


@pytest.mark.parametrize(
    "address",
    [{}, {"revision": "main"}, {"root": "hf://datasets/robots/tiny@main"}],
    ids=["tag", "branch", "address"],
)
def test_a_revision_is_looked_up_and_told_once(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, address: dict[str, str]
) -> None:
    with Hub() as hub, use_hub(hub):
        commit = hub.add_dataset("robots/tiny", data)
        reading = {"root": None, "eval_split": 0.5} | address
        config = tiny_config(data, tmp_path, dataset=reading)
        config = replace(config, dataset=replace(config.dataset, repo_id="robots/tiny"))
        with caplog.at_level(logging.INFO, logger="lerobot_stream"):
            header = read_header(config.dataset)
            trained = open_training_data(config, header, {}, Ranks(0, 1, CPU))
            held_out = HeldOutData(config, header, {}, Ranks(0, 1, CPU))
            assert len(list(held_out)) == 4
        assert trained.num_frames == 16
    [said] = [line for line in caplog.messages if "→" in line]
    assert said.endswith(f"→ {commit}")


def test_a_split_of_one_episode_is_a_usage_error(data: Path, tmp_path: Path) -> None:
    config = tiny_config(data, tmp_path, dataset={"eval_split": 0.1, "episodes": (2,)})
    with pytest.raises(ValueError, match=r"--dataset.eval_split=0.1 holds out 1 of 1 episode and"):
        read_header(config.dataset)


def test_workers_without_an_episode_are_left_out(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dataset = StreamingLeRobotDataset("local/tiny", root=data, repeat=True)
    with caplog.at_level(logging.WARNING):
        assert [fitting_workers(dataset, wanted) for wanted in (0, 1, 4)] == [0, 1, 4]
        assert not caplog.records
        assert fitting_workers(dataset, 9) == 4
    why = "each needs an episode of its own and this rank has 4"
    assert caplog.messages == [f"--num_workers=9: using 4, as {why}"]


def test_workers_without_a_budget_are_left_out(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dataset = StreamingLeRobotDataset("local/tiny", root=data, repeat=True)
    plan = dataset.plan

    def of_two(*, worker: int, num_workers: int) -> Share:
        if num_workers > 2:
            raise PlanError("an episode takes 3 bytes; the byte budget is 2")
        return plan(worker=worker, num_workers=num_workers)

    dataset.plan = of_two  # type: ignore[method-assign]
    with caplog.at_level(logging.WARNING):
        assert fitting_workers(dataset, 4) == 2
    why = "3 do not fit (an episode takes 3 bytes; the byte budget is 2)"
    assert caplog.messages == [f"--num_workers=4: using 2, as {why}"]
