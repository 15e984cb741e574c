from __future__ import annotations

import base64
import json
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lerobot_stream.errors import PlanError
from lerobot_stream.plan.elastic import Base, advance, new_base, plan_layers
from lerobot_stream.plan.epoch import plan_epoch
from lerobot_stream.plan.share import Episodes, PlanConfig, plan_share
from tests.plan.shares import CONFIG, make_episodes

Item = tuple[int, int, int]
"""Epoch, episode, frame."""


@dataclass(frozen=True)
class Stretch:
    """Steps of a job between two changes of its size."""

    configs: list[PlanConfig]
    """Of each rank."""
    batch_size: int
    steps: int


def stream(
    episodes: Episodes, config: PlanConfig, base: Base, rank: int, worker: int
) -> Iterator[Item]:
    layers = plan_layers(episodes, config, base, rank=rank, worker=worker)
    for epoch in layers.epochs():
        share = layers.share(epoch)
        order = plan_epoch(share, epoch=epoch)
        for episode, frame in zip(share.positions[order.episode], order.frame, strict=True):
            yield epoch, int(episode), int(frame)


def delivered(episodes: Episodes, stretch: Stretch, base: Base) -> list[Item]:
    """Items of all ranks, whose loaders ask their workers in turn."""
    items = []
    for rank, config in enumerate(stretch.configs):
        streams = [
            stream(episodes, config, base, rank, worker) for worker in range(config.num_workers)
        ]
        for step in range(stretch.steps):
            worker = streams[step % config.num_workers]
            items += [next(worker) for _ in range(stretch.batch_size)]
    return items


def left_over(episodes: Episodes, base: Base) -> Counter[Item]:
    """Frames of unfinished epochs that a base says are still to come."""
    places = [(e, f) for e, n in enumerate(episodes.lengths.tolist()) for f in range(n)]
    return Counter(
        (epoch, *place)
        for epoch, seen in base.unfinished.items()
        for place, was_seen in zip(places, seen.tolist(), strict=True)
        if not was_seen
    )


def whole_epochs(episodes: Episodes, epochs: int) -> Counter[Item]:
    lengths = episodes.lengths.tolist()
    return Counter(
        (epoch, e, f) for epoch in range(epochs) for e, n in enumerate(lengths) for f in range(n)
    )


@st.composite
def jobs(draw: st.DrawFn) -> tuple[Episodes, list[Stretch]]:
    lengths = draw(st.lists(st.integers(2, 9), min_size=1, max_size=9))
    episodes = make_episodes(lengths, gops=[draw(st.sampled_from([1, 4, 1000]))])
    stretches = []
    for _ in range(draw(st.integers(1, 4))):
        world_size = draw(st.integers(1, min(4, len(lengths))))
        config = replace(
            CONFIG,
            strategy=draw(st.sampled_from(["remaining", "round_robin", "clip"])),
            world_size=world_size,
            pool_size=draw(st.integers(1, 4)),
            run_frames=3,
        )
        most = len(lengths) // world_size
        workers = draw(st.lists(st.integers(1, most), min_size=world_size, max_size=world_size))
        configs = [replace(config, num_workers=number) for number in workers]
        stretches.append(Stretch(configs, draw(st.integers(1, 5)), draw(st.integers(0, 9))))
    for stretch in stretches:  # a rank with one long episode has none for its second worker
        assume(every_worker_has_an_episode(episodes, stretch.configs))
    return episodes, stretches


def every_worker_has_an_episode(episodes: Episodes, configs: list[PlanConfig]) -> bool:
    try:
        for rank, config in enumerate(configs):
            plan_share(episodes, config, rank=rank, worker=0)
    except ValueError:
        return False
    return True


@given(jobs())
def test_each_frame_comes_once_an_epoch_however_the_job_changes(
    job: tuple[Episodes, list[Stretch]],
) -> None:
    episodes, stretches = job
    base, seen = new_base(), Counter[Item]()
    for stretch in stretches:
        seen += Counter(delivered(episodes, stretch, base))
        base = advance(
            episodes,
            stretch.configs,
            base,
            steps=stretch.steps,
            batch_size=stretch.batch_size,
        )
        assert not any(bitmap.all() for bitmap in base.unfinished.values())
        assert seen + left_over(episodes, base) == whole_epochs(episodes, base.next_epoch)
        assert base.num_items(int(episodes.lengths.sum())) == seen.total()


@given(jobs(), st.integers(0, 60))
def test_a_place_is_found_without_walking_there(
    job: tuple[Episodes, list[Stretch]], offset: int
) -> None:
    episodes, (first, *_) = job
    base = advance(
        episodes, first.configs, new_base(), steps=first.steps, batch_size=first.batch_size
    )
    layers = plan_layers(episodes, first.configs[0], base, rank=0, worker=0)
    walked = (
        (epoch, item) for epoch in layers.epochs() for item in range(layers.share(epoch).num_items)
    )
    place = next(islice(walked, offset, None))
    assert layers.locate(offset) == place
    assert next(layers.epochs(place[0])) == place[0]


@given(jobs())
def test_a_base_survives_json(job: tuple[Episodes, list[Stretch]]) -> None:
    episodes, (stretch, *_) = job
    base = advance(
        episodes, stretch.configs, new_base(3), steps=stretch.steps, batch_size=stretch.batch_size
    )
    saved = json.loads(json.dumps(base.to_json()))
    again = Base.from_json(saved, num_frames=int(episodes.lengths.sum()))
    assert again.next_epoch == base.next_epoch
    assert left_over(episodes, again) == left_over(episodes, base)


def test_no_steps_change_nothing() -> None:
    base = advance(make_episodes([3, 4]), [CONFIG], new_base(5), steps=0, batch_size=8)
    assert base.next_epoch == 5
    assert not base.unfinished


def test_a_new_base_streams_the_usual_shares() -> None:
    episodes = make_episodes([5, 8, 3, 9])
    config = replace(CONFIG, world_size=2)
    share = plan_share(episodes, config, rank=1, worker=0)
    layers = plan_layers(episodes, config, new_base(2), rank=1, worker=0)
    assert next(layers.epochs()) == 2
    found = layers.share(2)
    assert found.positions.tolist() == share.positions.tolist()
    assert found.frames is None


def test_a_worker_may_have_nothing_left_of_an_epoch_already_begun() -> None:
    episodes = make_episodes([4, 4])
    config = replace(CONFIG, world_size=2)
    seen = np.ones(8, dtype=np.bool_)
    seen[5] = False
    base = Base({0: seen}, 1)
    first = [next(stream(episodes, config, base, rank, 0)) for rank in range(2)]
    assert first[0] == (0, 1, 1)
    assert first[1][0] == 1


def test_a_whole_epoch_needs_an_episode_for_each_rank() -> None:
    config = replace(CONFIG, world_size=3)
    with pytest.raises(PlanError, match="3 ranks, 2 episodes"):
        plan_layers(make_episodes([4, 4]), config, new_base(), rank=0, worker=0)


def packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


@pytest.mark.parametrize(
    "text",
    [packed(b"\x00"), packed(b"\x00" * 3), packed(b"\xff\xff"), "AAAA", "%"],
    ids=["too short", "too long", "bits behind the end", "not compressed", "not base64"],
)
def test_a_bitmap_of_other_frames_is_refused(text: str) -> None:
    saved = {"next_epoch": 1, "unfinished": {"0": text}}
    with pytest.raises(ValueError, match=r"bitmap of frames seen|base64"):
        Base.from_json(saved, num_frames=12)
