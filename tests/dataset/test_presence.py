from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lerobot_stream.dataset.metadata import read_metadata
from lerobot_stream.dataset.presence import RowProblem, check_presence
from lerobot_stream.dataset.rows import RowReader
from lerobot_stream.source.local import LocalSource
from tests.lerobot import edit_episodes, write_dataset

FIRST = "data/chunk-000/file-000.parquet"
SECOND = "data/chunk-000/file-001.parquet"


def check(root: Path) -> tuple[list[RowProblem], int]:
    """Return the problems of all episodes, and the requests that finding them took."""
    source = LocalSource(root, repo_id="a/b")
    metadata = read_metadata(source)
    before = source.count.requests
    numbers = np.arange(len(metadata.episodes))
    problems = check_presence(RowReader(source, metadata.info), metadata.episodes, numbers)
    return problems, source.count.requests - before


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(row_group=st.one_of(st.just("episode"), st.integers(1, 20)), statistics=st.booleans())
def test_a_sound_dataset_has_no_problems_and_costs_a_request_a_file(
    tmp_path: Path, row_group: Literal["episode"] | int, statistics: bool
) -> None:
    write_dataset(
        tmp_path,
        lengths=[3, 1, 9, 4],
        row_group=row_group,
        statistics=statistics,
    )
    assert check(tmp_path) == ([], 2)


def test_a_pointer_to_another_file_is_told_with_the_right_one(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[3, 4, 5, 6])
    edit_episodes(tmp_path, lambda row: row.update({"data/file_index": 0}))
    message = f"the metadata says its rows are here, they are in {SECOND}"
    assert check(tmp_path)[0] == [RowProblem(e, FIRST, message, SECOND) for e in (2, 3)]


def test_rows_that_are_missing_are_counted(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[3, 4])
    table = pq.read_table(tmp_path / FIRST)
    pq.write_table(table.slice(0, 5), tmp_path / FIRST, row_group_size=3)
    message = "4 rows are promised, 2 are here"
    assert check(tmp_path)[0] == [RowProblem(1, FIRST, message, None)]


def test_more_rows_than_promised_are_counted(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[3, 4])
    edit_episodes(tmp_path, lambda row: row.update(length=row["length"] - 1))
    assert [problem.message for problem in check(tmp_path)[0]] == [
        "2 rows are promised, 3 are here",
        "3 rows are promised, 4 are here",
    ]


def test_a_torn_file_is_a_problem_of_each_of_its_episodes(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[3, 4, 5, 6])
    (tmp_path / SECOND).write_bytes(b"")
    assert check(tmp_path)[0] == [RowProblem(e, SECOND, "is empty", None) for e in (2, 3)]
