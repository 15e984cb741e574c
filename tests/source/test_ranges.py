from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lerobot_stream.errors import FormatError, MissingFileError, SourceError
from lerobot_stream.source.local import LocalSource
from lerobot_stream.source.ranges import MAX_FILE_BYTES, SourceFile, read_file, read_spans
from lerobot_stream.span import Span

DATA = np.random.default_rng(0).bytes(1000)
drawn = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80)
positions = st.integers(0, len(DATA))
spans = st.builds(lambda a, b: Span(min(a, b), max(a, b)), positions, positions)


@pytest.fixture
def source(tmp_path: Path) -> LocalSource:
    (tmp_path / "a.bin").write_bytes(DATA)
    (tmp_path / "empty.bin").write_bytes(b"")
    return LocalSource(tmp_path, repo_id="a/b")


def part(span: Span) -> bytes:
    return DATA[span.start : span.stop]


@given(st.lists(spans, max_size=8), st.integers(0, 50), st.integers(1, 400))
@drawn
def test_every_span_gets_its_own_bytes(
    source: LocalSource, spans: list[Span], max_gap: int, max_size: int
) -> None:
    found = read_spans(source, "a.bin", spans, max_gap=max_gap, max_size=max_size)
    assert found == [part(span) for span in spans]


def test_neighbouring_spans_cost_one_request(source: LocalSource) -> None:
    read_spans(source, "a.bin", [Span(100, 200), Span(0, 90), Span(300, 310)], max_gap=10)
    assert (source.count.requests, source.count.bytes) == (2, 210)


def test_empty_spans_cost_no_request(source: LocalSource) -> None:
    assert read_spans(source, "a.bin", [Span(5, 5), Span(1000, 1000)]) == [b"", b""]
    assert source.count.requests == 0


@pytest.mark.parametrize(("path", "data"), [("a.bin", DATA), ("empty.bin", b"")])
def test_a_whole_file_costs_one_request(source: LocalSource, path: str, data: bytes) -> None:
    assert read_file(source, path) == data
    assert source.count.requests == 1


def test_a_file_too_large_for_memory_costs_no_request(tmp_path: Path) -> None:
    with (tmp_path / "info.json").open("wb") as stream:
        stream.truncate(MAX_FILE_BYTES + 1)  # a hole: it takes no space
    source = LocalSource(tmp_path, repo_id="a/b")
    with pytest.raises(FormatError, match=r"^info\.json: wanted at most 67108864 .* 67108865$"):
        read_file(source, "info.json")
    assert source.count.requests == 0


def test_a_missing_file_costs_no_request(source: LocalSource) -> None:
    with pytest.raises(MissingFileError, match=r"b\.bin: no such file in "):
        read_file(source, "b.bin")
    with pytest.raises(MissingFileError, match=r"b\.bin"):
        SourceFile(source, "b.bin")
    assert source.count.requests == 0


steps = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(-1, 300)),
        st.tuples(st.just("readinto"), st.integers(0, 300)),
        st.tuples(st.just("set"), st.integers(0, 1100)),
        st.tuples(st.just("end"), st.integers(-1000, 10)),
        st.tuples(st.just("fetch"), st.integers(0, 900)),
    ),
    max_size=12,
)


@given(steps, st.sampled_from([0, 1, 64, 5000]))
@drawn
def test_a_view_behaves_like_a_file_of_the_same_bytes(
    source: LocalSource, steps: list[tuple[str, int]], block_bytes: int
) -> None:
    view, file = SourceFile(source, "a.bin", block_bytes=block_bytes), io.BytesIO(DATA)
    for step, value in steps:
        if step == "read":
            assert view.read(value) == file.read(value)
        elif step == "readinto":
            mine, other = bytearray(value), bytearray(value)
            assert view.readinto(mine) == file.readinto(other)
            assert mine == other
        elif step == "set":
            assert view.seek(value) == file.seek(value)
        elif step == "end":
            assert view.seek(value, io.SEEK_END) == file.seek(value, io.SEEK_END)
        else:
            view.fetch([Span(value, value + 50), Span(value + 60, value + 100)], max_gap=5)
        assert view.tell() == file.tell()


def test_a_position_before_the_start_is_refused(source: LocalSource) -> None:
    with pytest.raises(ValueError, match="position -1 is before the start"):
        SourceFile(source, "a.bin").seek(-1)


def test_reads_inside_what_was_fetched_cost_nothing(source: LocalSource) -> None:
    file = SourceFile(source, "a.bin")
    file.fetch([Span(10, 20), Span(40, 60), Span(500, 600)], max_gap=20)
    assert source.count.requests == 2
    assert file.read_span(Span(15, 55)) == DATA[15:55]
    file.fetch([Span(12, 18), Span(510, 600)])
    assert source.count.requests == 2
    file.read_span(Span(599, 601))
    assert source.count.requests == 3


def test_small_reads_in_a_row_share_a_block(source: LocalSource) -> None:
    file = SourceFile(source, "a.bin", block_bytes=400)
    assert b"".join(file.read(10) for _ in range(100)) == DATA
    assert source.count.requests == 3


def test_a_closed_view_keeps_nothing_and_reads_nothing(source: LocalSource) -> None:
    with SourceFile(source, "a.bin") as file:
        file.read()
    assert file.closed
    with pytest.raises(ValueError, match="closed"):
        file.read(1)


def test_pyarrow_reads_parquet_through_a_view(tmp_path: Path) -> None:
    table = pa.table({"a": range(100), "b": [str(i) for i in range(100)]})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=10)
    source = LocalSource(tmp_path, repo_id="a/b")
    assert pq.read_table(SourceFile(source, "t.parquet")).equals(table)


class Broken(LocalSource):
    """Fails in the middle."""

    def read(self, path: str, span: Span) -> bytes:
        raise SourceError("the line is down", path=path)


def test_a_fault_of_the_source_passes_through_pyarrow(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(bytes(100))
    with pytest.raises(SourceError, match=r"t\.parquet: the line is down"):
        pq.read_table(SourceFile(Broken(tmp_path, repo_id="a/b"), "t.parquet"))
