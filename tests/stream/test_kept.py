"""What is kept of episodes is bounded in bytes, however long they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.dataset.rows import Rows
from lerobot_stream.stream.episode import EpisodeData
from lerobot_stream.stream.kept import KeptEpisodes, num_to_forget
from lerobot_stream.stream.map_style import LeRobotDataset
from tests.lerobot import Written
from tests.recordings import TOP, WRIST, WRITERS, record


def episode(number: int, num_bytes: int) -> EpisodeData:
    return EpisodeData(number, 1, Rows(1, {}, {"image": [bytes(num_bytes)]}), {})


class Reads:
    """Counts how often each episode is read."""

    def __init__(self, kept: KeptEpisodes, *, num_bytes: int) -> None:
        self._kept, self._num_bytes = kept, num_bytes
        self.made: list[int] = []

    def get(self, number: int) -> None:
        def read() -> EpisodeData:
            self.made.append(number)
            return episode(number, self._num_bytes)

        assert self._kept.get(number, read).data.episode_index == number


@given(st.lists(st.integers(0, 50), max_size=12), st.integers(0, 120), st.integers(1, 6))
def test_as_much_is_kept_as_fits_and_always_the_newest(
    sizes: list[int], most_bytes: int, most: int
) -> None:
    gone = num_to_forget(sizes, most_bytes=most_bytes, most=most)

    def fits(left: list[int]) -> bool:
        return len(left) <= 1 or (len(left) <= most and sum(left) <= most_bytes)

    assert fits(sizes[gone:])
    assert gone == 0 or not fits(sizes[gone - 1 :])


def test_long_episodes_leave_by_bytes_oldest_use_first() -> None:
    reads = Reads(KeptEpisodes(most_bytes=250, most=32), num_bytes=100)
    for number in (0, 1, 0, 2, 0, 2, 1, 2, 0):
        reads.get(number)
    assert reads.made == [0, 1, 2, 1, 0]


def test_one_episode_is_kept_however_long() -> None:
    reads = Reads(KeptEpisodes(most_bytes=10), num_bytes=100)
    for number in (0, 0, 1, 1, 0):
        reads.get(number)
    assert reads.made == [0, 1, 0]


def test_short_episodes_leave_by_count() -> None:
    reads = Reads(KeptEpisodes(most=2), num_bytes=1)
    for number in (0, 1, 2, 1, 0):
        reads.get(number)
    assert reads.made == [0, 1, 2, 0]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return record(tmp_path_factory.mktemp("kept") / "set", WRITERS["h264-g2"])


def test_an_episode_counts_its_pictures_and_its_rows(written: Written) -> None:
    dataset = LeRobotDataset("a/b", root=written.root)
    data = dataset._live_reader.read(dataset._visit(1))
    coded = sum(len(data.cameras[key].mini.data) for key in (TOP, WRIST))
    rows = sum(np.asarray(column).nbytes for column in data.rows.columns.values())
    assert coded > 0
    assert data.num_bytes == coded + rows
