from __future__ import annotations

import io
import json
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file

from lerobot_stream.errors import CheckpointError, DatasetError, StreamError
from lerobot_stream.train.checkpoint import list_checkpoints
from lerobot_stream.train.config import ImageTransformsConfig, OptimizerConfig, TrainConfig
from lerobot_stream.train.loop import train
from lerobot_stream.train.policies.act_setup import load_act
from lerobot_stream.train.training_state import read_state
from tests.lerobot import edit_info
from tests.train.jobs import train_and_print, train_and_stop
from tests.train.processes import run_ranks, run_until
from tests.train.tiny import CAMERA, TINY_ACT, tiny_config, write_tiny_dataset


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset without cameras, quick to train on."""
    root = tmp_path_factory.mktemp("tiny") / "data"
    write_tiny_dataset(root, camera=False)
    return root


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with a camera."""
    root = tmp_path_factory.mktemp("tiny") / "seen"
    write_tiny_dataset(root, camera=True)
    return root


def run(config: TrainConfig, *explicit: str) -> tuple[Path, str]:
    """Train; the last checkpoint and what was said."""
    said = io.StringIO()
    console = Console(file=said, width=200)
    return train(config, console=console, explicit=frozenset(explicit)), said.getvalue()


def resumed(config: TrainConfig, step: int, **changes: Any) -> TrainConfig:
    """The settings that continue a run from one of its checkpoints."""
    folder = Path(str(config.output_dir)) / f"checkpoints/{step:06d}/pretrained_model"
    return replace(config, resume=True, config_path=str(folder / "train_config.json"), **changes)


def weights(checkpoint: Path) -> dict[str, torch.Tensor]:
    return load_file(checkpoint / "pretrained_model/model.safetensors")


def metrics(output: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]


