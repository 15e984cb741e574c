from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lerobot_stream.dataset.episodes import EpisodeTable
from lerobot_stream.dataset.metadata import read_metadata, select_episodes
from lerobot_stream.errors import DatasetError, MissingFileError
from lerobot_stream.source.local import LocalSource
from tests.lerobot import Camera, edit_info, write_dataset


def open_local(root: Path) -> LocalSource:
    return LocalSource(root, repo_id="a/b")


def test_metadata_is_everything_but_rows_and_videos(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[3, 4], tasks=["push", "pull"])
    metadata = read_metadata(open_local(tmp_path))
    assert metadata.info.total_frames == 7
    assert metadata.episodes.length.tolist() == [3, 4]
    assert metadata.tasks == {0: "push", 1: "pull"}
    assert metadata.stats["index"]["max"].tolist() == [6]


def write_nothing(path: Path, numbers: Sequence[int]) -> None:
    path.write_bytes(b"")


def test_what_lerobot_reads_from_metadata_is_there_under_its_names(tmp_path: Path) -> None:
    written = write_dataset(
        tmp_path,
        lengths=[3, 4],
        fps=30,
        image_cameras={"still": (4, 6)},
        cameras={"observation.images.top": Camera(write_nothing)},
    )
    edit_info(tmp_path, lambda info: info.update(robot_type="so101"))
    meta = read_metadata(open_local(tmp_path))
    assert (meta.fps, meta.robot_type) == (30, "so101")
    assert (meta.total_episodes, meta.total_frames) == (2, 7)
    assert meta.video_keys == ["observation.images.top"]
    assert meta.image_keys == ["still"]
    assert sorted(meta.camera_keys) == ["observation.images.top", "still"]
    assert meta.features["still"]["dtype"] == "image"
    assert meta.features["still"]["shape"] == meta.shapes["still"] == (4, 6, 3)
    assert meta.features["still"]["names"] == meta.names["still"]
    assert meta.names.keys() == meta.shapes.keys() == meta.features.keys() > written.columns.keys()


def test_a_feature_has_no_other_fields_by_name(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[1])
    with pytest.raises(KeyError):
        read_metadata(open_local(tmp_path)).features["action"]["height"]


def test_no_data_file_is_touched(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[3, 4])
    (tmp_path / "data/chunk-000/file-000.parquet").write_bytes(b"torn")
    assert read_metadata(open_local(tmp_path)).episodes.length.tolist() == [3, 4]


def test_a_folder_without_a_dataset_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"meta/info\.json: no such file in "):
        read_metadata(open_local(tmp_path))


def test_a_dataset_of_v2_is_named_before_its_episodes_are_missed(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[])
    edit_info(tmp_path, lambda info: info.update(codebase_version="v2.1", total_episodes=3))
    with pytest.raises(DatasetError, match=r"found v2\.1"):
        read_metadata(open_local(tmp_path))


def test_an_empty_recording_is_metadata_of_no_episodes(tmp_path: Path) -> None:
    write_dataset(tmp_path, lengths=[], tasks=[])
    (tmp_path / "meta/stats.json").unlink()
    (tmp_path / "meta/tasks.parquet").unlink()
    metadata = read_metadata(open_local(tmp_path))
    assert len(metadata.episodes) == 0
    assert (metadata.tasks, metadata.stats) == ({}, {})


# the counts


def test_counts_that_agree_are_silent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_dataset(tmp_path, lengths=[3, 4, 5])
    with caplog.at_level(logging.WARNING):
        read_metadata(open_local(tmp_path))
    assert not caplog.records


def test_counts_that_disagree_are_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_dataset(tmp_path, lengths=[3, 4])
    edit_info(tmp_path, lambda info: info.update(total_episodes=105, total_frames=27623))
    with caplog.at_level(logging.WARNING):
        read_metadata(open_local(tmp_path))
    assert [record.message for record in caplog.records] == [
        "meta/info.json promises 105 episodes, the episode table has 2",
        "meta/info.json promises 27623 frames, the episode table has 7",
    ]


# the choice of episodes


def table_of(episode_index: list[int]) -> EpisodeTable:
    index = np.array(episode_index, np.int64)
    return EpisodeTable(index, index, index, index, (), index, {}, {}, {}, {}, ())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_the_chosen_are_the_kept_without_the_excluded(data: st.DataObject) -> None:
    existing = sorted(data.draw(st.sets(st.integers(0, 40), min_size=1)))
    some = st.lists(st.sampled_from(existing))
    kept, excluded = data.draw(st.none() | some), data.draw(st.none() | some)
    numbers = select_episodes(table_of(existing), kept, excluded)
    wanted = set(existing if kept is None else kept) - set(excluded or ())
    assert [existing[number] for number in numbers] == sorted(wanted)


@pytest.mark.parametrize("episode", [-1, 3, 5])
def test_an_episode_that_is_not_there_is_named(episode: int) -> None:
    message = f"episode {episode} is not in the dataset, which has episodes 0 to 4"
    for kept, excluded in (([0, episode], None), (None, [episode])):
        with pytest.raises(ValueError, match=message):
            select_episodes(table_of([0, 1, 2, 4]), kept, excluded)


def test_a_dataset_without_episodes_has_none_to_choose() -> None:
    assert len(select_episodes(table_of([]), None, None)) == 0
    with pytest.raises(ValueError, match="episode 0 is not in the dataset, which has no episodes"):
        select_episodes(table_of([]), [0], None)


@pytest.mark.parametrize(
    ("episode", "error"), [(1.0, TypeError), ("1", TypeError), (1 << 70, ValueError)]
)
def test_an_episode_is_a_whole_number_of_64_bits(episode: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        select_episodes(table_of([0, 1]), [episode], None)
