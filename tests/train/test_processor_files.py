from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from lerobot_stream.errors import CheckpointError
from lerobot_stream.train.features import PolicyFeature
from lerobot_stream.train.normalize import Normalizer, prepare_stats
from lerobot_stream.train.policies.act_config import NORMALIZATION
from lerobot_stream.train.processor import Postprocessor, Preprocessor
from lerobot_stream.train.processor_files import read_processors, write_processors

THEIRS = Path(__file__).parents[2] / "../shared/interop/lerobot_act"
CPU = torch.device("cpu")
INPUTS = {
    "observation.state": PolicyFeature("STATE", (6,)),
    "observation.images.top": PolicyFeature("VISUAL", (3, 96, 128)),
    "observation.images.wrist": PolicyFeature("VISUAL", (3, 96, 128)),
}
OUTPUTS = {"action": PolicyFeature("ACTION", (7,))}
NAMES = ("mean", "std", "min", "max")


def make_processors() -> tuple[Preprocessor, Postprocessor]:
    random = np.random.default_rng(0)
    everything = INPUTS | OUTPUTS
    sizes = {key: 3 if one.type == "VISUAL" else one.shape[0] for key, one in everything.items()}
    stats = {key: {name: random.random(size) for name in NAMES} for key, size in sizes.items()}
    prepared = prepare_stats(everything, NORMALIZATION, stats, use_imagenet_stats=False)
    after = {"action": prepared["action"]}
    return (
        Preprocessor(Normalizer(everything, NORMALIZATION, prepared), rename={}, device=CPU),
        Postprocessor(Normalizer(OUTPUTS, NORMALIZATION, after), device=CPU),
    )


@pytest.mark.skipif(not THEIRS.exists(), reason="no ../shared")
@pytest.mark.parametrize("name", ["policy_preprocessor.json", "policy_postprocessor.json"])
def test_the_files_say_what_lerobots_say(tmp_path: Path, name: str) -> None:
    write_processors(tmp_path, *make_processors())
    assert json.loads((tmp_path / name).read_text()) == json.loads((THEIRS / name).read_text())


def test_statistics_lie_in_safetensors_by_feature_and_name(tmp_path: Path) -> None:
    write_processors(tmp_path, *make_processors())
    before = load_file(tmp_path / "policy_preprocessor_step_3_normalizer_processor.safetensors")
    after = load_file(tmp_path / "policy_postprocessor_step_0_unnormalizer_processor.safetensors")
    assert set(before) == {f"{key}.{name}" for key in INPUTS | OUTPUTS for name in NAMES}
    assert set(after) == {f"action.{name}" for name in NAMES}
    assert before["observation.images.top.mean"].shape == (3, 1, 1)
    assert before["observation.state.std"].shape == (6,)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    before, after = make_processors()
    before.rename = {"a": "observation.state"}
    write_processors(tmp_path, before, after)
    read_before, read_after = read_processors(tmp_path, device=CPU)
    assert read_before.rename == before.rename
    assert read_before.normalizer.features == before.normalizer.features
    assert read_before.normalizer.modes == NORMALIZATION
    for written, read in ((before, read_before), (after, read_after)):
        torch.testing.assert_close(read.normalizer.stats, written.normalizer.stats, rtol=0, atol=0)


def spoil(path: Path, change: Any) -> None:
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "policy_preprocessor.json").unlink(), "policy_preprocessor.json: cannot"),
        (lambda f: (f / "policy_preprocessor.json").write_text("{"), "is no pipeline"),
        (
            lambda f: spoil(f / "policy_preprocessor.json", lambda v: v["steps"].pop()),
            "has no normalizer_processor with statistics",
        ),
        (
            lambda f: spoil(
                f / "policy_preprocessor.json",
                lambda v: v["steps"].append({"registry_name": "tokenizer_processor"}),
            ),
            "has the step tokenizer_processor, which is not known here",
        ),
        (
            lambda f: (
                f / "policy_preprocessor_step_3_normalizer_processor.safetensors"
            ).write_bytes(b"torn"),
            "holds no statistics",
        ),
    ],
)
def test_damage_is_named(tmp_path: Path, damage: Any, message: str) -> None:
    write_processors(tmp_path, *make_processors())
    damage(tmp_path)
    with pytest.raises(CheckpointError, match=message):
        read_processors(tmp_path, device=CPU)
