from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from lerobot_stream.train.policies.resnet import BLOCKS, FrozenBatchNorm2d, ResNet


@pytest.mark.parametrize("name", BLOCKS)
def test_names_are_torchvisions(name: str) -> None:
    wanted = {"conv1.weight"} | _norm("bn1")
    for stage, blocks in enumerate(BLOCKS[name], start=1):
        for block in range(blocks):
            place = f"layer{stage}.{block}"
            wanted |= {f"{place}.conv1.weight", f"{place}.conv2.weight"}
            wanted |= _norm(f"{place}.bn1") | _norm(f"{place}.bn2")
            if stage > 1 and block == 0:
                wanted |= {f"{place}.downsample.0.weight"} | _norm(f"{place}.downsample.1")
    assert set(ResNet(name, dilate_last=False).state_dict()) == wanted


@pytest.mark.parametrize(("dilate", "divisor"), [(False, 32), (True, 16)])
def test_the_feature_map_has_its_resolution(dilate: bool, divisor: int) -> None:
    seen = ResNet("resnet18", dilate_last=dilate)(torch.rand(2, 3, 64, 96))
    assert seen.shape == (2, 512, 64 // divisor, 96 // divisor)


def test_frozen_normalisation_is_batch_normalisation_in_evaluation() -> None:
    norm = FrozenBatchNorm2d(5)
    for value in norm.state_dict().values():
        value.copy_(torch.rand(5) + 0.5)
    x = torch.randn(2, 5, 4, 6)
    wanted = F.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias)
    torch.testing.assert_close(norm(x), wanted)
    assert not list(norm.parameters())


def _norm(name: str) -> set[str]:
    return {f"{name}.{part}" for part in ("weight", "bias", "running_mean", "running_var")}
