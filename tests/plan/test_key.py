from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from lerobot_stream.plan.epoch import plan_epoch
from lerobot_stream.plan.key import DIGEST_ITEMS, PlanKey, order_digest, plan_key
from lerobot_stream.plan.ragged import Ragged
from lerobot_stream.plan.share import PlanConfig, Share, plan_share
from tests.plan.shares import CONFIG, make_episodes, make_share, shares

EPISODES = make_episodes([9, 5, 7, 8])


@given(shares())
def test_a_key_survives_json(share: Share) -> None:
    key = plan_key(share, epoch=3)
    again = PlanKey.from_json(json.loads(json.dumps(key.to_json())))
    assert again == key
    assert not key.difference(again)


CHANGES: dict[str, dict[str, Any]] = {
    "seed": {"seed": 8},
    "world size": {"world_size": 2},
    "num workers": {"num_workers": 2},
    "strategy": {"strategy": "clip"},
    "pool size": {"pool_size": None},
    "byte budget": {"byte_budget": 1 << 41},
    "decoded bytes": {"decoded_bytes": 41},
    "frame bytes": {"frame_bytes": 2},
    "item bytes": {"item_bytes": 2},
    "first offset": {"first_offset": -1},
    "last offset": {"last_offset": 1},
    "run frames": {"run_frames": 8},
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_setting_is_named_when_it_differs(name: str) -> None:
    mine = plan_key(make_share(EPISODES))
    found = plan_key(make_share(EPISODES, replace(CONFIG, **CHANGES[name])))
    (text,) = mine.difference(found)
    assert text.startswith(name)


def test_every_setting_of_a_plan_is_in_the_key() -> None:
    assert {field.name.replace("_", " ") for field in fields(PlanConfig)} == set(CHANGES)
    assert {field.name for field in fields(PlanConfig)} < {field.name for field in fields(PlanKey)}


def test_a_difference_says_what_was_and_what_is() -> None:
    mine = plan_key(make_share(EPISODES))
    found = plan_key(make_share(EPISODES, replace(CONFIG, pool_size=None, seed=1000)), epoch=2)
    assert mine.difference(found) == [
        "seed 7, now 1,000",
        "epoch 0, now 2",
        "pool size 3, now unset",
    ]


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("lengths of episodes", make_episodes([9, 5, 8, 7], sizes=[9, 5, 7, 8], gops=[1000])),
        ("bytes of episodes", make_episodes([9, 5, 7, 8], sizes=[9, 5, 7, 9], gops=[1000])),
        (
            "frames at which decoding can start",
            make_episodes([9, 5, 7, 8], entries=[[0], [0], [0, 2], [0]]),
        ),
    ],
    ids=["lengths", "sizes", "entries"],
)
def test_each_column_is_named_when_it_differs(name: str, changed: Any) -> None:
    episodes = make_episodes([9, 5, 7, 8], gops=[1000])
    (text,) = plan_key(make_share(episodes)).difference(plan_key(make_share(changed)))
    assert text.startswith(f"{name} differ (")


def test_other_episodes_differ_by_their_counts_alone() -> None:
    mine = plan_key(make_share(EPISODES))
    assert mine.difference(plan_key(make_share(make_episodes([9])))) == [
        "episodes 4, now 1",
        "frames 29, now 9",
    ]
    fewer_frames = plan_key(make_share(make_episodes([9, 5, 7, 1])))
    assert mine.difference(fewer_frames) == ["frames 29, now 22"]


def test_hashes_are_left_out_where_a_number_differs() -> None:
    mine = plan_key(make_share(EPISODES))
    changed = make_share(make_episodes([9, 5, 8, 7]), replace(CONFIG, seed=8))
    assert mine.difference(plan_key(changed)) == [
        "seed 7, now 8",
        "lengths of episodes differ",
        "bytes of episodes differ",
    ]


def test_ranks_and_workers_differ_only_in_their_numbers() -> None:
    config = replace(CONFIG, world_size=2, num_workers=2)
    first, second = (
        plan_key(plan_share(EPISODES, config, rank=rank, worker=1 - rank)) for rank in range(2)
    )
    assert first.difference(second) == ["rank 0, now 1", "worker 1, now 0"]
    assert not first.difference(replace(second, rank=0, worker=1))


def test_frames_left_are_part_of_the_key() -> None:
    share = make_share(make_episodes([3]))
    some = replace(share, frames=Ragged.of([[0, 2]]))
    (text,) = plan_key(share).difference(plan_key(some))
    assert text.startswith("frames left differ (all, now ")


@pytest.mark.parametrize(
    ("change", "error"),
    [({"seed": "7"}, TypeError), ({"lengths": 3}, TypeError), ({"rank": True}, TypeError)],
)
def test_fields_of_another_type_are_refused(
    change: dict[str, object], error: type[Exception]
) -> None:
    saved = plan_key(make_share(EPISODES)).to_json()
    with pytest.raises(error, match=f"{next(iter(change))} must be"):
        PlanKey.from_json({**saved, **change})


def test_a_missing_field_is_refused() -> None:
    saved = plan_key(make_share(EPISODES)).to_json()
    del saved["worker"]
    with pytest.raises(KeyError, match="worker"):
        PlanKey.from_json(saved)


def test_the_digest_is_of_the_first_items() -> None:
    share = make_share(make_episodes([DIGEST_ITEMS, 500]))
    order = plan_epoch(share, epoch=0)
    early, late = np.array(order.frame), np.array(order.frame)
    early[[0, DIGEST_ITEMS - 1]] = early[[DIGEST_ITEMS - 1, 0]]
    late[DIGEST_ITEMS:] = late[DIGEST_ITEMS:][::-1]
    assert order_digest(replace(order, frame=early)) != order_digest(order)
    assert order_digest(replace(order, frame=late)) == order_digest(order)
    assert order_digest(plan_epoch(share, epoch=1)) != order_digest(order)
