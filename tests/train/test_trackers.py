from __future__ import annotations

import multiprocessing
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from lerobot_stream.errors import StreamError
from lerobot_stream.train.config import DatasetConfig, TensorboardConfig, TrainConfig, WandbConfig
from lerobot_stream.train.trackers import open_trackers

DATA = DatasetConfig("a/b", root="s3://KEY:SECRET@bucket/set")


class FakeRun:
    """Records what it is told."""

    def __init__(self) -> None:
        self.begun: dict[str, Any] = {}
        self.logged: list[tuple[int, dict[str, float]]] = []
        self.finished = False

    def log(self, metrics: dict[str, float], *, step: int) -> None:
        self.logged.append((step, metrics))

    def finish(self) -> None:
        self.finished = True


def test_weights_and_biases_gets_settings_and_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = FakeRun()

    def init(**settings: Any) -> FakeRun:
        run.begun = settings
        return run

    module = types.ModuleType("wandb")
    module.init = init  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", module)
    wandb = WandbConfig(enable=True, project="p", mode="offline", run_id="abc")
    (tracker,) = open_trackers(TrainConfig(DATA, wandb=wandb, job_name="job"), tmp_path)
    tracker.log(3, {"loss": 1.5})
    tracker.close()
    assert (run.begun["id"], run.begun["resume"], run.begun["mode"]) == ("abc", "allow", "offline")
    assert (run.begun["project"], run.begun["name"]) == ("p", "job")
    dataset = run.begun["config"]["dataset"]
    assert (dataset["repo_id"], dataset["root"]) == ("a/b", "s3://bucket/set")
    assert run.logged == [(3, {"loss": 1.5})]
    assert run.finished


@pytest.mark.parametrize(
    ("config", "package"),
    [
        (TrainConfig(DATA, wandb=WandbConfig(enable=True)), "wandb"),
        (TrainConfig(DATA, tensorboard=TensorboardConfig(enable=True)), "tensorboard"),
    ],
    ids=["wandb", "tensorboard"],
)
def test_a_package_that_is_not_there_is_named(
    config: TrainConfig, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(StreamError, match=f"package {package} is not installed") as caught:
        open_trackers(config, tmp_path)
    assert caught.value.hint == f"pip install {package}"


def test_tensorboard_reads_back_the_metrics(tmp_path: Path) -> None:
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    config = TrainConfig(DATA, tensorboard=TensorboardConfig(enable=True))
    for steps in ((1, 2), (3,)):  # a resumed run adds a file
        (tracker,) = open_trackers(config, tmp_path)
        for step in steps:
            tracker.log(step, {"loss": 1.5 * step, "eval/action_error": 0.5})
        tracker.close()
    found = [
        (value.tag, event.step, value.tensor.float_val[0])
        for file in (tmp_path / "tensorboard").iterdir()
        for event in loader.EventFileLoader(str(file)).Load()
        for value in event.summary.value
    ]
    wanted = [("loss", step, 1.5 * step) for step in (1, 2, 3)]
    assert sorted(found) == [("eval/action_error", step, 0.5) for step in (1, 2, 3)] + wanted


def test_weights_and_biases_itself_writes_a_run_offline(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    process = multiprocessing.get_context("spawn").Process(target=log_offline, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == 0
    (file,) = tmp_path.rglob("run-abc.wandb")  # complete when the process has ended
    assert b"loss" in file.read_bytes()


def log_offline(folder: Path) -> None:
    wandb = WandbConfig(enable=True, mode="offline", run_id="abc")
    (tracker,) = open_trackers(TrainConfig(DATA, wandb=wandb), folder)
    tracker.log(3, {"loss": 1.5})
    tracker.close()


def test_nothing_is_opened_unasked(tmp_path: Path) -> None:
    assert open_trackers(TrainConfig(DATA), tmp_path) == []
