from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lerobot_stream.dataset.groups import Groups, read_groups
from lerobot_stream.dataset.parquet import read_footer
from lerobot_stream.errors import FormatError
from lerobot_stream.source.local import LocalSource
from lerobot_stream.source.ranges import SourceFile

PATH = "t.parquet"


def groups_of(root: Path, table: pa.Table, **options: object) -> Groups:
    pq.write_table(table, root / PATH, **options)
    file = SourceFile(LocalSource(root, repo_id="a/b"), PATH)
    return read_groups(file, read_footer(file))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=8),
    rows=st.integers(1, 12),
    statistics=st.booleans(),
)
def test_an_episode_is_sought_exactly_in_the_row_groups_whose_range_has_it(
    tmp_path: Path, lengths: list[int], rows: int, statistics: bool
) -> None:
    episode = np.repeat(np.arange(len(lengths)), lengths)
    table = pa.table({"episode_index": episode, "other": episode * 0.5})
    groups = groups_of(tmp_path, table, row_group_size=rows, write_statistics=statistics)
    parts = [episode[start : start + rows] for start in range(0, len(episode), rows)]
    for e in range(-1, len(lengths) + 1):
        expected = [g for g, part in enumerate(parts) if part.min() <= e <= part.max()]
        assert groups.holding(e) == expected


def test_without_statistics_only_the_episode_column_is_read(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    columns = {"episode_index": np.arange(80_000) // 100, "x": random.random(80_000)}
    table = pa.table(columns | {"y": random.random(80_000)})
    pq.write_table(table, tmp_path / PATH, row_group_size=20_000, write_statistics=False)
    source = LocalSource(tmp_path, repo_id="a/b")
    file = SourceFile(source, PATH)
    read_groups(file, read_footer(file))
    assert source.count.bytes < 0.1 * (tmp_path / PATH).stat().st_size


def test_an_empty_row_group_holds_nothing(tmp_path: Path) -> None:
    groups = groups_of(tmp_path, pa.table({"episode_index": pa.array([], pa.int64())}))
    assert groups.holding(0) == []


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"episode": [0]}, "has no column episode_index"),
        ({"episode_index": ["0"]}, "column episode_index: wanted numbers, found string"),
        ({"episode_index": [0.0, None]}, "column episode_index: wanted a number in every row"),
    ],
)
def test_a_column_that_names_no_episode_is_refused(
    tmp_path: Path, table: dict[str, list[object]], message: str
) -> None:
    with pytest.raises(FormatError, match=r"t\.parquet: " + message):
        groups_of(tmp_path, pa.table(table), write_statistics=False)
