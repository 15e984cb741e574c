from __future__ import annotations

import logging
import pickle
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lerobot_stream.dataset.episodes import EpisodeTable, read_episodes
from lerobot_stream.dataset.info import parse_info
from lerobot_stream.errors import DatasetError, FormatError, MissingFileError, StreamError
from lerobot_stream.source.local import LocalSource
from tests.lerobot import EPISODES_FILE, Camera, edit_episodes, edit_info, write_dataset

TOP, WRIST = "observation.images.top", "observation.images.wrist"


def write_numbers(path: Path, numbers: Sequence[int]) -> None:
    path.write_text(",".join(map(str, numbers)))


def cameras(top: int | list[int] = 2, wrist: int | list[int] = 3) -> dict[str, Camera]:
    return {TOP: Camera(write_numbers, top), WRIST: Camera(write_numbers, wrist)}


def read(root: Path) -> EpisodeTable:
    source = LocalSource(root, repo_id="a/b")
    return read_episodes(source, parse_info((root / "meta/info.json").read_bytes()))


def paths_of(table: EpisodeTable, key: str) -> list[str]:
    return [table.video_paths[key][file] for file in table.video_file[key]]


rollovers = st.one_of(st.integers(1, 4), st.lists(st.integers(1, 3), min_size=1, max_size=3))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=8),
    data=rollovers,
    top=rollovers,
    wrist=rollovers,
    meta=rollovers,
    per_folder=st.integers(1, 3),
)
def test_data_and_each_camera_roll_over_on_their_own(
    tmp_path: Path,
    lengths: list[int],
    data: int | list[int],
    top: int | list[int],
    wrist: int | list[int],
    meta: int | list[int],
    per_folder: int,
) -> None:
    shutil.rmtree(tmp_path / "set", ignore_errors=True)
    written = write_dataset(
        tmp_path / "set",
        lengths=lengths,
        cameras=cameras(top, wrist),
        episodes_per_data_file=data,
        episodes_per_meta_file=meta,
        files_per_chunk=per_folder,
    )
    table = read(tmp_path / "set")
    assert table.length.tolist() == lengths
    assert table.dataset_from_index.tolist() == list(written.starts)
    assert [table.data_paths[file] for file in table.data_file] == list(written.data_paths)
    for key in (TOP, WRIST):
        assert paths_of(table, key) == list(written.video_paths[key])
        for path in table.video_paths[key]:
            episodes = np.flatnonzero(table.video_file[key] == table.video_paths[key].index(path))
            frames = table.length[episodes] / 10
            np.testing.assert_allclose(
                table.from_timestamp[key][episodes], np.cumsum(frames) - frames, atol=1e-9
            )
            np.testing.assert_allclose(table.to_timestamp[key][episodes], np.cumsum(frames))


def test_every_file_is_listed_once(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[1] * 7, cameras=cameras())
    table = read(tmp_path)
    assert len(table) == 7
    assert len(table.data_paths) == len(table.video_paths[TOP]) == 4
    assert len(table.video_paths[WRIST]) == 3


def test_texts_of_tasks_follow_their_episode(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[1, 2, 3], tasks=["a", "b"], episodes_per_meta_file=1)
    edit_episodes(tmp_path, lambda row: row["tasks"].append("c") if row["length"] == 3 else None)
    assert read(tmp_path).tasks == (("a",), ("b",), ("a", "c"))


def test_a_table_without_texts_has_empty_ones(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[1, 2])
    edit_episodes(tmp_path, lambda row: row.pop("tasks"))
    assert read(tmp_path).tasks == ((), ())


def test_a_single_text_is_one_task_and_null_is_none(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[1, 2])
    edit_episodes(tmp_path, lambda row: row.update(tasks=None if row["length"] == 1 else "a"))
    assert read(tmp_path).tasks == ((), ("a",))


