"""LeRobot's own policies, where LeRobot is installed: its networks, processors and presets."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from lerobot_stream.errors import StreamError
from lerobot_stream.train.features import ACTION, PolicyFeatures, split_features
from lerobot_stream.train.normalize import IMAGENET, Stats
from lerobot_stream.train.policies.base import Batch, Policy, PolicyRequest, PolicySetup

REWARD = "next.reward"


def lerobot_types() -> list[str]:
    """Names of the policies that the installed LeRobot has."""
    _import("lerobot.policies.factory")
    choices = _import("lerobot.configs.policies").PreTrainedConfig.get_known_choices()
    return sorted(choices)


def make_lerobot(request: PolicyRequest) -> PolicySetup:
    """Make one of them; see :data:`~lerobot_stream.train.policies.base.PolicyFactory`."""
    factory = _import("lerobot.policies.factory")
    features = split_features(request.info.features, rename=request.rename)
    config = _their_config(request, features)
    policy_class = factory.get_policy_class(config.type)
    if request.checkpoint is None:
        inner = policy_class(config=config)
    else:
        inner = policy_class.from_pretrained(str(request.checkpoint), config=config)
    policy = LerobotPolicy(inner.to(request.device))
    before, after = _their_processors(request, config)
    optimizer = config.get_optimizer_preset()
    names = {request.rename.get(key, key): key for key in request.info.features}
    return PolicySetup(
        policy=policy,
        preprocess=_Preprocess(before, features, request),
        postprocess=after,
        action=names[ACTION],
        delta_timestamps=_delta_timestamps(config, names, request.info.fps),
        make_optimizer=lambda _: _build_optimizer(optimizer, inner),
        make_scheduler=lambda made, asked, steps: _build_scheduler(config, made, steps),
        grad_clip_norm=float(optimizer.grad_clip_norm),
        save=lambda folder, weights: _save(policy, (before, after), folder, weights),
        all_parameters_used=False,
        first_action=list(config.action_delta_indices or [0]).index(0),
    )


class LerobotPolicy(Policy):
    """One of LeRobot's policies as the loop sees it."""

    def __init__(self, inner: Any) -> None:
        """Wrap it."""
        super().__init__()
        self.inner = inner

    def forward(
        self, batch: Batch, num_valid: Tensor | None = None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Its own loss, which weighs a batch's steps in its own way."""
        loss, metrics = self.inner.forward(batch)
        numbers = {
            name: torch.as_tensor(value, dtype=torch.float32, device=loss.device)
            for name, value in (metrics or {}).items()
            if isinstance(value, (int, float)) or (isinstance(value, Tensor) and value.ndim == 0)
        }
        return loss, {name: value for name, value in numbers.items() if name != "loss"}

    @torch.no_grad()
    def predict_action_chunk(self, batch: Batch) -> Tensor:
        """Its next action, ``(B, 1, D)``; what a policy predicts beyond it is its own matter."""
        was_training = self.training
        self.eval()
        self.inner.reset()
        windows = self.inner.config.observation_delta_indices
        seen = {
            key: value[:, -1] if windows and isinstance(value, Tensor) else value
            for key, value in batch.items()
            if (key.startswith("observation") and not key.endswith("_is_pad")) or key == "task"
        }
        action: Tensor = self.inner.select_action(seen)
        self.inner.reset()
        self.train(was_training)
        return action[:, None]


class _Preprocess:
    """Our batches in the form that LeRobot's own preprocessing takes."""

    def __init__(self, theirs: Any, features: PolicyFeatures, request: PolicyRequest) -> None:
        self._theirs = theirs
        self._cameras = frozenset(features.cameras)
        self._rename = request.rename
        self._device = torch.device(request.device)

    def __call__(self, batch: Batch) -> Batch:
        ready: Batch = {}
        for name, value in batch.items():
            feature, pad, _ = name.partition("_is_pad")
            key = self._rename.get(feature, feature) + pad
            if isinstance(value, Tensor):
                value = value.to(self._device, non_blocking=True)
                if key in self._cameras and value.dtype == torch.uint8:
                    value = value.to(torch.float32).div_(255)
            ready[key] = value
        processed: Batch = self._theirs(ready)
        return processed


def _their_config(request: PolicyRequest, features: PolicyFeatures) -> Any:
    """Their configuration: from a checkpoint or new, with the options that were given."""
    types = _import("lerobot.configs.types")
    options = dict(request.config.options)
    try:
        if request.checkpoint is None:
            factory = _import("lerobot.policies.factory")
            config = factory.make_policy_config(
                request.config.type, device=request.device, push_to_hub=False, **options
            )
        else:
            base = _import("lerobot.configs.policies").PreTrainedConfig
            config = base.from_pretrained(str(request.checkpoint))
            config = dataclasses.replace(config, device=request.device, **options)
    except TypeError as error:
        raise ValueError(f"--policy.options: {error}") from None
    config.use_amp = request.config.use_amp
    for name, ours in (("input_features", features.inputs), ("output_features", features.outputs)):
        theirs = {
            key: types.PolicyFeature(types.FeatureType[one.type], one.shape)
            for key, one in ours.items()
        }
        setattr(config, name, theirs)
    return config


def _their_processors(request: PolicyRequest, config: Any) -> tuple[Any, Any]:
    stats = _their_stats(request)
    features = {**config.input_features, **config.output_features}
    norm_map = config.normalization_mapping
    kept: dict[str, Any] = {}
    if request.checkpoint is not None:
        normalizer = {"stats": stats, "features": features, "norm_map": norm_map}
        kept = {
            "pretrained_path": str(request.checkpoint),
            "preprocessor_overrides": {
                "device_processor": {"device": request.device},
                "normalizer_processor": normalizer,
            },
            "postprocessor_overrides": {
                "unnormalizer_processor": normalizer | {"features": config.output_features}
            },
        }
    factory = _import("lerobot.policies.factory")
    before, after = factory.make_pre_post_processors(config, dataset_stats=stats, **kept)
    return before, after


def _their_stats(request: PolicyRequest) -> Stats:
    stats = {request.rename.get(key, key): dict(named) for key, named in request.stats.items()}
    if request.use_imagenet_stats:
        for key in request.info.camera_keys:
            stats.setdefault(request.rename.get(key, key), {}).update(IMAGENET)
    return stats


def _delta_timestamps(config: Any, names: Mapping[str, str], fps: float) -> dict[str, list[float]]:
    """Seconds of each feature's window, by the dataset's names."""
    windows = {}
    for name, key in names.items():
        indices = None
        if name == REWARD:
            indices = config.reward_delta_indices
        elif name == ACTION:
            indices = config.action_delta_indices or [0]
        elif name.startswith("observation."):
            indices = config.observation_delta_indices
        if indices is not None:
            windows[key] = [i / fps for i in indices]
    return windows


def _build_optimizer(preset: Any, inner: Any) -> Optimizer:
    optimizer = preset.build(inner.get_optim_params())
    if not isinstance(optimizer, Optimizer):
        raise StreamError("the policy wants several optimizers, which only LeRobot's own loop has")
    return optimizer


def _build_scheduler(config: Any, optimizer: Optimizer, steps: int) -> LRScheduler | None:
    preset = config.get_scheduler_preset()
    scheduler: LRScheduler | None = None if preset is None else preset.build(optimizer, steps)
    return scheduler


def _save(
    policy: LerobotPolicy, processors: tuple[Any, Any], folder: Path, weights: Mapping[str, Tensor]
) -> None:
    with _holding(policy, weights):
        policy.inner.save_pretrained(folder)
    for processor in processors:
        processor.save_pretrained(folder)


@contextlib.contextmanager
def _holding(policy: LerobotPolicy, weights: Mapping[str, Tensor]) -> Iterator[None]:
    """Let a policy have other weights while it is saved."""
    own = policy.state_dict()
    if all(own[key].data_ptr() == value.data_ptr() for key, value in weights.items()):
        yield
        return
    trained = {key: value.clone() for key, value in own.items()}
    policy.load_state_dict(weights)
    try:
        yield
    finally:
        policy.load_state_dict(trained)


def _import(name: str) -> Any:
    return importlib.import_module(name)
