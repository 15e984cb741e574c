from __future__ import annotations

import io
import pickle
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from lerobot_stream.dataset.episodes import read_episodes
from lerobot_stream.dataset.info import parse_info
from lerobot_stream.dataset.rows import RowReader, Rows
from lerobot_stream.errors import DatasetError, FormatError, MissingFileError
from lerobot_stream.source.local import LocalSource
from tests.lerobot import Written, edit_info, number_of, write_dataset

FIRST = "data/chunk-000/file-000.parquet"
SECOND = "data/chunk-000/file-001.parquet"


def open_reader(root: Path) -> RowReader:
    info = parse_info((root / "meta/info.json").read_bytes())
    return RowReader(LocalSource(root, repo_id="a/b"), info)


def read(root: Path, written: Written, episode: int) -> Rows:
    length, path = written.lengths[episode], written.data_paths[episode]
    return open_reader(root).read(episode, length, path)


def edit_rows(path: Path, change: Callable[[pa.Table], pa.Table], **options: Any) -> None:
    pq.write_table(change(pq.read_table(path)), path, **options)


def assert_rows(rows: Rows, expected: dict[str, Any]) -> None:
    assert rows.columns.keys() == expected.keys()
    for key, values in expected.items():
        assert rows.columns[key].dtype == values.dtype
        np.testing.assert_array_equal(rows.columns[key], values)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    per_file=st.integers(1, 3),
    row_group=st.one_of(st.just("episode"), st.integers(1, 20), st.just(1000)),
    statistics=st.booleans(),
)
def test_an_episode_has_its_own_rows_however_row_groups_are_cut(
    tmp_path: Path,
    lengths: list[int],
    per_file: int,
    row_group: Literal["episode"] | int,
    statistics: bool,
) -> None:
    shutil.rmtree(tmp_path / "set", ignore_errors=True)
    written = write_dataset(
        tmp_path / "set",
        lengths=lengths,
        episodes_per_data_file=per_file,
        row_group=row_group,
        statistics=statistics,
    )
    reader = open_reader(tmp_path / "set")
    for episode, (length, path) in enumerate(zip(lengths, written.data_paths, strict=True)):
        rows = reader.read(episode, length, path)
        assert len(rows) == length
        assert_rows(rows, written.rows(episode))


def test_features_of_every_shape_and_text_are_columns(tmp_path: Path) -> None:
    features = {
        "matrix": np.arange(36, dtype=np.float64).reshape(6, 2, 3),
        "next.done": np.array([False, True] * 3),
        "note": np.array([f"line {i}" for i in range(6)], object),
    }
    written = write_dataset(tmp_path, lengths=[4, 2], features=features)
    assert_rows(read(tmp_path, written, 1), written.rows(1))


def test_pictures_in_parquet_are_handed_out_as_stored(tmp_path: Path) -> None:
    written = write_dataset(
        tmp_path, lengths=[2, 3], image_cameras={"front": (4, 6), "hand": (2, 2)}
    )
    rows = read(tmp_path, written, 1)
    assert set(rows.images) == {"front", "hand"}
    for pictures, size in ((rows.images["front"], (4, 6, 3)), (rows.images["hand"], (2, 2, 3))):
        decoded = [np.asarray(Image.open(io.BytesIO(picture))) for picture in pictures]
        assert [picture.shape for picture in decoded] == [size] * 3
        assert [number_of(picture) for picture in decoded] == [2, 3, 4]


def test_rows_come_by_rising_index_whatever_their_order_in_the_file(tmp_path: Path) -> None:
    written = write_dataset(tmp_path, lengths=[7, 5], row_group=1000)
    order = np.random.default_rng(0).permutation(12)
    edit_rows(tmp_path / FIRST, lambda table: table.take(order), row_group_size=4)
    for episode in (0, 1):
        assert_rows(read(tmp_path, written, episode), written.rows(episode))


def test_columns_beyond_the_features_are_not_read(tmp_path: Path) -> None:
    written = write_dataset(tmp_path, lengths=[3])
    edit_rows(tmp_path / FIRST, lambda table: table.append_column("extra", [["x"] * 3]))
    assert "extra" not in read(tmp_path, written, 0).columns


def test_places_are_checked_even_if_they_are_no_features(tmp_path: Path) -> None:
    written = write_dataset(tmp_path, lengths=[3])
    edit_info(tmp_path, lambda info: info["features"].pop("frame_index"))
    assert "frame_index" not in read(tmp_path, written, 0).columns


# what is read of it


def write_wide(root: Path) -> Written:
    wide = np.random.default_rng(0).random((4000, 32)).astype(np.float32)
    return write_dataset(
        root, lengths=[1000] * 4, features={"wide": wide}, episodes_per_data_file=4
    )


