from __future__ import annotations

import pytest

from lerobot_stream.dataset.info import Feature
from lerobot_stream.train.features import PolicyFeature, split_features

FEATURES = {
    "observation.images.top": Feature("video", (48, 64, 3), ["height", "width", "channels"]),
    "observation.images.side": Feature("image", (3, 48, 64), None),
    "observation.state": Feature("float32", (6,), None),
    "observation.environment_state": Feature("float32", (2,), None),
    "observation.note": Feature("string", (1,), None),
    "action": Feature("float32", (7,), None),
    "timestamp": Feature("float32", (1,), None),
    "task_index": Feature("int64", (1,), None),
}


def test_features_are_sorted_into_seen_and_predicted() -> None:
    found = split_features(FEATURES, rename={})
    assert found.inputs == {
        "observation.images.top": PolicyFeature("VISUAL", (3, 48, 64)),
        "observation.images.side": PolicyFeature("VISUAL", (3, 48, 64)),
        "observation.state": PolicyFeature("STATE", (6,)),
        "observation.environment_state": PolicyFeature("ENV", (2,)),
    }
    assert found.outputs == {"action": PolicyFeature("ACTION", (7,))}
    assert found.cameras == ("observation.images.top", "observation.images.side")


def test_renamed_features_have_the_policys_names() -> None:
    found = split_features(FEATURES, rename={"observation.state": "observation.joints"})
    assert "observation.joints" in found.inputs
    assert "observation.state" not in found.inputs


def test_a_rename_of_what_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="--rename_map names state, which"):
        split_features(FEATURES, rename={"state": "observation.state"})


def test_a_number_is_an_axis_of_one_and_what_is_no_number_is_left_out() -> None:
    features = {
        "action": Feature("float32", (), None),
        "observation.said": Feature("language", (1,), None),
    }
    found = split_features(features, rename={})
    assert found.outputs == {"action": PolicyFeature("ACTION", (1,))}
    assert not found.inputs
