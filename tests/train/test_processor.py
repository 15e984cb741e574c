from __future__ import annotations

import numpy as np
import torch

from lerobot_stream.train.features import PolicyFeature
from lerobot_stream.train.normalize import Normalizer, prepare_stats
from lerobot_stream.train.processor import Postprocessor, Preprocessor

FEATURES = {
    "observation.images.front": PolicyFeature("VISUAL", (3, 2, 2)),
    "observation.state": PolicyFeature("STATE", (1,)),
    "action": PolicyFeature("ACTION", (1,)),
}
MODES = {"VISUAL": "MEAN_STD", "STATE": "MEAN_STD", "ACTION": "MEAN_STD"}
CPU = torch.device("cpu")


def make_normalizer() -> Normalizer:
    number = {"mean": np.array([2.0]), "std": np.array([4.0])}
    picture = {"mean": np.array([0.5] * 3), "std": np.array([0.25] * 3)}
    stats = {
        "observation.images.front": picture,
        "observation.state": number,
        "action": number,
    }
    prepared = prepare_stats(FEATURES, MODES, stats, use_imagenet_stats=False)
    return Normalizer(FEATURES, MODES, prepared)


def test_a_batch_becomes_what_the_policy_takes() -> None:
    rename = {"observation.images.top": "observation.images.front", "act": "action"}
    before = Preprocessor(make_normalizer(), rename=rename, device=CPU)
    pictures = torch.tensor([0, 255], dtype=torch.uint8)[:, None, None, None].expand(2, 3, 2, 2)
    batch = {
        "observation.images.top": pictures,
        "observation.state": torch.tensor([2.0, 6.0]),
        "act": torch.tensor([[2.0, 10.0], [6.0, 2.0]]),
        "act_is_pad": torch.tensor([[False, True], [False, False]]),
        "task": ["a", "b"],
        "index": torch.tensor([3, 4]),
    }
    ready = before(batch)
    assert ready["observation.images.front"][:, 0, 0, 0].tolist() == [-2.0, 2.0]
    assert ready["observation.state"].tolist() == [[0.0], [1.0]]
    assert ready["action"].tolist() == [[[0.0], [2.0]], [[1.0], [0.0]]]
    assert ready["action_is_pad"].tolist() == [[False, True], [False, False]]
    assert ready["task"] == ["a", "b"]
    assert ready["index"].tolist() == [3, 4]
    assert not {"observation.images.top", "act", "act_is_pad"} & ready.keys()
    assert batch["observation.images.top"] is pictures


def test_float_pictures_are_taken_as_they_are() -> None:
    before = Preprocessor(make_normalizer(), rename={}, device=CPU)
    ready = before({"observation.images.front": torch.full((1, 3, 2, 2), 0.75)})
    assert ready["observation.images.front"].flatten().tolist() == [1.0] * 12


def test_actions_get_the_datasets_units_again() -> None:
    after = Postprocessor(make_normalizer(), device=CPU)
    assert after(torch.tensor([[[0.0], [2.0]]])).tolist() == [[[2.0], [10.0]]]
