"""Faults are findings by place, one hides no other, and a clean dataset has none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from examples import make_demo_dataset
from lerobot_stream.inspect.finding import Finding, lost_episodes
from lerobot_stream.inspect.summary import Cost, Summary, inspect_dataset
from lerobot_stream.source.local import LocalSource
from tests.lerobot import Camera, Written, edit_episodes, edit_info, write_dataset
from tests.media import encode

TOP, WRIST = "observation.images.top", "observation.images.wrist"
LENGTHS = (5, 3, 4, 6)
G1 = Path(__file__).parents[2] / "../shared/data/g1_inspire"


def write_video(path: Path, numbers: Sequence[int]) -> None:
    encode(path, numbers)


@pytest.fixture
def written(tmp_path: Path) -> Written:
    cameras = {
        TOP: Camera(write_video, episodes_per_file=2, width=96),
        WRIST: Camera(write_video, episodes_per_file=3, width=96),
    }
    return write_dataset(tmp_path / "dataset", lengths=LENGTHS, cameras=cameras)


def look(root: Path, cost: Cost = "probe") -> Summary:
    return inspect_dataset(LocalSource(root, repo_id="local/arm"), cost=cost)


def grave(summary: Summary) -> list[Finding]:
    return [finding for finding in summary.findings if finding.severity != "info"]


@pytest.mark.parametrize("cost", ["metadata", "probe", "deep"])
def test_a_clean_dataset_has_no_warning(written: Written, cost: Cost) -> None:
    assert grave(look(written.root, cost)) == []


@pytest.mark.skipif(not G1.exists(), reason="no recorded dataset beside the repository")
@pytest.mark.parametrize("cost", ["metadata", "probe", "deep"])
def test_recorded_data_has_no_warning(cost: Cost) -> None:
    summary = look(G1.resolve(), cost)
    assert grave(summary) == []
    assert summary.drift_s().size in (0, 8)


@pytest.mark.parametrize("codec", ["av1", "h264"])
def test_the_demo_has_nothing_to_say(tmp_path: Path, codec: str) -> None:
    root = tmp_path / "demo"
    make_demo_dataset.write_dataset(root, num_episodes=3, codec=codec, gop=2, seed=0)
    assert look(root).findings == ()


def test_every_episode_has_its_place(written: Written) -> None:
    summary = look(written.root)
    spans = summary.videos.spans if summary.videos else None
    assert spans is not None
    assert spans.first_frame[:, 0].tolist() == [0, 5, 0, 4]
    assert spans.first_frame[:, 1].tolist() == [0, 5, 8, 0]
    paths = [written.root / path for paths in written.video_paths.values() for path in set(paths)]
    assert summary.video_bytes == sum(path.stat().st_size for path in paths)
    assert (summary.episode_bytes() > 0).all()
    assert summary.drift_s().tolist() == [0.0] * 4


def test_a_torn_video_costs_its_own_episodes_only(written: Written) -> None:
    path = written.root / written.video_paths[TOP][2]
    path.write_bytes(path.read_bytes()[:-200])
    summary = look(written.root)
    [finding] = grave(summary)
    assert (finding.kind.name, finding.path) == ("file-damaged", written.video_paths[TOP][2])
    assert finding.episodes == (2, 3)
    assert summary.videos is not None
    assert summary.videos.spans.placed.tolist() == [
        [True, True],
        [True, True],
        [False, True],
        [False, True],
    ]


def test_torn_rows_cost_their_own_episodes_only(written: Written) -> None:
    path = written.root / written.data_paths[0]
    path.write_bytes(path.read_bytes()[:-4])
    summary = look(written.root)
    [finding] = grave(summary)
    assert (finding.severity, finding.path) == ("error", written.data_paths[0])
    assert "the rows of episodes 0-1" in finding.message
    assert summary.rows is not None
    assert (summary.rows.episode_bytes >= 0).tolist() == [False, False, True, True]


def test_several_faults_are_all_found(written: Written) -> None:
    damaged = (written.data_paths[0], written.video_paths[WRIST][3], written.video_paths[TOP][0])
    (written.root / damaged[0]).write_bytes(b"")
    (written.root / damaged[1]).write_bytes(b"not a video, but some bytes")
    (written.root / damaged[2]).unlink()
    edit_episodes(
        written.root,
        lambda row: row.update({"data/file_index": 0}) if row["episode_index"] == 2 else None,
    )
    (written.root / "meta/stats.json").write_text("{")
    found = grave(look(written.root))
    assert {finding.path for finding in found} == {*damaged, "meta/stats.json"}
    assert lost_episodes(found, range(4)) == [0, 1, 2, 3]


def test_what_metadata_alone_shows_needs_no_other_file(written: Written) -> None:
    source = LocalSource(written.root, repo_id="local/arm")
    edit_episodes(written.root, lambda row: row.update({"length": 0}))
    summary = inspect_dataset(source, cost="metadata")
    assert "episode-length" in {finding.kind.name for finding in summary.findings}
    assert source.count.requests == 4  # info.json, stats.json, tasks, the episode table


def test_rows_are_read_within_their_budget(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lerobot_stream.inspect.summary.READ_BYTES", 1)
    summary = look(written.root)
    assert summary.values is not None
    assert not summary.values.complete
    assert summary.values.num_rows == LENGTHS[0]
    assert grave(summary) == []
    deep = look(written.root, "deep")
    assert deep.values is not None
    assert deep.values.num_rows == sum(LENGTHS)


def test_values_outside_the_statistics_show_in_a_part_of_the_rows(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    stats = written.root / "meta/stats.json"
    said = json.loads(stats.read_text())
    said["action"] |= {"max": [1.0, 20.0], "mean": [7.0, 7.0]}
    stats.write_text(json.dumps(said))
    monkeypatch.setattr("lerobot_stream.inspect.summary.READ_BYTES", 1)
    [finding] = grave(look(written.root))
    assert finding.message == "action: max of dimension 0 is 1, that of the rows 4 (1 of 2 differ)"
    monkeypatch.undo()
    [finding] = grave(look(written.root))
    assert "max of dimension 0 is 1, that of the rows 17 (2 of 2 differ)" in finding.message
    assert "mean of dimension 1 is 7, that of the rows 9 (2 of 2 differ)" in finding.message


def test_a_count_that_is_too_high_is_a_warning(written: Written) -> None:
    edit_info(written.root, lambda info: info.update(total_frames=99))
    [finding] = grave(look(written.root))
    assert (finding.kind.name, finding.severity) == ("counts", "warning")
    assert (finding.expected, finding.found) == ("99 frames", "18 frames")


def test_a_dataset_without_video_is_fine(tmp_path: Path) -> None:
    written = write_dataset(tmp_path / "dataset", lengths=LENGTHS)
    assert grave(look(written.root)) == []


def test_an_empty_dataset_is_named(tmp_path: Path) -> None:
    cameras = {TOP: Camera(write_video)}
    written = write_dataset(tmp_path / "dataset", lengths=[], cameras=cameras)
    assert [finding.kind.name for finding in grave(look(written.root))] == ["no-episodes"]


def test_nothing_is_written_to_the_dataset(written: Written) -> None:
    def state() -> dict[str, Any]:
        files = (path for path in written.root.rglob("*") if path.is_file())
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = state()
    look(written.root, "deep")
    assert state() == before
