"""The files in which LeRobot keeps a policy's pre- and postprocessing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from lerobot_stream.errors import CheckpointError
from lerobot_stream.train.features import PolicyFeature
from lerobot_stream.train.normalize import EPSILON, Normalizer
from lerobot_stream.train.processor import Postprocessor, Preprocessor

PREPROCESSOR = "policy_preprocessor"
POSTPROCESSOR = "policy_postprocessor"
_NORMALIZER = "normalizer_processor"
_UNNORMALIZER = "unnormalizer_processor"
_RENAME = "rename_observations_processor"
_KNOWN = {
    _NORMALIZER,
    _UNNORMALIZER,
    _RENAME,
    "to_batch_processor",
    "device_processor",
}


def write_processors(
    folder: Path, preprocessor: Preprocessor, postprocessor: Postprocessor
) -> None:
    """Write both, each as one JSON file and one safetensors file.

    Args:
        folder: Where a policy is being saved.
        preprocessor: What comes before the policy.
        postprocessor: What comes after it.
    """
    device = {"device": preprocessor.device.type, "float_dtype": None}
    _write_pipeline(
        folder,
        PREPROCESSOR,
        [
            (_RENAME, {"rename_map": preprocessor.rename}, None),
            ("to_batch_processor", {}, None),
            ("device_processor", device, None),
            (_NORMALIZER, _config(preprocessor.normalizer), preprocessor.normalizer),
        ],
    )
    after = postprocessor.normalizer
    _write_pipeline(
        folder,
        POSTPROCESSOR,
        [
            (_UNNORMALIZER, _config(after), after),
            ("device_processor", {"device": "cpu", "float_dtype": None}, None),
        ],
    )


def read_processors(folder: Path, *, device: torch.device) -> tuple[Preprocessor, Postprocessor]:
    """Read both back.

    Args:
        folder: Where a policy was saved, by this project or by LeRobot.
        device: Where the policy computes.

    Returns:
        What comes before the policy, and what comes after it.

    Raises:
        CheckpointError: A file is missing or damaged, or has a step that is not known here.
    """
    before = _read_steps(folder, PREPROCESSOR)
    after = _read_steps(folder, POSTPROCESSOR)
    rename = before[_RENAME][0].get("rename_map", {}) if _RENAME in before else {}
    return (
        Preprocessor(_normalizer(folder, before, _NORMALIZER), rename=rename, device=device),
        Postprocessor(_normalizer(folder, after, _UNNORMALIZER), device=device),
    )


def _config(normalizer: Normalizer) -> dict[str, Any]:
    return {
        "eps": EPSILON,
        "features": {key: one.to_json() for key, one in normalizer.features.items()},
        "norm_map": normalizer.modes,
    }


def _write_pipeline(
    folder: Path, name: str, steps: list[tuple[str, dict[str, Any], Normalizer | None]]
) -> None:
    entries = []
    for number, (kind, config, normalizer) in enumerate(steps):
        entry: dict[str, Any] = {"registry_name": kind, "config": config}
        if normalizer is not None:
            entry["state_file"] = f"{name}_step_{number}_{kind}.safetensors"
            state = {
                f"{key}.{statistic}": value.cpu().contiguous()
                for key, named in normalizer.stats.items()
                for statistic, value in named.items()
            }
            save_file(state, folder / entry["state_file"])
        entries.append(entry)
    text = json.dumps({"name": name, "steps": entries}, indent=2)
    (folder / f"{name}.json").write_text(text, encoding="utf-8")


def _read_steps(folder: Path, name: str) -> dict[str, tuple[dict[str, Any], str | None]]:
    """Configuration and state file of each step, by kind."""
    path = folder / f"{name}.json"
    try:
        pipeline = json.loads(path.read_bytes())
        steps = {
            step["registry_name"]: (step.get("config", {}), step.get("state_file"))
            for step in pipeline["steps"]
        }
    except OSError as error:
        raise CheckpointError(f"cannot be read ({error.strerror})", path=str(path)) from None
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"is no pipeline ({error!r})", path=str(path)) from None
    unknown = [kind for kind in steps if kind not in _KNOWN]
    if unknown:
        raise CheckpointError(f"has the step {unknown[0]}, which is not known here", path=str(path))
    return steps


def _normalizer(
    folder: Path, steps: Mapping[str, tuple[dict[str, Any], str | None]], kind: str
) -> Normalizer:
    if kind not in steps or steps[kind][1] is None:
        raise CheckpointError(f"has no {kind} with statistics", path=str(folder))
    config, state_file = steps[kind]
    path = folder / Path(str(state_file)).name
    try:
        state = load_file(path)
        features = {
            key: PolicyFeature(one["type"], tuple(one["shape"]))
            for key, one in config["features"].items()
        }
        modes = dict(config["norm_map"])
    except (OSError, SafetensorError, KeyError, TypeError) as error:
        raise CheckpointError(f"holds no statistics ({error})", path=str(path)) from None
    stats: dict[str, dict[str, Tensor]] = {}
    for name, value in state.items():
        key, _, statistic = name.rpartition(".")
        stats.setdefault(key, {})[statistic] = value
    return Normalizer(features, modes, stats)
