from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from lerobot_stream.train.distributed import Ranks, choose_device, join_ranks, read_ranks
from lerobot_stream.train.policies.act import ActPolicy
from lerobot_stream.train.step import count_valid
from tests.train.jobs import NO_NOISE, leave_the_other_alone, save_gradients
from tests.train.processes import Ended, run_ranks
from tests.train.tiny import FEATURES, make_batch


@pytest.mark.parametrize("count", [2, 4])
def test_ranks_and_accumulated_batches_have_the_gradient_of_all_items_together(
    tmp_path: Path, count: int
) -> None:
    for ended in run_ranks(save_gradients, tmp_path / "gradients", count=count, folder=tmp_path):
        assert ended == Ended(0, "")
    found = load_file(tmp_path / "gradients")
    torch.manual_seed(0)
    policy = ActPolicy(NO_NOISE, FEATURES)
    loss, _ = policy(make_batch(4 * count))
    loss.backward()
    torch.testing.assert_close(found.pop("loss"), loss.detach())
    wanted = {name: p.grad for name, p in policy.named_parameters()}
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-5)


def test_a_rank_that_is_gone_ends_the_others_with_an_error(
    tmp_path: Path,
) -> None:
    first, _ = run_ranks(leave_the_other_alone, count=2, folder=tmp_path)
    assert first.code == 0
    assert "the other ranks cannot be reached any more" in first.said


def test_one_process_is_the_only_rank() -> None:
    with join_ranks("cpu", timeout_s=1) as ranks:
        assert (ranks.rank, ranks.world_size, ranks.is_first) == (0, 1, True)
        assert ranks.sum(torch.tensor(3)).item() == 3
        assert ranks.gather("x") == ["x"]
        assert ranks.any(True)


def test_all_steps_are_valid_without_a_mask() -> None:
    one = Ranks(0, 1, torch.device("cpu"))
    batches = [{"action": torch.zeros(2, 5, 3)}, {"action": torch.zeros(4, 5, 3)}]
    assert count_valid("action", batches, one).item() == 15  # half of 30


def test_a_process_is_who_torchrun_says() -> None:
    assert read_ranks({}) == (0, 1, 0)
    said = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}
    assert read_ranks({**said, "MASTER_ADDR": "host", "MASTER_PORT": "29500"}) == (5, 8, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"WORLD_SIZE": "0"}, "WORLD_SIZE must be a whole number of at least 1, got '0'"),
        ({"WORLD_SIZE": "x"}, "WORLD_SIZE must be a whole number of at least 1, got 'x'"),
        ({"LOCAL_RANK": "z"}, "LOCAL_RANK must be a whole number of at least 0, got 'z'"),
        ({"LOCAL_RANK": "-1"}, "LOCAL_RANK must be a whole number of at least 0, got '-1'"),
        ({"RANK": "2"}, "RANK must be a whole number from 0 to 1, got '2': WORLD_SIZE is 2"),
        ({"RANK": ""}, "RANK must be set, as torchrun does: WORLD_SIZE is 2"),
        ({"MASTER_ADDR": ""}, "MASTER_ADDR must be set, as torchrun does: WORLD_SIZE is 2"),
        ({"MASTER_PORT": "http"}, "MASTER_PORT must be a whole number from 0 to 65535, got 'http'"),
    ],
)
def test_a_variable_that_makes_no_sense_is_named(changes: dict[str, str], message: str) -> None:
    sound = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "host", "MASTER_PORT": "29500"}
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        read_ranks(sound | changes)


def test_a_rank_that_is_not_among_them_does_not_train(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "9")
    with (
        pytest.raises(ValueError, match="RANK must be a whole number from 0 to 0, got '9'"),
        join_ranks("cpu", timeout_s=1),
    ):
        pass


@pytest.mark.parametrize("name", ["toaster", "cuda:99"])
def test_a_device_that_is_not_there_is_a_usage_error(name: str) -> None:
    with pytest.raises(ValueError, match=f"--policy.device={name}"):
        choose_device(name, local_rank=0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_where_there_is_none_is_a_usage_error() -> None:
    with pytest.raises(ValueError, match=r"--policy\.device=cuda: PyTorch finds no GPU here"):
        choose_device("cuda", local_rank=0)


def test_the_best_device_is_chosen() -> None:
    best = "cuda" if torch.cuda.is_available() else "cpu"
    if not torch.backends.mps.is_available():
        assert choose_device(None, local_rank=0).type == best
