from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lerobot_stream.dataset.stats import parse_stats, read_stats
from lerobot_stream.errors import FormatError
from lerobot_stream.source.local import LocalSource
from tests.lerobot import write_dataset


def test_statistics_are_those_of_the_rows(tmp_path: Path) -> None:
    written = write_dataset(tmp_path, lengths=[3, 5], image_cameras={"image": (4, 6)})
    stats = read_stats(LocalSource(tmp_path, repo_id="a/b"))
    action = written.columns["action"].astype(np.float64)
    np.testing.assert_allclose(stats["action"]["mean"], action.mean(0))
    np.testing.assert_allclose(stats["action"]["std"], action.std(0))
    assert stats["timestamp"]["max"].shape == (1,)
    assert stats["image"]["mean"].shape == (3, 1, 1)


def test_a_dataset_without_statistics_has_none(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[1])
    (tmp_path / "meta/stats.json").unlink()
    assert read_stats(LocalSource(tmp_path, repo_id="a/b")) == {}


def test_a_bare_number_becomes_an_array_and_null_becomes_nan() -> None:
    stats = parse_stats(b'{"a": {"count": 3, "mean": [null, 1], "std": NaN}}')
    assert stats["a"]["count"].tolist() == [3]
    assert np.isnan(stats["a"]["mean"]).tolist() == [True, False]
    assert np.isnan(stats["a"]["std"]).all()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "meta/stats.json: is empty"),
        (b'{"a": 3}', "meta/stats.json: a: wanted an object of statistics, found int"),
        (b'{"a": {"mean": [[1], [2, 3]]}}', "meta/stats.json: a/mean: wanted an array of numbers"),
        (b'{"a": {"mean": ["x"]}}', "a/mean: wanted an array of numbers"),
        (b'{"a": {"mean": [1' + b"0" * 400 + b"]}}", "a/mean: wanted an array of numbers"),
        (b'{"a": {"mean": {}}}', "a/mean: wanted an array of numbers"),
        (b"version https://git-lfs.github.com/spec/v1\n", "is a git-lfs pointer"),
    ],
)
def test_a_wrong_statistic_is_named(data: bytes, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_stats(data)
    assert message in str(caught.value)
