"""The demo dataset is a correct v3 dataset, and its pictures show where the target is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from examples.make_demo_dataset import (
    HEIGHT,
    TOP,
    WIDTH,
    WRIST,
    count_levels,
    demonstrate,
    film_from_top,
    hand_position,
    image_stats,
    joints_at,
    write_dataset,
)
from lerobot_stream.dataset.metadata import DatasetMetadata, read_metadata
from lerobot_stream.dataset.rows import RowReader
from lerobot_stream.inspect.summary import inspect_dataset
from lerobot_stream.source.local import LocalSource

NUM_EPISODES = 8


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    write_dataset(folder, num_episodes=NUM_EPISODES, codec="h264", gop=2, seed=0)
    return folder


@pytest.fixture
def source(root: Path) -> LocalSource:
    return LocalSource(root, repo_id="local/reaching-arm")


@pytest.fixture
def meta(source: LocalSource) -> DatasetMetadata:
    return read_metadata(source)


def test_nothing_is_wrong_with_it(source: LocalSource) -> None:
    assert inspect_dataset(source).findings == ()


def test_cameras_roll_over_at_episodes_of_their_own(meta: DatasetMetadata) -> None:
    assert meta.episodes.video_file[TOP].tolist() == [0] * 5 + [1] * 3
    assert meta.episodes.video_file[WRIST].tolist() == [0] * 7 + [1]


def test_statistics_are_those_of_the_rows(meta: DatasetMetadata, source: LocalSource) -> None:
    reader, table = RowReader(source, meta.info), meta.episodes
    parts = [
        reader.read(episode, int(table.length[episode]), table.data_paths[table.data_file[episode]])
        for episode in range(NUM_EPISODES)
    ]
    for key in ("observation.state", "action", "index"):
        values = np.concatenate([part.columns[key] for part in parts]).astype(np.float64)
        for name, expected in (("mean", values.mean(0)), ("std", values.std(0))):
            np.testing.assert_allclose(
                meta.stats[key][name].reshape(expected.shape), expected, atol=1e-9
            )


def test_levels_give_the_statistics_of_a_camera() -> None:
    frames = np.random.default_rng(0).integers(0, 256, (3, 8, 8, 3), dtype=np.uint8)
    stats = image_stats(count_levels(frames), len(frames))
    pixels = frames.reshape(-1, 3) / 255
    for name, expected in (
        ("min", pixels.min(0)),
        ("max", pixels.max(0)),
        ("mean", pixels.mean(0)),
        ("std", pixels.std(0)),
        ("q10", np.quantile(pixels, 0.1, axis=0, method="inverted_cdf")),
    ):
        np.testing.assert_allclose(np.ravel(stats[name]), expected, atol=1e-12)


@pytest.mark.parametrize("target", [(0.5, 0.3), (-0.2, 0.6), (0.0, 0.8)])
def test_the_goal_of_the_expert_is_the_target(target: tuple[float, float]) -> None:
    _, hand = hand_position(joints_at(np.array(target)))
    np.testing.assert_allclose(hand, target, atol=1e-9)


def test_the_expert_reaches_the_target() -> None:
    episode = demonstrate(np.random.default_rng(3))
    _, hand = hand_position(episode.state[-1])
    assert np.linalg.norm(hand - episode.target) < 0.05


def test_the_camera_sees_the_target_from_the_first_frame() -> None:
    episode = demonstrate(np.random.default_rng(3))
    first = film_from_top(episode)[0].astype(int)
    red = (first[..., 0] > 180) & (first[..., 1] < 80)
    row, column = np.argwhere(red).mean(axis=0)
    pixel = 2.0 / WIDTH
    seen = ((column - (WIDTH - 1) / 2) * pixel, ((HEIGHT - 1) / 2 - row) * pixel + 0.35)
    np.testing.assert_allclose(seen, episode.target, atol=0.03)


def test_one_seed_gives_one_dataset() -> None:
    first, again = (demonstrate(np.random.default_rng([5, 1])) for _ in range(2))
    np.testing.assert_array_equal(first.action, again.action)
