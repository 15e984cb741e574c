from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lerobot_stream.dataset.parquet import TAIL_BYTES, read_columns, read_footer
from lerobot_stream.errors import FormatError, StreamError
from lerobot_stream.source.local import LocalSource
from lerobot_stream.source.ranges import SourceFile

PATH = "t.parquet"


def view(root: Path) -> SourceFile:
    return SourceFile(LocalSource(root, repo_id="a/b"), PATH)


def read(root: Path, groups: list[int], columns: list[str]) -> pa.Table:
    file = view(root)
    return read_columns(file, read_footer(file), groups, columns)


def write(root: Path, table: pa.Table, **options: object) -> None:
    pq.write_table(table, root / PATH, **options)


def large_table(num_rows: int = 20_000, num_columns: int = 6) -> pa.Table:
    random = np.random.default_rng(0)
    return pa.table({f"c{i}": random.random(num_rows) for i in range(num_columns)})


def test_columns_come_in_the_order_asked(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"], "c": [[1], [], [2, 3]]})
    write(tmp_path, table, row_group_size=2)
    assert read(tmp_path, [0, 1], ["c", "a"]).equals(table.select(["c", "a"]))
    assert read(tmp_path, [1], ["b"]).to_pydict() == {"b": ["z"]}
    assert read(tmp_path, [], ["b", "c"]).num_rows == 0


def test_a_small_file_costs_one_request(tmp_path: Path) -> None:
    write(tmp_path, pa.table({"a": range(50)}), row_group_size=10)
    source = LocalSource(tmp_path, repo_id="a/b")
    file = SourceFile(source, PATH)
    read_columns(file, read_footer(file), [0, 3], ["a"])
    assert source.count.requests == 1


def test_only_the_column_chunks_asked_for_are_fetched(tmp_path: Path) -> None:
    write(tmp_path, large_table(), row_group_size=5000)
    source = LocalSource(tmp_path, repo_id="a/b")
    footer = read_footer(SourceFile(source, PATH))
    before = source.count.bytes
    file = SourceFile(source, PATH)
    table = read_columns(file, footer, [1, 2], ["c2", "c3"], max_gap=0)
    wanted = sum(len(span) for span in footer.chunk_spans([1, 2], ["c2", "c3"]))
    assert table.num_rows == 10_000
    assert source.count.requests == 3
    assert source.count.bytes - before == wanted


def test_a_footer_longer_than_the_tail_costs_one_more_request(tmp_path: Path) -> None:
    write(tmp_path, large_table(2000, 60), row_group_size=50)
    source = LocalSource(tmp_path, repo_id="a/b")
    footer = read_footer(SourceFile(source, PATH))
    assert footer.metadata.serialized_size > TAIL_BYTES
    assert footer.num_groups == 40
    assert source.count.requests == 2


def test_a_column_whose_name_starts_another_is_told_apart(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2], "a.b": [[3], [4]], "a.b.c": [5, 6], "ab": [7, 8]})
    write(tmp_path, table)
    for name in table.column_names:
        assert read(tmp_path, [0], [name]).equals(table.select([name]))


def test_nested_columns_count_their_leaves(tmp_path: Path) -> None:
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    table = pa.table(
        {
            "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
            "image": pa.array([{"bytes": b"png", "path": None}], image),
            "deep": pa.array([[[[1, 2]]]]),
            "last": [9],
        }
    )
    write(tmp_path, table)
    footer = read_footer(view(tmp_path))
    assert footer.leaves == {"map": (0, 1), "image": (2, 3), "deep": (4,), "last": (5,)}
    assert read(tmp_path, [0], ["last", "image"]).equals(table.select(["last", "image"]))


def test_columns_of_one_name_are_one_if_they_are_equal(tmp_path: Path) -> None:
    write(tmp_path, pa.table([pa.array([1, 2])] * 2 + [pa.array([3, 4])], names=["a", "a", "b"]))
    assert read(tmp_path, [0], ["a"]).to_pydict() == {"a": [1, 2]}


def test_columns_of_one_name_that_differ_matter_only_where_they_are_read(tmp_path: Path) -> None:
    columns = [pa.array([1, 2]), pa.array([1, 3]), pa.array([3, 4])]
    write(tmp_path, pa.table(columns, names=["a", "a", "b"]))
    assert read(tmp_path, [0], ["b"]).to_pydict() == {"b": [3, 4]}
    with pytest.raises(FormatError, match=r"t\.parquet: has 2 columns a with different values"):
        read(tmp_path, [0], ["a"])


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    write(tmp_path, pa.table({"a": [1]}))
    with pytest.raises(FormatError, match=r"t\.parquet: has no column b"):
        read(tmp_path, [0], ["a", "b"])


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12\n"


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        (b"", "is empty", None),
        (POINTER, "is a git-lfs pointer, not the file itself", "git lfs pull"),
        (b"PAR1", "has no Parquet footer: wanted PAR1 at the end of 4 bytes", "fetch"),
        (
            b"PAR1" + b"x" * 90_000,
            "has no Parquet footer: wanted PAR1 at the end of 90004 bytes, found b'xxxx'",
            "fetch",
        ),
        (b"PAR1\x01\0\0\0PARE", "is an encrypted Parquet file", None),
        (b"x" * 20 + b"\xff\xff\xff\x7fPAR1", "the footer claims 2147483647 bytes of 28", None),
        (b"PAR1" + b"\x99" * 50 + b"\x32\0\0\0PAR1", "the footer can't be parsed", None),
    ],
)
def test_a_file_that_is_not_parquet_says_what_it_is(
    tmp_path: Path, data: bytes, message: str, hint: str | None
) -> None:
    (tmp_path / PATH).write_bytes(data)
    with pytest.raises(FormatError) as caught:
        read_footer(view(tmp_path))
    assert str(caught.value).startswith(f"t.parquet: {message}")
    assert (hint or "") in (caught.value.hint or "")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_damaged_pages_are_read_or_refused_by_name(tmp_path: Path, data: st.DataObject) -> None:
    write(tmp_path, pa.table({"a": list(range(60)), "b": [[i] for i in range(60)]}))
    content = bytearray((tmp_path / PATH).read_bytes())
    footer_start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, footer_start - 1))] ^= data.draw(st.integers(1, 255))
    (tmp_path / PATH).write_bytes(content)
    blamed: str | None = PATH
    try:
        read(tmp_path, [0], ["a", "b"])
    except StreamError as error:
        blamed = error.path
    assert blamed == PATH


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(kept=st.floats(0, 1, exclude_max=True))
def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path, kept: float) -> None:
    write(tmp_path, pa.table({"a": list(range(60))}))
    content = (tmp_path / PATH).read_bytes()
    (tmp_path / PATH).write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(FormatError, match=r"t\.parquet: (is empty|has no Parquet footer)"):
        read_footer(view(tmp_path))
