"""ACT made ready: from settings and a dataset's features, or from a checkpoint."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from lerobot_stream.errors import CheckpointError, DatasetError
from lerobot_stream.train.features import (
    ACTION,
    ENVIRONMENT,
    STATE,
    PolicyFeatures,
    split_features,
)
from lerobot_stream.train.normalize import Normalizer, prepare_stats
from lerobot_stream.train.optim import make_adamw, make_scheduler
from lerobot_stream.train.policies.act import ActPolicy
from lerobot_stream.train.policies.act_config import ActConfig
from lerobot_stream.train.policies.act_files import read_act_config, write_act_config
from lerobot_stream.train.policies.backbone_weights import load_backbone
from lerobot_stream.train.policies.base import PolicyRequest, PolicySetup
from lerobot_stream.train.processor import Postprocessor, Preprocessor
from lerobot_stream.train.processor_files import read_processors, write_processors

MODEL = "model.safetensors"


def make_act(request: PolicyRequest) -> PolicySetup:
    """Make ACT for a dataset; see :data:`~lerobot_stream.train.policies.base.PolicyFactory`."""
    config = request.config
    if not isinstance(config, ActConfig):
        raise TypeError(f"wanted an ActConfig, got a {type(config).__name__}")
    features = _features_of(request)
    policy = ActPolicy(config, features)
    if request.checkpoint is not None:
        _check_features(request.checkpoint, features)
        load_weights(policy, request.checkpoint)
    elif config.pretrained_backbone_weights is not None and features.cameras:
        load_backbone(policy.model.backbone, config.pretrained_backbone_weights)
    policy.to(request.device)
    preprocess, postprocess = _processors(request, config, features)
    action = {name: key for key, name in request.rename.items()}.get(ACTION, ACTION)
    return PolicySetup(
        policy=policy,
        preprocess=preprocess,
        postprocess=postprocess,
        action=action,
        delta_timestamps={action: [i / request.info.fps for i in range(config.chunk_size)]},
        make_optimizer=lambda optimizer: make_adamw(policy.param_groups(), optimizer),
        make_scheduler=make_scheduler,
        grad_clip_norm=10.0,
        save=functools.partial(_save, policy, preprocess, postprocess),
    )


def load_act(folder: Path, *, device: str) -> tuple[ActPolicy, Preprocessor, Postprocessor]:
    """Load a trained policy with its processors, ready to act.

    Args:
        folder: ``…/pretrained_model``, written by this project or by LeRobot.
        device: Where it is to compute.

    Returns:
        The policy in evaluation mode, what comes before it and what comes after it.

    Raises:
        CheckpointError: A file is missing or damaged.
    """
    config, features = read_act_config(folder)
    policy = ActPolicy(config, features)
    load_weights(policy, folder)
    processors = read_processors(folder, device=torch.device(device))
    return policy.to(device).eval(), *processors


def load_weights(policy: nn.Module, folder: Path) -> None:
    """Load a policy's ``model.safetensors``.

    Args:
        policy: What takes the weights.
        folder: Where they were saved.

    Raises:
        CheckpointError: The file is missing or damaged, or has other names or shapes.
    """
    path = folder / MODEL
    try:
        state = load_file(path)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"cannot be read ({error})", path=str(path)) from None
    wanted = policy.state_dict()
    for key in (*wanted, *state):
        found = tuple(state[key].shape) if key in state else "nothing"
        shape = tuple(wanted[key].shape) if key in wanted else "nothing"
        if found != shape:
            raise CheckpointError(
                f"{key}: wanted {shape}, found {found}",
                path=str(path),
                hint="the settings of the policy must be those it was trained with",
            )
    policy.load_state_dict(state)


def _features_of(request: PolicyRequest) -> PolicyFeatures:
    features = split_features(request.info.features, rename=request.rename)
    for key, feature in request.info.features.items():
        name = request.rename.get(key, key)
        if name in (STATE, ENVIRONMENT, ACTION) and name not in features.everything():
            raise DatasetError(
                f"feature {key} has dtype {feature.dtype}, wanted numbers that a tensor can hold",
                path="meta/info.json",
            )
    if ACTION not in features.outputs:
        raise DatasetError(
            f"no feature {ACTION}; there are {', '.join(request.info.features)}",
            path="meta/info.json",
            hint='name the one to learn: --rename_map={"its_name":"action"}',
        )
    for key in features.cameras:
        if features.inputs[key].shape[0] != 3:
            raise DatasetError(
                f"{key} has {features.inputs[key].shape[0]} channels, ACT sees 3",
                path="meta/info.json",
            )
    for key in (STATE, ENVIRONMENT, ACTION):
        shape = features.everything()[key].shape if key in features.everything() else (1,)
        if len(shape) != 1 or not shape[0]:
            raise DatasetError(
                f"{key} has shape {list(shape)}, ACT takes one axis of at least one value",
                path="meta/info.json",
            )
    outputs = {ACTION: features.outputs[ACTION]}
    return PolicyFeatures(features.inputs, outputs)


def _check_features(checkpoint: Path, features: PolicyFeatures) -> None:
    """A policy goes on with the features it knows; only pictures may change their size."""
    _, known = read_act_config(checkpoint)
    for key in {**known.everything(), **features.everything()}:
        before, now = known.everything().get(key), features.everything().get(key)
        same_size = before is not None and now is not None and before.shape == now.shape
        both_pictures = before is not None and now is not None and now.type == "VISUAL"
        if not (same_size or both_pictures):
            raise CheckpointError(
                f"{key}: the policy knows {before and before.shape}, "
                f"the dataset has {now and now.shape}",
                path=str(checkpoint),
                hint='features can be renamed: --rename_map={"name in the dataset":"its name"}',
            )


def _processors(
    request: PolicyRequest, config: ActConfig, features: PolicyFeatures
) -> tuple[Preprocessor, Postprocessor]:
    named = {request.rename.get(key, key): value for key, value in request.stats.items()}
    stats = prepare_stats(
        features.everything(),
        config.normalization_mapping,
        named,
        use_imagenet_stats=request.use_imagenet_stats,
    )
    device = torch.device(request.device)
    modes = config.normalization_mapping
    before = Normalizer(features.everything(), modes, stats)
    after = Normalizer(features.outputs, modes, stats)
    return (
        Preprocessor(before, rename=request.rename, device=device),
        Postprocessor(after, device=device),
    )


def _save(
    policy: ActPolicy,
    preprocess: Preprocessor,
    postprocess: Postprocessor,
    folder: Path,
    weights: Mapping[str, Tensor],
) -> None:
    device = preprocess.device.type
    write_act_config(folder, policy.config, policy.features, device=device)
    tensors = {key: value.detach().cpu().contiguous() for key, value in weights.items()}
    save_file(tensors, folder / MODEL, metadata={"format": "pt"})
    write_processors(folder, preprocess, postprocess)