def test_files_join_by_name_and_full_path_whatever_their_column_order(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[3, 1, 4, 2], cameras=cameras())
    expected = read(tmp_path)
    table = pq.read_table(tmp_path / EPISODES_FILE)
    folder = tmp_path / "meta/episodes"
    (folder / "chunk-001").mkdir()
    pq.write_table(table.slice(2), folder / "chunk-000/file-000.parquet")
    back = table.slice(0, 2).select(list(reversed(table.column_names)))
    pq.write_table(back, folder / "chunk-001/file-000.parquet")
    found = read(tmp_path)
    assert found.episode_index.tolist() == [0, 1, 2, 3]
    assert found.length.tolist() == expected.length.tolist()
    assert paths_of(found, TOP) == paths_of(expected, TOP)
    assert found.from_timestamp[WRIST].tolist() == expected.from_timestamp[WRIST].tolist()


def test_a_file_elsewhere_in_the_folder_counts_too(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[3, 1])
    (tmp_path / EPISODES_FILE).rename(tmp_path / "meta/episodes/episodes.parquet")
    assert len(read(tmp_path)) == 2


def test_it_crosses_a_process_border(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[3, 1], cameras=cameras())
    table = read(tmp_path)
    copy = pickle.loads(pickle.dumps(table))
    assert copy.length.tolist() == table.length.tolist()
    assert copy.video_paths == table.video_paths


# what the wild holds


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("chunk_index", None),
        ("file_index", None),
        ("from_timestamp", None),
        ("file_index", 0.5),
        ("file_index", 1e300),
        ("file_index", float("inf")),
    ],
)
def test_an_episode_without_a_pointer_is_listed_as_such(
    tmp_path: Path, part: str, value: float | None
) -> None:
    write_dataset(tmp_path, lengths=[1, 2, 3], cameras=cameras())
    name = f"videos/{TOP}/{part}"

    def change(row: dict[str, Any]) -> None:
        row[name] = value if row["length"] == 2 else float(row[name])

    edit_episodes(tmp_path, change)
    table = read(tmp_path)
    assert table.video_file[TOP].tolist() == [0, -1, 1]
    assert table.video_file[WRIST].tolist() == [0, 0, 0]


def test_an_episode_without_rows_is_listed_as_such(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[1, 2])
    edit_episodes(tmp_path, lambda row: row.update({"data/file_index": None}))
    table = read(tmp_path)
    assert table.data_file.tolist() == [-1, -1]
    assert table.data_paths == ()


def test_pointers_that_pandas_made_floats_are_numbers(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[1, 2, 3])
    values: list[float | None] = [0.0, float("nan"), 1.0]
    edit_episodes(
        tmp_path, lambda row: row.update({"data/file_index": values[row["episode_index"]]})
    )
    table = read(tmp_path)
    assert table.data_file.tolist() == [0, -1, 1]
    assert table.data_paths[1] == "data/chunk-000/file-001.parquet"


def test_a_file_without_a_cameras_columns_leaves_its_episodes_without_it(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[1, 2], cameras=cameras(), episodes_per_meta_file=1)
    path = tmp_path / "meta/episodes/chunk-000/file-001.parquet"
    table = pq.read_table(path)
    kept = [name for name in table.column_names if not name.startswith(f"videos/{TOP}/")]
    pq.write_table(table.select(kept), path)
    found = read(tmp_path)
    assert found.video_file[TOP].tolist() == [0, -1]
    assert np.isnan(found.to_timestamp[TOP]).tolist() == [False, True]


def test_columns_of_one_name_in_the_table_do_no_harm(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[1, 2])
    table = pq.read_table(tmp_path / EPISODES_FILE)
    twice = table.append_column("length", table["length"]).append_column("x", table["length"])
    twice = twice.append_column("x", table["episode_index"])
    pq.write_table(twice, tmp_path / EPISODES_FILE)
    assert read(tmp_path).length.tolist() == [1, 2]


def test_no_episodes_are_a_table_of_length_0(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[], cameras=cameras())
    table = read(tmp_path)
    assert len(table) == 0
    assert table.video_paths == {TOP: (), WRIST: ()}
    assert table.data_paths == ()


