from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lerobot_stream.inspect.json_report import write_json
from lerobot_stream.inspect.summary import Cost, inspect_dataset
from lerobot_stream.source.local import LocalSource
from tests.inspect.damage import LENGTHS, TOP, WRIST, base, stale_files, tables

MEMBERS = {
    *("schema", "repo_id", "revision", "data_root", "codebase_version", "robot_type", "fps"),
    *("cost", "num_episodes", "num_frames", "num_tasks", "rows_bytes", "video_bytes"),
    *("rows_read", "drift", "cameras", "episodes", "groups", "findings", "exclude_episodes"),
}


def report(root: Path, cost: Cost = "probe") -> dict[str, Any]:
    summary = inspect_dataset(LocalSource(root, repo_id="lab/arm"), cost=cost)
    said: dict[str, Any] = json.loads("".join(write_json(summary)))
    return said


def test_the_members_are_those_that_are_described(tmp_path: Path) -> None:
    said = report(base(tmp_path))
    assert set(said) == MEMBERS
    assert said["schema"] == 1
    assert set(said["cameras"][0]) == {
        *("video_key", "stored", "codec", "height", "width", "num_files", "bytes"),
        *("fps", "gop", "longest_gop"),
    }
    assert set(said["episodes"][0]) == {
        *("episode_index", "length", "tasks", "rows_path", "rows_bytes", "severity", "cameras"),
    }
    assert set(said["episodes"][0]["cameras"][0]) == {
        *("video_key", "path", "first_frame", "bytes", "drift_s", "worst_frame"),
    }
    assert set(said["groups"][0]) == {
        *("kind", "severity", "title", "summary", "count", "num_episodes", "video_keys", "hints"),
    }
    assert set(said["findings"][0]) == {
        *("kind", "severity", "scope", "message", "path", "episodes", "video_key"),
        *("expected", "found", "hint"),
    }


def test_episodes_and_cameras_are_told(tmp_path: Path) -> None:
    said = report(base(tmp_path))
    assert [episode["length"] for episode in said["episodes"]] == list(LENGTHS)
    assert said["num_frames"] == sum(LENGTHS)
    assert [camera["video_key"] for camera in said["cameras"]] == [TOP, WRIST]
    assert (said["cameras"][0]["codec"], said["cameras"][0]["gop"]) == ("avc1", 2)
    views = [episode["cameras"][1] for episode in said["episodes"]]
    assert [view["first_frame"] for view in views] == [0, 5, 8, 0]
    assert said["rows_read"] == {"rows": 18, "complete": True}
    assert sum(said["drift"]["frames"]) == 2 * 18


def test_what_to_leave_out_is_told(tmp_path: Path) -> None:
    said = report(stale_files(tmp_path, 2))
    assert said["exclude_episodes"] == [2]
    assert [episode["severity"] for episode in said["episodes"]] == [None, None, "error", None]
    [group] = [group for group in said["groups"] if group["severity"] == "error"]
    assert group["summary"] == "rows are in another file than the metadata says: 1 of 4 episodes"


def test_what_was_not_read_is_null(tmp_path: Path) -> None:
    said = report(base(tmp_path), "metadata")
    assert set(said) == MEMBERS
    assert (said["rows_read"], said["drift"], said["cameras"][0]["codec"]) == (None, None, None)
    assert said["episodes"][0]["rows_bytes"] is None
    assert said["episodes"][0]["cameras"][0]["first_frame"] is None


def test_an_empty_dataset_is_an_object_too(tmp_path: Path) -> None:
    said = report(tables(tmp_path, lengths=[]))
    assert (said["episodes"], said["exclude_episodes"]) == ([], [])
