from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lerobot_stream.errors import CheckpointError
from lerobot_stream.train.policies.act_config import ActConfig
from lerobot_stream.train.policies.act_files import read_act_config, write_act_config
from tests.train.tiny import FEATURES, TINY_ACT

THEIRS = Path(__file__).parents[3] / "../shared/interop/lerobot_act"


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_act_config(tmp_path, TINY_ACT, FEATURES, device="cpu")
    config, features = read_act_config(tmp_path)
    assert config == replace(TINY_ACT, device=None)
    assert features == FEATURES


@pytest.mark.skipif(not THEIRS.exists(), reason="no ../shared")
def test_the_file_has_lerobots_names(tmp_path: Path) -> None:
    write_act_config(tmp_path, ActConfig(), FEATURES, device="cpu")
    theirs = json.loads((THEIRS / "config.json").read_text())
    ours = json.loads((tmp_path / "config.json").read_text())
    assert ours.keys() == theirs.keys()
    data = {"input_features", "output_features", "push_to_hub"}
    assert {key: ours[key] for key in ours if key not in data} == {
        key: theirs[key] for key in theirs if key not in data
    }


@pytest.mark.skipif(not THEIRS.exists(), reason="no ../shared")
def test_lerobots_file_is_read() -> None:
    config, features = read_act_config(THEIRS)
    assert config == ActConfig()
    assert features.cameras == ("observation.images.top", "observation.images.wrist")
    assert features.outputs["action"].shape == (7,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"type": "diffusion"}, "wanted a policy of type act, found diffusion"),
        ({"n_obs_steps": 2}, "n_obs_steps must be 1, got 2"),
        ({"use_magic": True}, "unknown setting use_magic"),
        ({"dim_model": "wide"}, "dim_model: wanted int"),
        ({"input_features": None}, "is no configuration of ACT"),
    ],
)
def test_what_is_not_known_here_is_named(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    write_act_config(tmp_path, TINY_ACT, FEATURES, device="cpu")
    values = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(values | changes))
    with pytest.raises(CheckpointError, match=message):
        read_act_config(tmp_path)


def test_a_new_switch_that_is_off_changes_nothing(tmp_path: Path) -> None:
    write_act_config(tmp_path, TINY_ACT, FEATURES, device="cpu")
    values = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(values | {"use_magic": False, "new": None}))
    assert read_act_config(tmp_path)[0].dim_model == TINY_ACT.dim_model


@pytest.mark.parametrize(("written", "read"), [(0, False), (1, True)])
def test_a_switch_that_lerobot_writes_as_a_number_is_one(
    tmp_path: Path, written: int, read: bool
) -> None:
    write_act_config(tmp_path, TINY_ACT, FEATURES, device="cpu")
    values = json.loads((tmp_path / "config.json").read_text())
    values["replace_final_stride_with_dilation"] = written
    (tmp_path / "config.json").write_text(json.dumps(values))
    assert read_act_config(tmp_path)[0].replace_final_stride_with_dilation is read