def test_an_episode_costs_one_request_for_its_row_groups_and_one_a_file_for_the_footer(
    tmp_path: Path,
) -> None:
    written = write_wide(tmp_path)
    source = LocalSource(tmp_path, repo_id="a/b")
    reader = RowReader(source, parse_info((tmp_path / "meta/info.json").read_bytes()))
    reader.row_group_bytes(FIRST, 0)
    footer = source.count.bytes
    assert source.count.requests == 1
    for episode in range(4):
        assert_rows(reader.read(episode, 1000, FIRST), written.rows(episode))
    assert source.count.requests == 5
    expected = sum(reader.row_group_bytes(FIRST, episode) for episode in range(4))
    assert source.count.bytes - footer == expected


def test_columns_left_out_of_the_features_are_left_out_of_the_bytes(tmp_path: Path) -> None:
    write_wide(tmp_path)
    everything = open_reader(tmp_path).row_group_bytes(FIRST, 1)
    edit_info(tmp_path, lambda info: info["features"].pop("wide"))
    assert open_reader(tmp_path).row_group_bytes(FIRST, 1) < 0.2 * everything


def test_an_episode_that_straddles_row_groups_costs_only_those(tmp_path: Path) -> None:
    written = write_dataset(tmp_path, lengths=[40, 10, 40], episodes_per_data_file=3, row_group=15)
    metadata = pq.ParquetFile(tmp_path / FIRST).metadata
    sizes = [
        sum(metadata.row_group(g).column(c).total_compressed_size for c in range(7))
        for g in range(metadata.num_row_groups)
    ]
    reader = open_reader(tmp_path)
    assert_rows(reader.read(1, 10, FIRST), written.rows(1))
    assert reader.row_group_bytes(FIRST, 1) == sizes[2] + sizes[3]
    assert reader.row_group_bytes(FIRST, 0) == sum(sizes[:3])


def test_many_threads_read_the_same_and_each_footer_once(tmp_path: Path) -> None:
    written = write_dataset(tmp_path, lengths=[5] * 8, episodes_per_data_file=4)
    source = LocalSource(tmp_path, repo_id="a/b")
    reader = RowReader(source, parse_info((tmp_path / "meta/info.json").read_bytes()))
    episodes = list(range(8)) * 6
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda e: reader.read(e, 5, written.data_paths[e]), episodes))
    for episode, rows in zip(episodes, found, strict=True):
        assert_rows(rows, written.rows(episode))
    assert source.count.requests == 2 + len(episodes)


def test_a_copy_in_another_process_reads_the_same(tmp_path: Path) -> None:
    written = write_dataset(tmp_path, lengths=[5, 3])
    reader = open_reader(tmp_path)
    reader.read(0, 5, FIRST)
    copy = pickle.loads(pickle.dumps(reader))
    assert_rows(copy.read(1, 3, FIRST), written.rows(1))


# what is refused


def test_rows_in_another_file_are_told_from_rows_that_are_missing(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[3, 4, 5, 6])
    message = rf"{FIRST}: episode 2: metadata says its rows are here, but they are in {SECOND}"
    with pytest.raises(DatasetError, match=message):
        open_reader(tmp_path).read(2, 5, FIRST)
    message = rf"{FIRST}: episode 9: 5 rows are missing: wanted 5, found 0"
    with pytest.raises(DatasetError, match=message):
        open_reader(tmp_path).read(9, 5, FIRST)


def test_rows_are_searched_in_row_groups_that_only_may_have_them(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[3, 1, 1, 3], episodes_per_data_file=[1, 3], row_group=1000)
    reader = open_reader(tmp_path)
    edit_rows(tmp_path / SECOND, lambda table: table.filter(pa.array([True, False, *[True] * 3])))
    assert reader.find(2) is None
    assert reader.find(0) == FIRST
    assert reader.find(3) == SECOND
    with pytest.raises(DatasetError, match="1 rows are missing: wanted 1, found 0"):
        reader.read(2, 1, FIRST)


def test_an_episode_cut_in_two_by_files_is_named(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[3, 4])
    table = pq.read_table(tmp_path / FIRST)
    pq.write_table(table.slice(0, 5), tmp_path / FIRST)
    pq.write_table(table.slice(5), tmp_path / SECOND)
    with pytest.raises(DatasetError, match=rf"2 of 4 rows are here, others are in {SECOND}"):
        open_reader(tmp_path).read(1, 4, FIRST)


