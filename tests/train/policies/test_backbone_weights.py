from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from lerobot_stream.errors import FormatError, MissingFileError
from lerobot_stream.train.policies.backbone_weights import load_backbone
from lerobot_stream.train.policies.resnet import ResNet


def torchvisions(network: ResNet) -> dict[str, Tensor]:
    """A state dict with the entries that torchvision's also has."""
    state = {key: torch.rand_like(value) for key, value in network.state_dict().items()}
    return state | {
        "fc.weight": torch.zeros(1000, 512),
        "fc.bias": torch.zeros(1000),
        "bn1.num_batches_tracked": torch.tensor(0),
    }


@pytest.mark.parametrize("name", ["weights.pth", "weights.safetensors"])
def test_weights_are_read_from_a_file(tmp_path: Path, name: str) -> None:
    network = ResNet("resnet18", dilate_last=False)
    state = torchvisions(network)
    if name.endswith("pth"):
        torch.save(state, tmp_path / name)
    else:
        save_file(state, tmp_path / name)
    load_backbone(network, str(tmp_path / name))
    loaded = network.state_dict()["layer4.1.conv2.weight"]
    torch.testing.assert_close(loaded, state["layer4.1.conv2.weight"])


def test_named_weights_are_found_in_torchs_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    network = ResNet("resnet18", dilate_last=False)
    path = tmp_path / "hub/checkpoints/resnet18-f37072fd.pth"
    path.parent.mkdir(parents=True)
    state = torchvisions(network)
    torch.save(state, path)
    load_backbone(network, "ResNet18_Weights.IMAGENET1K_V1")
    torch.testing.assert_close(network.conv1.weight.data, state["conv1.weight"])


def test_without_cache_and_network_the_error_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(MissingFileError, match=r"neither in .*resnet18-f37072fd") as caught:
        load_backbone(ResNet("resnet18", dilate_last=False), "ResNet18_Weights.IMAGENET1K_V1")
    assert "pretrained_backbone_weights=null" in str(caught.value.hint)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"nothing\.pth: pretrained weights are not there"):
        load_backbone(ResNet("resnet18", dilate_last=False), str(tmp_path / "nothing.pth"))


@pytest.mark.parametrize("name", ["weights.pth", "weights.safetensors"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"these are no weights")
    with pytest.raises(FormatError, match=f"{name}: wanted a state dict"):
        load_backbone(ResNet("resnet18", dilate_last=False), str(tmp_path / name))


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    save_file(ResNet("resnet18", dilate_last=False).state_dict(), path)
    with pytest.raises(FormatError, match=r"lacks layer1\.2\.conv1\.weight and \d+ more"):
        load_backbone(ResNet("resnet34", dilate_last=False), str(path))