def test_an_empty_table_is_no_episodes(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[1])
    path = tmp_path / EPISODES_FILE
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    assert len(read(tmp_path)) == 0


def test_places_in_the_dataset_are_counted_where_they_contradict_the_lengths(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_dataset(tmp_path, lengths=[3, 1, 4])
    edit_episodes(
        tmp_path, lambda row: row.update(dataset_from_index=0, dataset_to_index=row["length"])
    )
    with caplog.at_level(logging.WARNING):
        table = read(tmp_path)
    assert table.dataset_from_index.tolist() == [0, 3, 4]
    assert table.dataset_to_index.tolist() == [3, 4, 8]
    assert "episode 1: dataset_from_index is 0, the lengths before it sum to 3" in caplog.text


def test_places_without_end_are_counted_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_dataset(tmp_path, lengths=[3, 1])
    edit_episodes(tmp_path, lambda row: row.update(dataset_to_index=float("inf")))
    assert read(tmp_path).dataset_to_index.tolist() == [3, 4]
    assert "episode 0: dataset_to_index is inf, the lengths" in caplog.text


def test_places_that_are_left_out_are_counted_in_silence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_dataset(tmp_path, lengths=[3, 1])
    edit_episodes(
        tmp_path, lambda row: [row.pop(f"dataset_{side}_index") for side in ("from", "to")]
    )
    assert read(tmp_path).dataset_from_index.tolist() == [0, 3]
    assert not caplog.records


# what is refused


def test_an_episode_that_is_listed_twice_is_named_with_its_files(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[3, 1, 4])
    copy = tmp_path / "meta/episodes/episodes.parquet"
    shutil.copy(tmp_path / EPISODES_FILE, copy)
    message = rf"{EPISODES_FILE} and meta/episodes/episodes\.parquet: episode 0 is listed twice"
    with pytest.raises(DatasetError, match=message + ", and so are 2 others"):
        read(tmp_path)


@pytest.mark.parametrize(("gone", "first"), [({1}, 1), ({0, 1}, 0), ({2, 3}, 2)])
def test_a_gap_is_named(tmp_path: Path, gone: set[int], first: int) -> None:
    write_dataset(tmp_path, lengths=[1] * 5)
    path = tmp_path / EPISODES_FILE
    table = pq.read_table(path)
    pq.write_table(table.take([e for e in range(5) if e not in gone]), path)
    message = rf"wanted 5 episodes, found {5 - len(gone)}; episode {first} is missing"
    with pytest.raises(DatasetError, match=message):
        read(tmp_path)


def test_an_absurd_episode_index_takes_no_memory(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[1, 1])
    edit_episodes(tmp_path, lambda row: row.update(episode_index=row["episode_index"] << 60))
    with pytest.raises(DatasetError, match=r"episode 1 is missing"):
        read(tmp_path)


@pytest.mark.parametrize("length", [0, -3, 1 << 50])
def test_an_episode_without_frames_is_named(tmp_path: Path, length: int) -> None:
    write_dataset(tmp_path, lengths=[1, 2])
    edit_episodes(
        tmp_path, lambda row: row.update(length=length) if row["episode_index"] == 1 else None
    )
    with pytest.raises(DatasetError, match=f"{EPISODES_FILE}: episode 1: .* found length {length}"):
        read(tmp_path)


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], object], type[StreamError], str]] = {
    "no length": (lambda row: row.pop("length"), FormatError, "has no column length"),
    "null length": (
        lambda row: row.update(length=None),
        FormatError,
        "column length: wanted a whole number in every row",
    ),
    "half a frame": (
        lambda row: row.update(length=1.5),
        FormatError,
        "column length: wanted a whole number in every row",
    ),
    "more than any count": (
        lambda row: row.update(episode_index=1e300),
        FormatError,
        "column episode_index: wanted a whole number in every row",
    ),
    "text": (
        lambda row: row.update(episode_index=str(row["episode_index"])),
        FormatError,
        "column episode_index: wanted numbers, found string",
    ),
    "numbers as tasks": (
        lambda row: row.update(tasks=[3]),
        FormatError,
        "column tasks: wanted texts",
    ),
    "camera without columns": (
        lambda row: row.pop(f"videos/{TOP}/file_index"),
        DatasetError,
        f"no file of the episode table has a column videos/{TOP}/file_index",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_broken_column_is_named(tmp_path: Path, name: str) -> None:
    change, kind, message = CHANGES[name]
    write_dataset(tmp_path, lengths=[1, 2], cameras=cameras())
    edit_episodes(tmp_path, change)
    with pytest.raises(kind, match="meta/episodes/") as caught:
        read(tmp_path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[: len(data) * 9 // 10], "has no Parquet footer"),
        (lambda data: b"", "is empty"),
        (
            lambda data: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
            "is a git-lfs pointer",
        ),
    ],
    ids=["torn", "empty", "pointer"],
)
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, damage: Callable[[bytes], bytes], message: str
) -> None:
    write_dataset(tmp_path, lengths=[1] * 4, episodes_per_meta_file=2)
    path = tmp_path / "meta/episodes/chunk-000/file-001.parquet"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(FormatError, match=r"chunk-000/file-001\.parquet: " + message):
        read(tmp_path)


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[1])
    shutil.rmtree(tmp_path / "meta/episodes")
    with pytest.raises(MissingFileError, match="there is no episode table in"):
        read(tmp_path)