def test_a_data_file_that_cannot_be_searched_is_mentioned(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[3, 4, 5, 6])
    (tmp_path / SECOND).write_bytes(b"PAR1 torn")
    with pytest.raises(
        DatasetError, match=r"5 rows are missing.*; 1 other data files can't be read"
    ):
        open_reader(tmp_path).read(2, 5, FIRST)
    assert open_reader(tmp_path).find(2) is None


@pytest.mark.parametrize(
    ("length", "message"),
    [
        (5, "episode 0: 2 rows are missing: wanted 5, found 3"),
        (2, "episode 0: the episode table says 2 rows, found 3"),
    ],
)
def test_another_number_of_rows_than_promised_is_named(
    tmp_path: Path, length: int, message: str
) -> None:
    write_dataset(tmp_path, lengths=[3, 4])
    with pytest.raises(DatasetError, match=message):
        open_reader(tmp_path).read(0, length, FIRST)


def replace(name: str, values: list[object]) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        return table.set_column(table.column_names.index(name), name, [values])

    return change


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (
            replace("frame_index", [0, 2, 3]),
            DatasetError,
            "episode 0: wanted frame_index 1, found 2",
        ),
        (
            replace("frame_index", [0, None, 2]),
            DatasetError,
            "episode 0: wanted frame_index 1, found nan",
        ),
        (
            replace("index", [2, 1, 0]),
            DatasetError,
            "episode 0: wanted frame_index 0, found 2",
        ),
        (
            replace("action", [[1.0, 2.0], [3.0, 4.0], [5.0]]),
            FormatError,
            "column action: lists have 1 to 2 values",
        ),
        (
            replace("action", [[1.0]] * 3),
            FormatError,
            r"column action: wanted 2 values a row for shape \[2\], found 1",
        ),
        (replace("timestamp", [0.0, None, 0.2]), FormatError, "column timestamp: 1 of 3 values"),
        (lambda table: table.drop_columns(["action"]), FormatError, "has no column action"),
        (lambda table: table.drop_columns(["index"]), FormatError, "has no column index"),
        (
            lambda table: table.drop_columns(["episode_index"]),
            FormatError,
            "has no column episode_",
        ),
    ],
)
def test_rows_that_break_a_promise_are_refused(
    tmp_path: Path,
    change: Callable[[pa.Table], pa.Table],
    kind: type[DatasetError] | type[FormatError],
    message: str,
) -> None:
    write_dataset(tmp_path, lengths=[3])
    edit_rows(tmp_path / FIRST, change)
    with pytest.raises(kind, match=rf"{FIRST}: {message}"):
        open_reader(tmp_path).read(0, 3, FIRST)


def test_a_picture_that_is_not_in_the_file_is_refused(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[2], image_cameras={"front": (2, 2)})
    rows = [{"bytes": None, "path": "1.png"}] * 2
    edit_rows(tmp_path / FIRST, replace("front", list(rows)))
    with pytest.raises(FormatError, match="column front: "):
        open_reader(tmp_path).read(0, 2, FIRST)


def test_a_missing_data_file_is_named(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[3])
    with pytest.raises(MissingFileError, match=rf"{SECOND}: no such file"):
        open_reader(tmp_path).read(0, 3, SECOND)


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.9])
def test_a_torn_data_file_is_named(tmp_path: Path, kept: float) -> None:
    write_dataset(tmp_path, lengths=[3])
    data = (tmp_path / FIRST).read_bytes()
    (tmp_path / FIRST).write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(FormatError, match=rf"{FIRST}: (is empty|has no Parquet footer)"):
        open_reader(tmp_path).read(0, 3, FIRST)


# a recording of a real robot

RECORDING = Path(__file__).parents[2] / "../shared/data/g1_inspire"


@pytest.mark.skipif(not RECORDING.is_dir(), reason="needs the shared recording")
def test_all_rows_of_a_real_recording_are_read_in_order() -> None:
    source = LocalSource(RECORDING, repo_id="robots/g1")
    info = parse_info((RECORDING / "meta/info.json").read_bytes())
    table, reader = read_episodes(source, info), RowReader(source, info)
    source.count.requests = 0
    parts = [
        reader.read(int(e), int(n), table.data_paths[file])
        for e, n, file in zip(table.episode_index, table.length, table.data_file, strict=True)
    ]
    assert source.count.requests == 1 + 8
    together = {
        key: np.concatenate([part.columns[key] for part in parts]) for key in info.column_keys
    }
    expected = pq.read_table(RECORDING / "data/chunk-000/file-000.parquet")
    for key, values in together.items():
        assert values.dtype == info.features[key].dtype
        np.testing.assert_array_equal(values, np.array(expected[key].to_pylist(), values.dtype))
