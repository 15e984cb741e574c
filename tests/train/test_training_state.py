from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from lerobot_stream.errors import CheckpointError
from lerobot_stream.train.config import OptimizerConfig, SchedulerConfig
from lerobot_stream.train.optim import make_adamw, make_scheduler
from lerobot_stream.train.rng import rng_state
from lerobot_stream.train.training_state import TrainingState, read_state, write_state


def trained() -> tuple[nn.Module, torch.optim.Optimizer, torch.optim.lr_scheduler.LambdaLR]:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    groups = [
        {"params": [model.weight], "lr": 1e-3, "weight_decay": 0.1},
        {"params": [model.bias], "lr": 1e-2, "weight_decay": 0.0},
    ]
    optimizer = make_adamw(groups, OptimizerConfig())
    scheduler = make_scheduler(optimizer, SchedulerConfig("cosine_decay_with_warmup"), 9)
    assert scheduler is not None
    for _ in range(3):
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        scheduler.step()
    return model, optimizer, scheduler


def some_state(**changes: object) -> TrainingState:
    model, optimizer, scheduler = trained()
    state: dict[str, object] = {
        "step": 3,
        "stream": [{"batches": 3}, {"batches": 3}],
        "rng": [rng_state(), rng_state()],
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "scaler": None,
        "weights": model.state_dict(),
    }
    return TrainingState(**{**state, **changes})  # type: ignore[arg-type]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    state = some_state()
    write_state(tmp_path, state)
    found = read_state(tmp_path)
    assert (found.step, found.stream, found.scaler) == (3, state.stream, None)
    for written, read in zip(state.rng, found.rng, strict=True):
        torch.testing.assert_close(dict(read), dict(written), rtol=0, atol=0)
    assert found.weights is not None
    assert state.weights is not None
    torch.testing.assert_close(dict(found.weights), dict(state.weights), rtol=0, atol=0)

    _, optimizer, scheduler = trained()
    optimizer.load_state_dict(dict(found.optimizer))
    assert found.scheduler is not None
    scheduler.load_state_dict(dict(found.scheduler))
    torch.testing.assert_close(optimizer.state_dict(), state.optimizer, rtol=0, atol=0)
    assert scheduler.get_last_lr() == pytest.approx(
        [group["lr"] for group in optimizer.param_groups]
    )


def test_the_files_are_those_of_lerobot_without_any_pickle(tmp_path: Path) -> None:
    write_state(tmp_path, some_state(weights=None))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "optimizer_param_groups.json",
        "optimizer_state.safetensors",
        "rng_state.safetensors",
        "rng_state_rank_1.safetensors",
        "scheduler_state.json",
        "stream_state.json",
        "training_step.json",
    ]
    assert json.loads((tmp_path / "training_step.json").read_text()) == {"step": 3}
    assert set(load_file(tmp_path / "optimizer_state.safetensors")) == {
        f"state/{number}/{name}" for number in (0, 1) for name in ("step", "exp_avg", "exp_avg_sq")
    }
    groups = json.loads((tmp_path / "optimizer_param_groups.json").read_text())
    assert [group["params"] for group in groups] == [[0], [1]]


@pytest.mark.parametrize(
    "name",
    ["training_step.json", "optimizer_state.safetensors", "rng_state_rank_1.safetensors"],
)
@pytest.mark.parametrize("damage", ["missing", "torn"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str, damage: str) -> None:
    write_state(tmp_path, some_state())
    if damage == "missing":
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:7])
    with pytest.raises(CheckpointError, match=name):
        read_state(tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("training_step.json", '{"ctep": 3}'),
        ("training_step.json", '{"step": "many"}'),
        ("stream_state.json", '{"ranks": 3}'),
        ("stream_state.json", "[]"),
    ],
)
def test_a_file_with_other_content_is_damaged(tmp_path: Path, name: str, text: str) -> None:
    write_state(tmp_path, some_state())
    (tmp_path / name).write_text(text)
    with pytest.raises(CheckpointError, match="is damaged"):
        read_state(tmp_path)
