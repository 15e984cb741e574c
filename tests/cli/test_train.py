"""Training from the command line answers with the checkpoint, and goes on from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from lerobot_stream.cli.main import run
from tests.lerobot import Camera, Written, write_dataset
from tests.media import encode

TOP = "observation.images.top"


def write_video(path: Path, numbers: Sequence[int]) -> None:
    encode(path, numbers)


@pytest.fixture
def written(tmp_path: Path) -> Written:
    camera = Camera(write_video, episodes_per_file=2, width=96)
    return write_dataset(tmp_path / "dataset", lengths=(4, 3, 5), cameras={TOP: camera})


def train(*flags: str) -> int:
    return run("lerobot-train", ["train"], [*flags])


def start(written: Written, *flags: str) -> int:
    return train(
        "--dataset.repo_id=local/arm",
        f"--dataset.root={written.root}",
        "--policy.device=cpu",
        "--policy.dim_model=16",
        "--policy.n_heads=2",
        "--policy.dim_feedforward=16",
        "--policy.chunk_size=2",
        "--policy.n_action_steps=2",
        "--batch_size=2",
        "--num_workers=0",
        f"--output_dir={written.root.parent / 'run'}",
        *flags,
    )


def checkpoint_of(capsys: pytest.CaptureFixture[str]) -> Path:
    [answer] = capsys.readouterr().out.splitlines()
    return Path(answer)


@pytest.mark.parametrize("streaming", ["true", "false"])
def test_the_checkpoint_is_the_answer(
    streaming: str, written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(written, f"--dataset.streaming={streaming}", "--steps=1") == 0
    checkpoint = checkpoint_of(capsys)
    assert (checkpoint / "pretrained_model/model.safetensors").is_file()
    config = json.loads((checkpoint / "pretrained_model/train_config.json").read_bytes())
    assert config["dataset"]["streaming"] is (streaming == "true")


def test_flags_go_over_the_configuration_of_the_run_to_resume(
    written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(written, "--dataset.streaming=true", "--steps=1") == 0
    config_path = checkpoint_of(capsys) / "pretrained_model/train_config.json"
    assert train("--resume=true", f"--config_path={config_path}", "--steps=2") == 0
    again = checkpoint_of(capsys)
    assert again.parent == config_path.parents[2]
    config = json.loads((again / "pretrained_model/train_config.json").read_bytes())
    assert (config["steps"], config["batch_size"]) == (2, 2)


def test_a_folder_with_a_run_in_it_is_not_touched(
    written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(written, "--dataset.streaming=true", "--steps=1") == 0
    capsys.readouterr()
    assert start(written, "--dataset.streaming=true", "--steps=1") == 2
    assert "holds a run already" in capsys.readouterr().err


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("streaming", ["true", "false"])
def test_a_damaged_picture_is_told_alike_with_and_without_workers(
    streaming: str, workers: int, written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    for video in sorted((written.root / "videos").rglob("*.mp4")):
        data = bytearray(video.read_bytes())
        name = data.index(b"mdat")
        size = int.from_bytes(data[name - 4 : name])
        data[name + 4 : name - 4 + size] = bytes(size - 8)
        video.write_bytes(data)
    flags = [f"--dataset.streaming={streaming}", f"--num_workers={workers}", "--steps=1"]
    assert start(written, *flags) == 1
    told = [
        line for line in capsys.readouterr().err.splitlines() if "error" in line or "hint" in line
    ]
    error, hint = told
    assert error.startswith("error: episode ")
    assert f", {TOP}, videos/" in error
    assert "--dataset.exclude_episodes" in hint
