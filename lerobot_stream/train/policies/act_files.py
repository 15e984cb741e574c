"""ACT's ``config.json``, as LeRobot writes and reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lerobot_stream.errors import CheckpointError
from lerobot_stream.train.features import PolicyFeature, PolicyFeatures
from lerobot_stream.train.policies.act_config import ActConfig
from lerobot_stream.train.records import record_from_json, record_to_json

CONFIG = "config.json"

_FIXED: dict[str, Any] = {
    "n_obs_steps": 1,
    "use_peft": False,
    "push_to_hub": False,
    "repo_id": None,
    "private": None,
    "tags": None,
    "license": None,
    "pretrained_revision": None,
}
"""What LeRobot's file also has; only ``n_obs_steps`` matters, and one look is all ACT takes."""


def write_act_config(
    folder: Path, config: ActConfig, features: PolicyFeatures, *, device: str
) -> None:
    """Write the file.

    Args:
        folder: Where a policy is being saved.
        config: Its settings.
        features: What it sees and predicts.
        device: Kind of device it was trained on.
    """
    values = record_to_json(config)
    values["pretrained_path"] = values.pop("path")
    del values["options"]
    values |= {
        "device": device,
        "input_features": {key: one.to_json() for key, one in features.inputs.items()},
        "output_features": {key: one.to_json() for key, one in features.outputs.items()},
    }
    (folder / CONFIG).write_text(json.dumps(values | _FIXED, indent=4) + "\n", encoding="utf-8")


def read_act_config(folder: Path) -> tuple[ActConfig, PolicyFeatures]:
    """Read the file back.

    Args:
        folder: Where a policy was saved, by this project or by LeRobot.

    Returns:
        Its settings, with ``device`` and ``path`` unset, and what it sees and predicts.

    Raises:
        CheckpointError: The file is missing or damaged, is of another policy, or asks for
            something that is not known here.
    """
    path = folder / CONFIG
    try:
        values = json.loads(path.read_bytes())
        kind = values.get("type")
        if kind != "act":
            raise CheckpointError(f"wanted a policy of type act, found {kind}", path=str(path))
        inputs = _features(values.pop("input_features"))
        outputs = _features(values.pop("output_features"))
        config = record_from_json(ActConfig, _settings(values))
    except OSError as error:
        raise CheckpointError(f"cannot be read ({error.strerror})", path=str(path)) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"is no configuration of ACT ({error})", path=str(path)) from None
    return config, PolicyFeatures(inputs, outputs)


def _settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """What :class:`ActConfig` takes. Unknown switches that are off change nothing."""
    if values.get("n_obs_steps", 1) != 1:
        raise ValueError(f"n_obs_steps must be 1, got {values['n_obs_steps']}")
    dropped = {*_FIXED, "device", "pretrained_path"}
    known = ActConfig.__dataclass_fields__
    settings = {
        key: value
        for key, value in values.items()
        if key not in dropped and (key in known or value not in (None, False))
    }
    switch = "replace_final_stride_with_dilation"
    if settings.get(switch) in (0, 1):  # LeRobot also writes it as a number
        settings[switch] = bool(settings[switch])
    return settings


def _features(values: Mapping[str, Any]) -> dict[str, PolicyFeature]:
    return {
        key: PolicyFeature(one["type"], tuple(int(size) for size in one["shape"]))
        for key, one in values.items()
    }
