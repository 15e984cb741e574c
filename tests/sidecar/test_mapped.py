"""A mapped index serves as its sidecar does, in views that nobody can write."""

from __future__ import annotations

import dataclasses
import io
import os
import pickle
import tempfile
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.errors import FormatError, SidecarError
from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.mp4.mux import build_mini_mp4, mini_mp4_sizes
from lerobot_stream.mp4.select import byte_spans, present, select_samples
from lerobot_stream.sidecar.mapped import MappedIndex
from lerobot_stream.sidecar.mapped_layout import COLUMNS, write_mapped
from tests.sidecar.memory import UNPINNED
from tests.sidecar.processes import size_of_first_sample
from tests.sidecar.synthetic import make_index
from tests.sidecar.tables import Tables, indexes

A, B, C = "videos/a.mp4", "videos/é/b.mp4", "videos/\N{GRINNING FACE}.mp4"


def mapped(tables: Tables, path: Path) -> MappedIndex:
    with path.open("wb") as stream:
        write_mapped(stream, tables)
    return MappedIndex(path)


def remapped(index: Mp4Index) -> Mp4Index:
    """The same table by way of a mapped file, which is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        return mapped(Tables({A: index}), Path(folder) / "x.idx").index(A)


def columns_equal(one: Mp4Index, other: Mp4Index) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in COLUMNS)


@pytest.fixture
def tables() -> Tables:
    return Tables({A: make_index(5), B: make_index(300, size=9), C: make_index(1)})


@given(st.lists(indexes(), max_size=4))
def test_every_table_is_found_with_every_number(drawn: list[Mp4Index]) -> None:
    tables = Tables({f"videos/{i}.mp4": index for i, index in enumerate(drawn)})
    with tempfile.TemporaryDirectory() as folder:
        found = mapped(tables, Path(folder) / "x.idx")
    assert found.paths == tables.paths
    for path in tables.paths:
        assert columns_equal(found.index(path), tables.index(path))
        assert found.index(path).movie == tables.index(path).movie


@given(indexes(), st.data())
def test_whatever_is_planned_and_built_from_it_is_the_same(
    index: Mp4Index, data: st.DataObject
) -> None:
    small = remapped(index)
    presentation = present(index)
    for field in dataclasses.fields(presentation):
        one, other = (getattr(present(i), field.name) for i in (index, small))
        assert np.array_equal(one, other)
    frames = len(presentation.order)
    first = data.draw(st.integers(0, frames - 1))
    length = data.draw(st.integers(1, frames - first))
    stretch = np.array([first]), np.array([length])
    start, stop = select_samples(index, presentation, *stretch)
    again = select_samples(small, present(small), *stretch)
    assert (start.tolist(), stop.tolist()) == (again[0].tolist(), again[1].tolist())
    assert np.array_equal(byte_spans(index, start, stop), byte_spans(small, start, stop))
    assert np.array_equal(mini_mp4_sizes(index, start, stop), mini_mp4_sizes(small, start, stop))
    if start[0] < 0:
        return  # no entry precedes the first frame
    run = int(start[0]), int(stop[0])
    at = int(index.offset[run[0]])
    payload = bytes(int(index.size[run[0] : run[1]].sum()))
    one, other = (build_mini_mp4(i, *run, payload, at) for i in (index, small))
    assert one.data == other.data
    assert one.mapping_json() == other.mapping_json()


def test_it_says_what_the_sidecar_says(tables: Tables, tmp_path: Path) -> None:
    found = mapped(dataclasses.replace(tables, identity=UNPINNED, subset=True), tmp_path / "x.idx")
    assert found.identity == UNPINNED
    assert found.subset
    assert found.paths == (A, B, C)


def test_views_cannot_be_written_and_copy_nothing(tables: Tables, tmp_path: Path) -> None:
    index = mapped(tables, tmp_path / "x.idx").index(B)
    for name in COLUMNS:
        column = getattr(index, name)
        assert not column.flags.writeable
        assert not column.flags.owndata
    assert (index.size.strides, index.size.shape) == ((0,), (300,))
    assert (index.pts_s.strides, index.pts_s.dtype) == ((8,), np.dtype(np.float64))
    assert index.offset.dtype == np.int16


def test_a_path_that_is_not_there_is_named(tables: Tables, tmp_path: Path) -> None:
    found = mapped(tables, tmp_path / "x.idx")
    for path in ("", "videos/b.mp4", "zzz"):
        with pytest.raises(SidecarError, match="not among the 3 files"):
            found.index(path)


def test_nothing_can_be_opened_after_closing_and_open_tables_stay(
    tables: Tables, tmp_path: Path
) -> None:
    found = mapped(tables, tmp_path / "x.idx")
    index = found.index(B)
    found.close()
    with pytest.raises(ValueError, match="is closed"):
        found.index(A)
    assert columns_equal(index, tables.index(B))


def test_open_tables_outlive_the_file_and_its_successor(tables: Tables, tmp_path: Path) -> None:
    path = tmp_path / "x.idx"
    found = mapped(tables, path)
    index = found.index(B)
    other = tmp_path / "y.idx"
    mapped(Tables({A: make_index(7)}), other)
    other.replace(path)
    assert columns_equal(index, tables.index(B))
    assert columns_equal(found.index(A), tables.index(A))
    path.unlink()
    assert columns_equal(found.index(C), tables.index(C))


def test_no_descriptor_is_held(tables: Tables, tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - no path is wanted
    held = [mapped(tables, tmp_path / "x.idx") for _ in range(8)]
    del held
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_a_pickled_one_maps_the_same_file_in_another_process(
    tables: Tables, tmp_path: Path
) -> None:
    found = mapped(tables, tmp_path / "x.idx")
    assert columns_equal(pickle.loads(pickle.dumps(found)).index(B), tables.index(B))
    with get_context("spawn").Pool(1) as pool:
        assert pool.apply(size_of_first_sample, ((found, B),)) == 9


@pytest.mark.parametrize("content", [b"", b"x", b"lrsindex" + bytes(200)])
def test_what_is_no_mapped_index_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.idx"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"x\.idx: "):
        MappedIndex(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SidecarError, match="cannot be opened: No such file"):
        MappedIndex(tmp_path / "x.idx")


@pytest.mark.parametrize(
    ("field", "value"), [("stored", 1 << 40), ("place", 1 << 40), ("type", 200), ("stored", 2)]
)
def test_a_record_that_leads_outside_is_refused(
    tables: Tables, tmp_path: Path, field: str, value: int
) -> None:
    found = mapped(tables, tmp_path / "x.idx")
    records = found._records.copy()
    records[field][:, 0] = value
    found._records = records
    with pytest.raises(FormatError, match=r"numbers (of type|at byte) "):
        found.index(A)


def test_writing_takes_one_table_at_a_time(tables: Tables) -> None:
    asked: list[str] = []

    class Counted(Tables):
        def index(self, path: str) -> Mp4Index:
            asked.append(path)
            return super().index(path)

    write_mapped(io.BytesIO(), Counted(tables.indexes))
    assert asked == [A, B, C]