def test_a_run_leaves_checkpoints_and_metrics(seen: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    last, said = run(tiny_config(seen, out, dataset={"eval_split": 0.25}))
    assert last == out / "checkpoints/000006"
    assert (out / "checkpoints/last").resolve() == last
    assert "24 frames of 3 episodes" in said
    assert "step 4/6  loss" in said
    assert f"checkpoint {last}" in said
    lines = metrics(out)
    assert [line["step"] for line in lines] == [2, 4, 6, 6]
    assert {"loss", "l1_loss", "grad_norm", "items_per_s", "data_wait_share"} <= lines[0].keys()
    assert (lines[2]["items"], lines[2]["epoch"]) == (24, 1)
    assert lines[3]["eval/action_error_ratio"] > 0
    assert {path.name for path in (last / "pretrained_model").iterdir()} == {
        "config.json",
        "model.safetensors",
        "policy_postprocessor.json",
        "policy_postprocessor_step_0_unnormalizer_processor.safetensors",
        "policy_preprocessor.json",
        "policy_preprocessor_step_3_normalizer_processor.safetensors",
        "train_config.json",
    }
    policy, before, after = load_act(last / "pretrained_model", device="cpu")
    picture = torch.zeros(1, 3, 32, 48, dtype=torch.uint8)
    ready = before({"observation.state": torch.zeros(1, 3), CAMERA: picture})
    assert after(policy.select_action(ready)).shape == (1, 2)


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "map-style"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {
            "ema_decay": 0.9,
            "gradient_accumulation_steps": 2,
            "batch_size": 2,
            "dataset": {"image_transforms": ImageTransformsConfig(enable=True)},
        },
    ],
    ids=["plain", "everything"],
)
def test_a_resumed_run_ends_where_the_unbroken_one_does(
    data: Path, seen: Path, tmp_path: Path, streaming: bool, changes: dict[str, Any]
) -> None:
    reading = {"streaming": streaming} | changes.get("dataset", {})
    root = seen if "dataset" in changes else data
    config = tiny_config(root, tmp_path / "out", **(changes | {"dataset": reading}))
    last, _ = run(config)
    unbroken = weights(last), load_file(last / "training_state/optimizer_state.safetensors")
    again, said = run(resumed(config, 3))
    assert again == last
    assert "from step 3 to 6" in said
    resumed_state = load_file(last / "training_state/optimizer_state.safetensors")
    torch.testing.assert_close((weights(last), resumed_state), unbroken, rtol=0, atol=0)
    assert [line["step"] for line in metrics(tmp_path / "out")] == [2, 4, 6]


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "map-style"])
def test_a_worker_and_this_process_alone_see_the_same(
    data: Path, tmp_path: Path, streaming: bool
) -> None:
    finals = []
    for workers in (0, 1):
        out = tmp_path / f"out{workers}"
        reading = {"streaming": streaming}
        config = tiny_config(data, out, num_workers=workers, steps=2, dataset=reading)
        finals.append(weights(run(config)[0]))
    torch.testing.assert_close(finals[0], finals[1], rtol=0, atol=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 3}, "saved with --batch_size=4, now 3"),
        ({"dataset": {"streaming": False}}, "saved with --dataset.streaming=true, now"),
        ({"dataset": {"episodes": (0, 1)}}, "the order differs from the interrupted run's"),
        ({"policy": replace(TINY_ACT, dim_model=64)}, "wanted .*, found"),
    ],
    ids=["batch size", "reader", "episodes", "policy"],
)
def test_what_would_not_continue_the_run_is_named(
    data: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    out = tmp_path / "out"
    run(tiny_config(data, out, steps=1))
    with pytest.raises(CheckpointError, match=message):
        run(resumed(tiny_config(data, out, **changes), 1))
    assert [line["step"] for line in metrics(out)] == [1]


def test_another_seed_is_accepted_where_it_is_asked_for(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = tiny_config(data, tmp_path / "out", steps=1)
    run(config)
    config = resumed(config, 1, seed=7, steps=2)
    with pytest.raises(CheckpointError, match="seed"):
        run(config)
    run(config, "seed")
    assert "--seed=7 instead of 1000" in caplog.text


@pytest.mark.parametrize("place", ["", "runs/first", "../linked/run"])
def test_nothing_is_written_into_the_dataset(data: Path, tmp_path: Path, place: str) -> None:
    root = tmp_path / "data"
    shutil.copytree(data, root)
    (tmp_path / "linked").symlink_to(root)
    before = sorted(root.rglob("*"))
    with pytest.raises(ValueError, match=r"--output_dir=\S+ lies inside the dataset"):
        run(tiny_config(root, root / place, steps=1))
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize("key", ["action", "observation.state"])
def test_a_type_that_no_tensor_has_is_named(data: Path, tmp_path: Path, key: str) -> None:
    root = tmp_path / "data"
    shutil.copytree(data, root)
    edit_info(root, lambda info: info["features"][key].update(dtype="float128"))
    with pytest.raises(DatasetError, match=f"feature {key} has dtype float128, wanted numbers"):
        run(tiny_config(root, tmp_path / "out", steps=1))


def test_fine_tuning_starts_from_weights_alone(data: Path, tmp_path: Path) -> None:
    first, _ = run(tiny_config(data, tmp_path / "first", steps=1))
    policy = replace(TINY_ACT, path=str(first))
    frozen = replace(policy, optimizer_lr=1e-12, optimizer_weight_decay=0.0)
    frozen = replace(frozen, optimizer_lr_backbone=0.0)
    second, said = run(
        tiny_config(data, tmp_path / "second", steps=1, policy=frozen),
        "policy.optimizer_lr",
    )
    assert "from step 0 to 1" in said
    torch.testing.assert_close(weights(second), weights(first))


def test_the_newest_checkpoints_are_kept(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(tiny_config(data, out, steps=3, save_freq=1, keep_checkpoints=2))
    names = sorted(entry.name for entry in (out / "checkpoints").iterdir())
    assert names == ["000002", "000003", "last"]


def test_without_checkpoints_none_is_written(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found, _ = run(tiny_config(data, out, steps=1, save_checkpoint=False))
    assert found == out
    assert [entry.name for entry in out.iterdir()] == ["metrics.jsonl"]


def test_a_loss_that_is_no_number_ends_the_run_unsaved(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    policy = replace(TINY_ACT, optimizer_lr=1e30)
    config = tiny_config(data, out, policy=policy, optimizer=OptimizerConfig(grad_clip_norm=0))
    with pytest.raises(StreamError, match=r"the loss is (nan|inf) at step"):
        run(config)
    assert not (out / "checkpoints/last").exists()


def test_half_precision_trains(data: Path, tmp_path: Path) -> None:
    config = tiny_config(data, tmp_path / "out", policy=replace(TINY_ACT, use_amp=True), steps=1)
    assert all(value.dtype == torch.float32 for value in weights(run(config)[0]).values())


def test_a_signal_saves_and_ends_the_run(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    config = tiny_config(data, out, steps=100_000, log_freq=1, save_freq=100_000)
    (ended,) = run_ranks(train_and_stop, config, out / "metrics.jsonl", count=1, folder=tmp_path)
    assert ended.code == 0, ended.said
    step = metrics(out)[-1]["step"]
    assert f"stopped after step {step}, as a signal asked" in ended.said
    assert f"checkpoint {out}/checkpoints/{step:06d}" in ended.said
    assert (out / "checkpoints/last").resolve().name == f"{step:06d}"
    assert step < 100_000


def test_a_run_killed_ten_times_ends_where_the_unbroken_one_does(
    data: Path, tmp_path: Path
) -> None:
    random = np.random.default_rng(0)
    changes: dict[str, Any] = {"steps": 20, "save_freq": 1, "log_freq": 1, "keep_checkpoints": 2}
    wanted = weights(run(tiny_config(data, tmp_path / "unbroken", **changes))[0])
    out = tmp_path / "out"
    config = tiny_config(data, out, **changes)
    last, log = out / "checkpoints/last", out / "metrics.jsonl"
    codes = []
    for _ in range(10):
        path = last / "pretrained_model/train_config.json"
        begun = replace(config, resume=last.exists(), config_path=str(path))
        if not last.exists():
            shutil.rmtree(out, ignore_errors=True)
        size = log.stat().st_size if log.exists() else 0
        more = int(random.integers(1, 600))
        ended = run_until(
            lambda: log.exists() and log.stat().st_size > size + more,  # noqa: B023
            train_and_print,
            begun,
            folder=tmp_path,
        )
        codes.append(ended.code)
        for checkpoint in list_checkpoints(out / "checkpoints"):
            assert read_state(checkpoint / "training_state").step == int(checkpoint.name)
            assert weights(checkpoint).keys() == wanted.keys()
    assert codes == [-signal.SIGKILL] * 10
    path = last / "pretrained_model/train_config.json"
    finished, _ = run(replace(config, resume=True, config_path=str(path)))
    torch.testing.assert_close(weights(finished), wanted, rtol=0, atol=0)
    lines = [
        [(line["step"], line["items"], line["loss"]) for line in metrics(folder)]
        for folder in (out, tmp_path / "unbroken")
    ]
    assert lines[0] == lines[1]
    assert [step for step, *_ in lines[0]] == list(range(1, 21))


def test_ranks_train_together_and_rank_0_writes(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    config = tiny_config(data, out, steps=2, log_freq=1, dataset={"eval_split": 0.25})
    for ended in run_ranks(train_and_print, config, count=2, folder=tmp_path):
        assert ended.code == 0, ended.said
    found = [(line["step"], line["items"]) for line in metrics(out) if "items" in line]
    assert found == [(1, 8), (2, 16)]
    state = out / "checkpoints/000002/training_state"
    assert len(json.loads((state / "stream_state.json").read_text())["ranks"]) == 2
    assert (state / "rng_state_rank_1.safetensors").is_file()

    config = resumed(replace(config, steps=3), 2)
    first, second = run_ranks(train_and_print, config, count=2, folder=tmp_path)
    assert "from step 2 to 3" in first.said
    assert second.said == f"{out}/checkpoints/000003\n"
    with pytest.raises(CheckpointError, match="saved by 2 ranks, now run by 1"):
        run(resumed(replace(config, steps=4), 3))


def test_ranks_without_an_episode_all_fail_alike(data: Path, tmp_path: Path) -> None:
    config = tiny_config(data, tmp_path / "out", dataset={"episodes": (1,)})
    first, second = run_ranks(train_and_print, config, count=2, folder=tmp_path)
    assert first == second
    assert "error: " in first.said
    assert "2 ranks" in first.said
