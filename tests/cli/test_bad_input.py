"""Whatever is wrong with what it is given, training ends in a clear line and changes nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lerobot_stream.cli.main import run
from tests.lerobot import Camera, Written, edit_episodes, edit_info, write_dataset
from tests.media import encode

TOP = "observation.images.top"
SMALL = [
    "--policy.dim_model=16",
    "--policy.n_heads=2",
    "--policy.chunk_size=2",
    "--policy.n_action_steps=2",
]


def write_video(path: Path, numbers: Sequence[int]) -> None:
    encode(path, numbers)


@pytest.fixture
def written(tmp_path: Path) -> Written:
    camera = Camera(write_video, episodes_per_file=2, width=96)
    return write_dataset(tmp_path / "dataset", lengths=(4, 3, 5), cameras={TOP: camera})


def content(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def train(written: Written, *flags: str) -> int:
    address = ["--dataset.repo_id=local/arm", f"--dataset.root={written.root}"]
    folder = f"--output_dir={written.root.parent / 'run'}"
    streaming = "--dataset.streaming=true"
    return run("lerobot-train", ["train"], [*address, streaming, *SMALL, folder, *flags])


def remove(written: Written) -> None:
    shutil.rmtree(written.root)


def make_v2(written: Written) -> None:
    edit_info(written.root, lambda info: info.update(codebase_version="v2.1"))


def remove_episodes(written: Written) -> None:
    shutil.rmtree(written.root / "meta/episodes")
    edit_info(written.root, lambda info: info.update(total_episodes=0, total_frames=0))


def tear_rows(written: Written) -> None:
    path = written.root / written.data_paths[2]
    path.write_bytes(path.read_bytes()[:-6])


def tear_video(written: Written) -> None:
    path = written.root / written.video_paths[TOP][2]
    path.write_bytes(path.read_bytes()[:-6])


def leave_a_pointer(written: Written) -> None:
    text = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12345\n"
    (written.root / written.video_paths[TOP][0]).write_text(text)


def lead_outside(written: Written) -> None:
    edit_info(written.root, lambda info: info.update(video_path="../{video_key}/{file_index}.mp4"))


def break_json(written: Written) -> None:
    (written.root / "meta/info.json").write_text(json.dumps({"fps": 10})[:-1])


def misplace_rows(written: Written) -> None:
    def change(row: dict[str, Any]) -> None:
        if row["episode_index"] == 2:
            row["data/file_index"] = 0

    edit_episodes(written.root, change)


def fold_actions(written: Written) -> None:
    edit_info(written.root, lambda info: info["features"]["action"].update(shape=[1, 2]))


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        pytest.param(remove, ["no such folder"], id="missing folder"),
        pytest.param(make_v2, ["v2.1", "convert_dataset_v21_to_v30"], id="v2.1"),
        pytest.param(remove_episodes, ["no episodes"], id="no episodes"),
        pytest.param(tear_rows, ["episode 2", "file-001.parquet", "footer"], id="torn rows"),
        pytest.param(tear_video, [TOP, "episode 2", "file-001.mp4"], id="torn video"),
        pytest.param(leave_a_pointer, [TOP, "episodes 0-1", "git lfs pull"], id="LFS pointer"),
        pytest.param(lead_outside, ["video_path", "outside"], id="outside the root"),
        pytest.param(break_json, ["meta/info.json"], id="broken info.json"),
        pytest.param(misplace_rows, ["episode 2", "file-001.parquet"], id="rows elsewhere"),
        pytest.param(fold_actions, ["action has shape [1, 2]", "one axis"], id="folded actions"),
    ],
)
def test_a_fault_of_the_data_is_named(
    spoil: Callable[[Written], None],
    named: list[str],
    written: Written,
    capsys: pytest.CaptureFixture[str],
) -> None:
    spoil(written)
    before = content(written.root)
    assert train(written) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("error: ") == 1
    for text in named:
        assert text in captured.err
    assert content(written.root) == before
    assert not (written.root.parent / "run").exists()


@pytest.mark.parametrize(
    ("flag", "code", "named"),
    [
        pytest.param("--dataset.episodes=[7]", 2, "episode 7", id="unknown episode"),
        pytest.param("--dataset.eval_split=0.9", 2, "eval_split", id="nothing left to train on"),
        pytest.param(
            "--dataset.streaming_byte_budget_gb=1e-9", 1, "episode", id="episode above the budget"
        ),
        pytest.param("--policy.type=nothing", 2, "nothing", id="unknown policy"),
        pytest.param("--seed=99999999999999999999", 2, "--seed must be at most", id="seed"),
        pytest.param("--batch_size=99999999999", 2, "--batch_size must be at most", id="batch"),
        pytest.param(
            "--dataset.streaming_byte_budget_gb=inf", 2, "budget_gb must be at most", id="budget"
        ),
        pytest.param(
            "--dataset.episodes=[99999999999999999999]", 2, "no number of 64 bits", id="episode"
        ),
    ],
)
def test_a_setting_that_does_not_fit_is_named(
    flag: str, code: int, named: str, written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(written, flag) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("error: ") == 1
    assert named in captured.err
    assert not (written.root.parent / "run").exists()


@pytest.mark.parametrize("below", ["", "run"], ids=["a file", "below a file"])
def test_an_output_folder_that_cannot_be_made_is_named(
    below: str, written: Written, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = tmp_path / "taken"
    taken.write_text("mine")
    assert train(written, f"--output_dir={taken / below}") == 1
    error = capsys.readouterr().err
    assert f"error: {taken / below}: cannot be written" in error
    assert "--output_dir" in error
    assert taken.read_text() == "mine"
