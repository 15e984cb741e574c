from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lerobot_stream.dataset.tasks import read_tasks
from lerobot_stream.errors import DatasetError, FormatError
from lerobot_stream.source.local import LocalSource
from tests.lerobot import write_dataset


def read(root: Path) -> dict[int, str]:
    return read_tasks(LocalSource(root, repo_id="a/b"))


def write(root: Path, columns: dict[str, list[object]]) -> None:
    (root / "meta").mkdir()
    pq.write_table(pa.table(columns), root / "meta/tasks.parquet")


@pytest.mark.parametrize("column", ["task", "__index_level_0__"])
def test_the_text_stands_under_either_name(tmp_path: Path, column: str) -> None:
    write_dataset(tmp_path, lengths=[1], tasks=["push", "pull"], task_column=column)
    assert read(tmp_path) == {0: "push", 1: "pull"}


def test_tasks_are_found_by_number_not_by_row(tmp_path: Path) -> None:
    write(tmp_path, {"task": ["c", "a", "b"], "task_index": [7, 0, 3]})
    assert read(tmp_path) == {0: "a", 3: "b", 7: "c"}


def test_numbers_written_as_floats_are_numbers(tmp_path: Path) -> None:
    write(tmp_path, {"task_index": [0.0, 1.0], "task": ["a", "b"]})
    assert read(tmp_path) == {0: "a", 1: "b"}


def test_a_dataset_without_tasks_has_none(tmp_path: Path) -> None:
    assert read(tmp_path) == {}


def test_a_repeated_row_is_one_task(tmp_path: Path) -> None:
    write(tmp_path, {"task_index": [0, 0], "task": ["a", "a"]})
    assert read(tmp_path) == {0: "a"}


def test_two_texts_for_one_task_are_an_error(tmp_path: Path) -> None:
    write(tmp_path, {"task_index": [4, 4], "task": ["a", "b"]})
    with pytest.raises(DatasetError, match="task 4: has two texts, 'a' and 'b'"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"task_index": [0], "name": ["a"]}, "wanted a column task or __index_level_0__, found"),
        ({"task": ["a"]}, "has no column task_index"),
        ({"task_index": ["0"], "task": ["a"]}, "column task_index: wanted numbers, found string"),
        ({"task_index": [0, None], "task": ["a", "b"]}, "column task_index: wanted a whole"),
        ({"task_index": [0.0, np.inf], "task": ["a", "b"]}, "column task_index: wanted a whole"),
        ({"task_index": [0.0, 0.5], "task": ["a", "b"]}, "column task_index: wanted a whole"),
        ({"task_index": [0], "task": [None]}, "task 0: wanted a text, found None"),
    ],
)
def test_a_table_that_is_none_is_named(
    tmp_path: Path, columns: dict[str, list[object]], message: str
) -> None:
    write(tmp_path, columns)
    with pytest.raises(FormatError, match=r"meta/tasks\.parquet: ") as caught:
        read(tmp_path)
    assert message in str(caught.value)


def test_a_text_that_is_no_utf8_is_named(tmp_path: Path) -> None:
    damaged = pa.array([b"a\xff"]).view(pa.string())
    (tmp_path / "meta").mkdir()
    pq.write_table(pa.table({"task_index": [0], "task": damaged}), tmp_path / "meta/tasks.parquet")
    with pytest.raises(FormatError, match=r"tasks\.parquet: column task: can't be converted"):
        read(tmp_path)


def test_texts_that_would_fill_the_memory_are_refused_unread(tmp_path: Path) -> None:
    (tmp_path / "meta").mkdir()
    with (tmp_path / "meta/tasks.parquet").open("wb") as stream:
        stream.truncate((1 << 30) + 1)  # a hole: it takes no space
    source = LocalSource(tmp_path, repo_id="a/b")
    with pytest.raises(FormatError, match=r"^meta/tasks\.parquet: wanted at most 1073741824 "):
        read_tasks(source)
    assert source.count.requests == 0
