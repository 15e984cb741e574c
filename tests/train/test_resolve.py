from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lerobot_stream.errors import CheckpointError, MissingFileError
from lerobot_stream.train.config import DatasetConfig, TrainConfig, WandbConfig, write_config
from lerobot_stream.train.policies.act_config import ActConfig
from lerobot_stream.train.policies.act_files import write_act_config
from lerobot_stream.train.resolve import find_policy, resolve
from tests.train.tiny import FEATURES, TINY_ACT

DATA = DatasetConfig("a/b")
NONE: frozenset[str] = frozenset()


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A run's checkpoint, as far as settings go."""
    folder = tmp_path / "run/checkpoints/000005"
    (folder / "training_state").mkdir(parents=True)
    (folder / "training_state/stream_state.json").touch()
    (folder / "pretrained_model").mkdir()
    write_act_config(folder / "pretrained_model", TINY_ACT, FEATURES, device="cpu")
    write_config(TrainConfig(DATA), folder / "pretrained_model/train_config.json")
    (folder.parent / "last").symlink_to("000005")
    return folder


def test_a_new_run_has_a_name_and_a_folder() -> None:
    found = resolve(TrainConfig(DATA, job_name="grasp"), explicit=NONE)
    assert found.folder.parts[:2] == ("outputs", "train")
    assert found.folder.name.endswith("_grasp")
    assert (found.checkpoint, found.weights) == (None, None)
    assert resolve(TrainConfig(DATA), explicit=NONE).config.job_name == "act"


@pytest.mark.parametrize("left", ["checkpoints", "metrics.jsonl"])
def test_a_folder_that_holds_a_run_is_refused(tmp_path: Path, left: str) -> None:
    (tmp_path / left).mkdir()
    with pytest.raises(ValueError, match=r"holds a run already: .* or delete it"):
        resolve(TrainConfig(DATA, output_dir=str(tmp_path)), explicit=NONE)
    assert [entry.name for entry in tmp_path.iterdir()] == [left]


def test_a_run_that_can_be_continued_says_how(checkpoint: Path) -> None:
    folder = checkpoint.parent.parent
    with pytest.raises(ValueError, match=f"--resume=true --config_path={folder}/checkpoints/last"):
        resolve(TrainConfig(DATA, output_dir=str(folder)), explicit=NONE)


def test_a_resumed_run_goes_on_where_it_lies(checkpoint: Path) -> None:
    path = checkpoint.parent / "last/pretrained_model/train_config.json"
    config = TrainConfig(DATA, resume=True, config_path=str(path), output_dir="moved/since")
    found = resolve(config, explicit=NONE)
    assert found.folder == checkpoint.parent.parent.resolve()
    assert found.checkpoint == checkpoint.resolve()
    assert found.weights == checkpoint.resolve() / "pretrained_model"
    with pytest.raises(ValueError, match="--output_dir=moved/since is not where"):
        resolve(config, explicit=frozenset({"output_dir"}))


def test_a_configuration_that_is_no_checkpoint_cannot_be_resumed(tmp_path: Path) -> None:
    path = str(tmp_path / "train_config.json")
    with pytest.raises(CheckpointError, match="is not there"):
        resolve(TrainConfig(DATA, resume=True, config_path=path), explicit=NONE)


@pytest.mark.parametrize("place", ["", "pretrained_model"])
def test_fine_tuning_takes_the_policys_settings(checkpoint: Path, place: str) -> None:
    asked = ActConfig(path=str(checkpoint / place), kl_weight=3.0)
    found = resolve(TrainConfig(DATA, asked), explicit=NONE)
    assert found.config.policy == replace(TINY_ACT, path=asked.path, kl_weight=3.0, device=None)
    assert found.weights == checkpoint / "pretrained_model"
    assert found.checkpoint is None


def test_what_is_asked_for_wins_even_if_it_is_the_default(checkpoint: Path) -> None:
    asked = ActConfig(path=str(checkpoint))
    found = resolve(TrainConfig(DATA, asked), explicit=frozenset({"policy.optimizer_lr"}))
    assert found.config.policy.optimizer_lr == 1e-5
    assert found.config.policy.dim_model == TINY_ACT.dim_model


def test_a_policy_of_another_type_than_asked_for_is_an_error(checkpoint: Path) -> None:
    asked = ActConfig(type="mine", path=str(checkpoint))
    with pytest.raises(CheckpointError, match="wanted a policy of type mine, found act"):
        resolve(TrainConfig(DATA, asked), explicit=frozenset({"policy.type"}))


def test_a_folder_without_a_policy_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"wanted a policy's config\.json, found none"):
        find_policy(str(tmp_path))


def test_a_policy_that_the_hub_does_not_give_is_named() -> None:
    with pytest.raises(MissingFileError, match="nobody/nothing: is no folder, nor to be had"):
        find_policy("nobody/nothing")


def test_a_tracked_run_has_an_id_to_go_on_with() -> None:
    config = TrainConfig(DATA, wandb=WandbConfig(enable=True))
    run_id = resolve(config, explicit=NONE).config.wandb.run_id
    assert run_id is not None
    assert len(run_id) == 8
