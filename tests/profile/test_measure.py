"""A profile counts what a stream really delivered, decoded and fetched."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lerobot_stream.profile.limit import SequentialLimit
from lerobot_stream.profile.measure import Profile, ProfileConfig, profile_stream
from lerobot_stream.stream.config import ReadConfig, StreamConfig
from lerobot_stream.stream.decode import MiniDecoder
from lerobot_stream.stream.opened import OpenedDataset, open_dataset
from tests.lerobot import Written, write_dataset
from tests.recordings import LENGTHS, WRITERS, record


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return record(tmp_path_factory.mktemp("profile") / "set", WRITERS["h264-g30-b-open"])


def opened(written: Written, **settings: Any) -> OpenedDataset:
    return open_dataset(ReadConfig("a/b", root=written.root, **settings))


def profiled(written: Written, strategy: Any = "remaining", **settings: Any) -> Profile:
    config = StreamConfig(sampling_strategy=strategy, decoded_pool_gb=0.002, repeat=True)
    return profile_stream(opened(written), config, ProfileConfig(**settings))


@pytest.mark.parametrize("strategy", ["remaining", "round_robin", "clip"])
def test_a_profile_tells_all_that_was_measured(written: Written, strategy: str) -> None:
    profile = profiled(written, strategy, batch_size=8, batches=30, limit=True)
    told = json.loads(json.dumps(profile.to_json()))
    assert told["batches"] == 30
    assert told["items"] == 240
    assert told["pictures"] >= 2 * 240
    assert told["pictures_decoded"] >= told["pictures"]
    assert 0 < told["resident_bytes"] <= told["reserved_bytes"]
    assert 0 < told["wanted_bytes"] <= told["fetched_bytes"]
    assert told["requests"] > 0
    assert told["open_bytes"] > 0
    assert told["first_batch_s"] > 0
    assert 0 < sum(told["waiting_shares"].values()) <= 1
    assert 0 < told["wait_s"]["p50"] <= told["wait_s"]["p95"] <= told["wait_s"]["p99"]
    assert 1 <= told["mixing"]["effective_episodes"] <= 8
    assert told["limit"]["threads"] == 2
    assert told["of_limit"] > 0


def test_counts_of_loader_workers_are_added_up(written: Written) -> None:
    profile = profiled(written, batch_size=4, batches=12, num_workers=2)
    assert profile.limit is None
    assert profile.of_limit is None
    assert profile.stats.items == 48
    assert profile.stats.pictures >= 2 * 48
    assert sum(profile.waiting_shares.values()) <= 1


def test_a_dataset_without_cameras_has_rates_but_no_limit(tmp_path: Any) -> None:
    plain = write_dataset(tmp_path / "set", lengths=[40, 30])
    profile = profiled(plain, batch_size=4, batches=20)
    assert profile.stats.pictures == 0
    assert profile.timeline.items_per_s().median > 0
    with pytest.raises(ValueError, match="without cameras"):
        profiled(plain, limit=True)


def test_numbers_that_measure_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        ProfileConfig(batch_size=0)
    with pytest.raises(ValueError, match="batches must be at least 2, got 1"):
        ProfileConfig(batches=1)
    with pytest.raises(ValueError, match="num_workers must be at least 0, got -1"):
        ProfileConfig(num_workers=-1)


def test_the_limit_decodes_each_episode_front_to_back(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded_frames: list[int] = []
    write = MiniDecoder.write

    def watched(decoder: MiniDecoder, cells: Any, **settings: Any) -> Any:
        decoded_frames.extend(cells)
        return write(decoder, cells, **settings)

    monkeypatch.setattr(MiniDecoder, "write", watched)
    frames = sum(LENGTHS)
    decoded = SequentialLimit(opened(written), threads=1, frames=frames).run(2 * frames)
    assert decoded.pictures == 2 * frames
    assert decoded.rate > 0
    assert decoded_frames == [n for length in LENGTHS for _ in range(2) for n in range(length)]


def test_images_in_rows_have_a_limit_too(tmp_path: Any) -> None:
    images = write_dataset(tmp_path / "set", lengths=[20, 9], image_cameras={"view": (16, 24)})
    assert SequentialLimit(opened(images), threads=2, frames=40).run(60).pictures >= 60
