"""Pretrained weights of the picture network, from a file, torch's cache or the Hub."""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from huggingface_hub import hf_hub_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from lerobot_stream.errors import FormatError, MissingFileError

_NAMED = re.compile(r"ResNet(18|34)_Weights\.(IMAGENET1K_V1|DEFAULT)")
_CACHED = {"18": "resnet18-f37072fd.pth", "34": "resnet34-b627a593.pth"}
_HUB = {"18": "timm/resnet18.tv_in1k", "34": "timm/resnet34.tv_in1k"}

_DAMAGE = (
    SafetensorError,
    pickle.UnpicklingError,
    RuntimeError,
    EOFError,
    LookupError,
    ValueError,
    AttributeError,
    TypeError,
)
"""What reading a file can end in that is none of these weights, or only half of them."""


def load_backbone(backbone: nn.Module, weights: str) -> None:
    """Load pretrained weights into a network.

    Args:
        backbone: A :class:`~lerobot_stream.train.policies.resnet.ResNet`.
        weights: torchvision's name of ImageNet weights, or a ``.pth`` or ``.safetensors`` file.

    Raises:
        MissingFileError: They are nowhere to be found.
        FormatError: The file is damaged, or holds the weights of another network.
    """
    named = _NAMED.fullmatch(weights)
    path = _find(named.group(1), weights) if named else Path(weights)
    if not path.is_file():
        raise MissingFileError(
            "pretrained weights are not there",
            path=str(path),
            hint="name a .pth or .safetensors file, or start from random weights with "
            "--policy.pretrained_backbone_weights=null",
        )
    _assign(backbone, _read(path), path)


def _find(size: str, weights: str) -> Path:
    """The file of named weights: in torch's own cache, else from the Hub."""
    cached = Path(torch.hub.get_dir()) / "checkpoints" / _CACHED[size]
    if cached.is_file():
        return cached
    try:
        return Path(hf_hub_download(_HUB[size], "model.safetensors"))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise MissingFileError(
            f"{weights} is neither in {cached} nor to be had from the Hub's {_HUB[size]} "
            f"({type(error).__name__})",
            hint=f"save https://download.pytorch.org/models/{_CACHED[size]} there, or start from "
            "random weights with --policy.pretrained_backbone_weights=null",
        ) from error


def _read(path: Path) -> Mapping[str, Tensor]:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except _DAMAGE as error:
        raise FormatError(f"wanted a state dict, found {error}", path=str(path)) from None
    if not isinstance(state, Mapping):
        raise FormatError(f"wanted a state dict, found a {type(state).__name__}", path=str(path))
    return state


def _assign(backbone: nn.Module, state: Mapping[str, Tensor], path: Path) -> None:
    wanted = backbone.state_dict()
    unknown = [key for key in state if key not in wanted]
    spare = [key for key in unknown if not key.startswith("fc.") and "num_batches" not in key]
    missing = [key for key in wanted if key not in state]
    shapes = [key for key in wanted if key in state and state[key].shape != wanted[key].shape]
    for words, keys in (
        ("lacks", missing),
        ("also holds", spare),
        ("has another shape for", shapes),
    ):
        if keys:
            raise FormatError(f"{words} {keys[0]} and {len(keys) - 1} more", path=str(path))
    backbone.load_state_dict({key: state[key] for key in wanted})
