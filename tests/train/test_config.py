from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from lerobot_stream.train.config import (
    DatasetConfig,
    ImageTransformsConfig,
    SchedulerConfig,
    TrainConfig,
    write_config,
)
from lerobot_stream.train.policies.act_config import ActConfig
from lerobot_stream.train.policies.config import PolicyConfig
from lerobot_stream.train.records import record_from_json

DATA = DatasetConfig("owner/name")
ACT_FILE = Path(__file__).parents[2] / "../shared/interop/lerobot_act/config.json"


def test_the_file_holds_the_settings(tmp_path: Path) -> None:
    config = TrainConfig(
        DatasetConfig("owner/name", episodes=(0, 4), eval_split=0.25),
        ActConfig(dim_model=64, temporal_ensemble_coeff=0.1, n_action_steps=1),
        scheduler=SchedulerConfig("cosine_decay_with_warmup", num_warmup_steps=3),
        rename_map={"action.joints": "action"},
        seed=None,
    )
    write_config(config, tmp_path / "train_config.json")
    values = json.loads((tmp_path / "train_config.json").read_bytes())
    assert record_from_json(TrainConfig, values) == config


def test_dotted_names_are_nested_in_the_file(tmp_path: Path) -> None:
    write_config(TrainConfig(DATA), tmp_path / "train_config.json")
    values = json.loads((tmp_path / "train_config.json").read_text())
    assert values["dataset"]["repo_id"] == "owner/name"
    assert values["dataset"]["image_transforms"]["tfs"]["hue"]["kwargs"] == {"hue": [-0.05, 0.05]}
    assert values["policy"]["type"] == "act"


def test_unknown_names_in_the_file_are_named() -> None:
    values = {"dataset": {"repo_id": "a/b", "streming": True}}
    with pytest.raises(ValueError, match=r"dataset\.streming, did you mean dataset\.streaming"):
        record_from_json(TrainConfig, values)


def test_a_dataset_must_be_given() -> None:
    with pytest.raises(ValueError, match="dataset"):
        record_from_json(TrainConfig, {})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "--batch_size must be at least 1, got 0"),
        ({"steps": 0}, "--steps must be at least 1, got 0"),
        ({"ema_decay": 1.0}, "--ema_decay must be below 1, got 1.0"),
        ({"resume": True}, "--resume=true needs --config_path"),
        ({"policy": ActConfig(chunk_size=10)}, "n_action_steps=100 is above --policy.chunk_size"),
        ({"policy": ActConfig(temporal_ensemble_coeff=0.1)}, "needs --policy.n_action_steps=1"),
        ({"policy": ActConfig(dim_model=36)}, "multiple of 4 and of --policy.n_heads=8, got 36"),
        ({"policy": ActConfig(normalization_mapping={"STATE": "MAX"})}, "STATE must be one of"),
        ({"policy": ActConfig(type="mine", dim_model=64)}, "dim_model belongs to act"),
        ({"policy": ActConfig(options={"a": 1})}, "--policy.options are for policies other"),
        (
            {"dataset": DatasetConfig("a/b", streaming_decoded_pool_gb=0)},
            "--dataset.streaming_decoded_pool_gb must be above 0, got 0",
        ),
    ],
)
def test_settings_that_cannot_be_meant_name_their_flag(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        TrainConfig(**({"dataset": DATA} | settings))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"type": "Blur", "kwargs": {"x": [0, 1]}}, "type must be one of"),
        ({"type": "ColorJitter", "kwargs": {"sharpness": [0, 1]}}, "has no sharpness"),
        ({"type": "ColorJitter", "kwargs": {"hue": [0.2, 0.1]}}, "hue must rise"),
        ({"type": "ColorJitter", "kwargs": {"hue": [-1, 1]}}, r"hue must lie in \[-0.5, 0.5\]"),
        ({"type": "ColorJitter", "kwargs": {"hue": 1}}, "hue must be a list of two numbers"),
        ({"type": "ColorJitter", "kwargs": {}}, "kwargs must be an object of ranges"),
        ({"type": "ColorJitter", "weight": -1, "kwargs": {"hue": [0, 0]}}, "weight must be"),
        ({"typ": "ColorJitter"}, "wanted an object of weight, type and kwargs"),
    ],
)
def test_picture_changes_that_make_no_sense_are_named(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^--dataset.image_transforms.tfs: mine: .*{message}"):
        TrainConfig(
            DatasetConfig("a/b", image_transforms=ImageTransformsConfig(tfs={"mine": entry}))
        )


def test_every_setting_says_what_it_means() -> None:
    def walk(record: type) -> None:
        for one in fields(record):
            assert one.metadata.get("help", "").endswith("."), one.name
            if is_dataclass(one.default_factory):
                walk(one.default_factory)

    walk(TrainConfig)
    walk(DatasetConfig)


def test_settings_can_be_made_without_torch() -> None:
    code = "import sys, lerobot_stream.train.config; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.skipif(not ACT_FILE.exists(), reason="no ../shared")
def test_act_is_configured_as_in_lerobot() -> None:
    theirs = json.loads(ACT_FILE.read_text())
    own = {one.name for one in fields(PolicyConfig)}
    for one in fields(ActConfig):
        if one.name in own:
            continue
        default = getattr(ActConfig(), one.name)
        assert theirs[one.name] == default, one.name


def test_a_stored_configuration_holds_no_credentials(tmp_path: Path) -> None:
    config = TrainConfig(
        dataset=DatasetConfig(repo_id="a/b", root="s3://KEY:SECRET@bucket/set"),
        output_dir=str(tmp_path),
    )
    write_config(config, tmp_path / "train_config.json")
    stored = (tmp_path / "train_config.json").read_text()
    assert "s3://bucket/set" in stored
    assert "SECRET" not in stored
