"""A fault of the episode table costs its own episodes only, and none hides another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lerobot_stream.dataset.episodes import EpisodeScan, read_episodes, scan_episodes
from lerobot_stream.dataset.info import parse_info
from lerobot_stream.source.local import LocalSource
from tests.lerobot import META_PATH, edit_episodes, write_dataset


def scan(root: Path) -> EpisodeScan:
    source = LocalSource(root, repo_id="a/b")
    return scan_episodes(source, parse_info((root / "meta/info.json").read_bytes()))


def kinds(found: EpisodeScan) -> list[str]:
    return [fault.kind for fault in found.faults]


def file_of(root: Path, number: int) -> Path:
    return root / META_PATH.format(chunk_index=0, file_index=number)


def test_a_whole_table_has_no_faults_and_is_the_one_that_is_read(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[3, 1, 4], episodes_per_meta_file=2)
    found = scan(tmp_path)
    assert found.faults == ()
    assert found.table.length.tolist() == [3, 1, 4]
    assert found.said_from.tolist() == [0, 3, 4]
    assert found.said_to.tolist() == [3, 4, 8]
    assert len(found.columns) == 2


def test_a_torn_file_costs_its_own_episodes(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[3, 1, 4, 2, 5], episodes_per_meta_file=2)
    torn = file_of(tmp_path, 1)
    torn.write_bytes(torn.read_bytes()[:-4])
    found = scan(tmp_path)
    assert kinds(found) == ["file", "missing"]
    assert found.faults[0].error.path == META_PATH.format(chunk_index=0, file_index=1)
    assert found.faults[1].episodes == (2, 3)
    assert found.table.episode_index.tolist() == [0, 1, 4]
    assert found.table.length.tolist() == [3, 1, 5]


def test_every_fault_is_there_at_once(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[1] * 8, episodes_per_meta_file=4)

    def damage(row: dict[str, Any]) -> None:
        if row["episode_index"] in (1, 6):
            row["length"] = 0
        if row["episode_index"] in (3, 7):
            row["episode_index"] = 2

    edit_episodes(tmp_path, damage)
    found = scan(tmp_path)
    assert {fault.kind: fault.episodes for fault in found.faults} == {
        "duplicate": (2,),
        "missing": (3,),
        "length": (1, 6),
    }
    assert found.table.episode_index.tolist() == [0, 1, 2, 4, 5, 6]
    assert found.table.length.tolist() == [1, 0, 1, 1, 1, 0]


def test_a_negative_episode_is_left_out(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[1, 1, 1])
    edit_episodes(tmp_path, lambda row: row.update(episode_index=row["episode_index"] - 1))
    found = scan(tmp_path)
    assert {fault.kind: fault.episodes for fault in found.faults} == {"negative": (-1,)}
    assert found.table.episode_index.tolist() == [0, 1]


def test_a_missing_column_leaves_the_rest(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[2, 1])
    edit_episodes(tmp_path, lambda row: row.pop("data/file_index"))
    found = scan(tmp_path)
    assert kinds(found) == ["column"]
    assert found.table.length.tolist() == [2, 1]
    assert found.table.data_file.tolist() == [-1, -1]


def test_columns_keep_their_order_and_their_doubles(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[2])
    path = file_of(tmp_path, 0)
    table = pq.read_table(path)
    doubled = pa.Table.from_arrays(
        [*table.columns, table.column("length")], names=[*table.column_names, "length"]
    )
    pq.write_table(doubled, path)
    [columns] = scan(tmp_path).columns.values()
    assert columns == (*table.column_names, "length")


def test_reading_raises_what_scanning_found_first(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[3, 1, 4, 2], episodes_per_meta_file=2)
    torn = file_of(tmp_path, 0)
    torn.write_bytes(b"")
    source = LocalSource(tmp_path, repo_id="a/b")
    info = parse_info((tmp_path / "meta/info.json").read_bytes())
    with pytest.raises(type(scan(tmp_path).faults[0].error), match="is empty"):
        read_episodes(source, info)
