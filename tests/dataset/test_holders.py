from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.dataset.holders import Holders, format_numbers
from lerobot_stream.dataset.metadata import read_metadata
from lerobot_stream.source.local import LocalSource
from tests.lerobot import Camera, write_dataset


def write_numbers(path: Path, numbers: Sequence[int]) -> None:
    path.write_text(",".join(map(str, numbers)))


def test_a_file_is_described_by_what_it_holds(tmp_path: Path) -> None:
    camera = Camera(write_numbers, [1, 3])
    write_dataset(tmp_path, lengths=[1] * 5, cameras={"top": camera}, episodes_per_data_file=2)
    holders = Holders(read_metadata(LocalSource(tmp_path, repo_id="a/b")).episodes)
    video = "videos/top/chunk-000/file-00{}.mp4"
    assert holders.describe(video.format(0)) == "it holds top of episode 0"
    assert holders.describe(video.format(1)) == "it holds top of episodes 1-3"
    rows = "data/chunk-000/file-001.parquet"
    assert holders.describe(rows) == "it holds the rows of episodes 2-3"
    assert holders.describe("meta/info.json") == ""
    assert holders.episodes(video.format(1)) == [1, 2, 3]
    assert holders.episodes("meta/info.json") == []


@given(st.sets(st.integers(0, 60)))
def test_written_numbers_can_be_read_back(numbers: set[int]) -> None:
    found: list[int] = []
    for part in filter(None, format_numbers(sorted(numbers)).split(", ")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    assert found == sorted(numbers)
