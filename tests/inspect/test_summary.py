"""Faults are findings by place, one hides no other, and a clean dataset has none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lerobot_stream.inspect.summary import Summary, inspect_dataset
from lerobot_stream.source.local import LocalSource
from tests.lerobot import Camera, Written, edit_episodes, edit_info, write_dataset
from tests.media import encode

TOP, WRIST = "observation.images.top", "observation.images.wrist"
LENGTHS = (5, 3, 4, 6)


def write_video(path: Path, numbers: Sequence[int]) -> None:
    encode(path, numbers)


@pytest.fixture
def written(tmp_path: Path) -> Written:
    cameras = {
        TOP: Camera(write_video, episodes_per_file=2, width=96),
        WRIST: Camera(write_video, episodes_per_file=3, width=96),
    }
    return write_dataset(tmp_path / "dataset", lengths=LENGTHS, cameras=cameras)


def look(written: Written) -> Summary:
    return inspect_dataset(LocalSource(written.root, repo_id="local/arm"))


def test_a_clean_dataset_has_no_findings(written: Written) -> None:
    assert look(written).findings == ()


def test_every_episode_is_there_with_its_places(written: Written) -> None:
    episodes = look(written).episodes
    assert [episode.length for episode in episodes] == list(LENGTHS)
    assert [episode.rows_path for episode in episodes] == list(written.data_paths)
    for camera, key in enumerate((TOP, WRIST)):
        views = [episode.cameras[camera] for episode in episodes]
        assert [view.path for view in views] == list(written.video_paths[key])
    assert [episode.cameras[0].first_frame for episode in episodes] == [0, 5, 0, 4]
    assert [episode.cameras[1].first_frame for episode in episodes] == [0, 5, 8, 0]


def test_sizes_are_those_of_the_files(written: Written) -> None:
    summary = look(written)
    sizes = [(written.root / path).stat().st_size for path in set(written.video_paths[TOP])]
    assert summary.cameras[0].size == sum(sizes)
    assert (summary.cameras[0].width, summary.cameras[0].height) == (96, 64)
    assert all(episode.rows_bytes for episode in summary.episodes)


def test_rows_in_another_file_are_found_there(written: Written) -> None:
    def point_to_the_first(row: dict[str, Any]) -> None:
        if row["episode_index"] == 2:
            row["data/file_index"] = 0

    edit_episodes(written.root, point_to_the_first)
    [finding] = look(written).findings
    assert (finding.severity, finding.episode) == ("error", 2)
    assert written.data_paths[0] in finding.path
    assert written.data_paths[2] in finding.message


def test_a_torn_video_costs_its_own_episodes_only(written: Written) -> None:
    path = written.root / written.video_paths[TOP][2]
    path.write_bytes(path.read_bytes()[:-200])
    summary = look(written)
    [finding] = summary.findings
    assert (finding.severity, finding.path) == ("error", written.video_paths[TOP][2])
    assert f"{TOP} of episodes 2-3" in finding.message
    assert [e.cameras[0].first_frame >= 0 for e in summary.episodes] == [True, True, False, False]
    assert all(episode.cameras[1].first_frame >= 0 for episode in summary.episodes)


def test_torn_rows_cost_their_own_episodes_only(written: Written) -> None:
    path = written.root / written.data_paths[0]
    path.write_bytes(path.read_bytes()[:-4])
    summary = look(written)
    [finding] = summary.findings
    assert (finding.severity, finding.path) == ("error", written.data_paths[0])
    assert "the rows of episodes 0-1" in finding.message
    assert [episode.rows_bytes is None for episode in summary.episodes] == [
        True,
        True,
        False,
        False,
    ]


def test_several_faults_are_all_found(written: Written) -> None:
    for path in (written.data_paths[0], written.video_paths[WRIST][3], written.video_paths[TOP][0]):
        (written.root / path).write_bytes(b"")
    assert {finding.path for finding in look(written).findings} == {
        written.data_paths[0],
        written.video_paths[WRIST][3],
        written.video_paths[TOP][0],
    }


def test_a_short_video_names_episode_and_camera(tmp_path: Path) -> None:
    def short(path: Path, numbers: Sequence[int]) -> None:
        encode(path, numbers[:-2])

    written = write_dataset(
        tmp_path / "dataset", lengths=LENGTHS, cameras={TOP: Camera(short, 4, width=96)}
    )
    [finding] = look(written).findings
    assert (finding.severity, finding.episode, finding.video_key) == ("error", 3, TOP)


def test_counts_that_disagree_are_a_warning(written: Written) -> None:
    edit_info(written.root, lambda info: info.update(total_frames=99))
    summary = look(written)
    assert [finding.severity for finding in summary.findings] == ["warning"]
    assert not summary.has_errors


def test_a_dataset_without_video_is_fine(tmp_path: Path) -> None:
    written = write_dataset(tmp_path / "dataset", lengths=LENGTHS)
    summary = look(written)
    assert summary.findings == ()
    assert [episode.cameras for episode in summary.episodes] == [()] * len(LENGTHS)


def test_nothing_is_written_to_the_dataset(written: Written) -> None:
    def state() -> dict[str, int]:
        files = (path for path in written.root.rglob("*") if path.is_file())
        return {str(path): path.stat().st_mtime_ns for path in files}

    before = state()
    look(written)
    assert state() == before