def test_the_metadata_of_v2_under_a_v3_label_is_named(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[1])
    shutil.rmtree(tmp_path / "meta/episodes")
    (tmp_path / "meta/episodes.jsonl").write_text("{}\n")
    with pytest.raises(DatasetError, match=r"info\.json says v3, but") as caught:
        read(tmp_path)
    assert "convert_dataset_v21_to_v30" in str(caught.value.hint)


# what is read of it


def test_statistics_of_episodes_are_not_fetched(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[1], cameras=cameras())
    total = write_long_table(tmp_path, num_episodes=6000, num_files=3, num_stats=60)
    source = LocalSource(tmp_path, repo_id="a/b")
    table = read_episodes(source, parse_info((tmp_path / "meta/info.json").read_bytes()))
    assert len(table) == 6000
    assert source.count.bytes < 0.05 * total
    row_groups, footers = 6, 3
    assert source.count.requests <= 2 * row_groups + 2 * footers


def write_long_table(root: Path, *, num_episodes: int, num_files: int, num_stats: int) -> int:
    """Write an episode table with statistics, 1,000 episodes a row group; return its bytes."""
    random = np.random.default_rng(0)
    edit_info(root, lambda info: info.update(total_episodes=num_episodes))
    total = 0
    for file, episodes in enumerate(np.array_split(np.arange(num_episodes), num_files)):
        count = len(episodes)
        columns: dict[str, Any] = {
            "episode_index": episodes,
            "data/chunk_index": episodes * 0,
            "data/file_index": episodes // 50,
            "dataset_from_index": episodes * 300,
            "dataset_to_index": episodes * 300 + 300,
        }
        for key in (TOP, WRIST):
            columns[f"videos/{key}/chunk_index"] = episodes * 0
            columns[f"videos/{key}/file_index"] = episodes // 30
            columns[f"videos/{key}/from_timestamp"] = episodes % 30 * 10.0
            columns[f"videos/{key}/to_timestamp"] = episodes % 30 * 10.0 + 10
        columns["tasks"] = [["pick up the cube"]] * count
        columns["length"] = np.full(count, 300)
        for number in range(num_stats):
            values = pa.array(random.random(7 * count))
            columns[f"stats/{number}/mean"] = pa.FixedSizeListArray.from_arrays(values, 7)
        columns["meta/episodes/chunk_index"] = episodes * 0
        path = root / f"meta/episodes/chunk-000/file-{file:03d}.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=1000)
        total += path.stat().st_size
    return total
