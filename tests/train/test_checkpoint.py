from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors import SafetensorError

from lerobot_stream.errors import CheckpointError
from lerobot_stream.train.checkpoint import (
    find_checkpoint,
    list_checkpoints,
    save_checkpoint,
    step_name,
)

PARTS = ("pretrained_model/model.bin", "training_state/step.json")
WORDS = 20_000


def write_step(step: int, words: int = 10) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        for part in PARTS:
            (folder / part).write_bytes(np.full(words, step, dtype="<i4").tobytes())

    return write


def read_step(folder: Path, words: int = 10) -> int:
    """The step that every byte of a checkpoint is of."""
    seen = np.concatenate([np.frombuffer((folder / part).read_bytes(), "<i4") for part in PARTS])
    assert len(seen) == words * len(PARTS)
    assert len(np.unique(seen)) == 1
    return int(seen[0])


def save(folder: Path, step: int, keep: int | None = None) -> Path:
    return save_checkpoint(folder, step_name(step, 100), write_step(step), keep=keep)


def visible(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_last_points_to_the_newest(tmp_path: Path) -> None:
    save(tmp_path, 10)
    assert save(tmp_path, 20) == tmp_path / "000020"
    assert (tmp_path / "last").readlink() == Path("000020")
    assert [read_step(tmp_path / name) for name in ("000010", "000020", "last")] == [10, 20, 20]
    assert visible(tmp_path) == ["000010", "000020", "last"]


def test_long_runs_have_longer_names() -> None:
    assert step_name(7, 100) == "000007"
    assert step_name(7, 10**7) == "00000007"


def test_the_newest_are_kept(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4):
        save(tmp_path, step, keep=2)
    assert visible(tmp_path) == ["000003", "000004", "last"]


@pytest.mark.parametrize("again", [1, 2], ids=["not last", "last"])
def test_a_step_that_is_there_is_replaced(tmp_path: Path, again: int) -> None:
    save(tmp_path, 1)
    save(tmp_path, 2)
    save_checkpoint(tmp_path, step_name(again, 100), write_step(77), keep=None)
    assert read_step(tmp_path / step_name(again, 100)) == 77
    assert read_step(tmp_path / "last") == 77
    assert visible(tmp_path) == ["000001", "000002", "last"]


@pytest.mark.parametrize(
    "fault",
    [
        OSError(28, "No space left on device"),
        SafetensorError("I/O error: No space left on device (os error 28)"),
        CheckpointError("No space left on device"),
    ],
    ids=["file", "tensors", "state"],
)
def test_a_failed_write_leaves_the_former_and_nothing_else(
    tmp_path: Path, fault: Exception
) -> None:
    save(tmp_path, 1)

    def fail(folder: Path) -> None:
        (folder / PARTS[0]).write_bytes(b"half")
        raise fault

    with pytest.raises(CheckpointError, match="No space left on device"):
        save_checkpoint(tmp_path, "000002", fail, keep=None)
    assert visible(tmp_path) == ["000001", "last"]
    assert read_step(tmp_path / "last") == 1
    save(tmp_path, 3)
    assert visible(tmp_path) == ["000001", "000003", "last"]


def test_a_step_that_cannot_be_replaced_stays_as_it_was(tmp_path: Path) -> None:
    save(tmp_path, 1)

    def fail(folder: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(tmp_path, "000001", fail, keep=None)
    assert visible(tmp_path) == ["000001", "last"]
    assert read_step(tmp_path / "last") == 1


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="file"):
        save(tmp_path / "file", 1)


def test_the_checkpoint_of_a_configuration_is_found_through_last(tmp_path: Path) -> None:
    folder = save(tmp_path, 5)
    (folder / "pretrained_model/train_config.json").touch()
    (folder / "training_state/stream_state.json").touch()
    path = tmp_path / "last/pretrained_model/train_config.json"
    assert find_checkpoint(path) == folder.resolve()


def test_a_checkpoint_of_another_program_points_to_its_weights(tmp_path: Path) -> None:
    folder = save(tmp_path, 5)
    (folder / "pretrained_model/train_config.json").touch()
    with pytest.raises(CheckpointError, match="another program wrote it") as caught:
        find_checkpoint(folder / "pretrained_model/train_config.json")
    assert f"--policy.path={folder.resolve()}/pretrained_model" in str(caught.value.hint)


def test_a_folder_is_no_configuration(tmp_path: Path) -> None:
    folder = save(tmp_path, 5)
    with pytest.raises(CheckpointError, match=r"wanted the train_config\.json in it") as caught:
        find_checkpoint(folder)
    assert "last/pretrained_model/train_config.json" in str(caught.value.hint)


def test_a_configuration_beside_no_state_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "train_config.json").touch()
    with pytest.raises(CheckpointError, match="training_state"):
        find_checkpoint(tmp_path / "train_config.json")


ENDLESS = """
import sys
from pathlib import Path
from tests.train.test_checkpoint import WORDS, write_step
from lerobot_stream.train.checkpoint import save_checkpoint

folder = Path(sys.argv[1])
step = int(sys.argv[2])
while True:
    step += 1
    # Every name comes twice, so that the one `last` points to is replaced, too.
    name = f"{step - step % 2:06d}"
    save_checkpoint(folder, name, write_step(step, WORDS), keep=3)
    print(step, flush=True)
"""


@pytest.mark.parametrize("seed", range(3))
def test_a_kill_at_any_moment_leaves_a_whole_last(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    step = 0
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", ENDLESS, str(tmp_path), str(step)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        for _ in range(int(random.integers(1, 5))):
            step = int(process.stdout.readline())
        # A moment between two lines, wherever that is: spin, for sleeping is coarser.
        for _ in range(int(random.integers(0, 200_000))):
            pass
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        found = read_step(tmp_path / "last", WORDS)
        assert found >= step
        for folder in list_checkpoints(tmp_path):
            read_step(folder, WORDS)
        step = found
    save_checkpoint(tmp_path, "999999", write_step(999_999, WORDS), keep=1)
    assert visible(tmp_path) == ["999999", "last"]
