"""Building, validating, publishing and inspecting from the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lerobot_stream.cli.app import COMMANDS
from lerobot_stream.cli.episode_list import parse_episodes
from lerobot_stream.cli.main import run
from tests.cli.processes import imported_by
from tests.lerobot import Camera, Written, edit_episodes, edit_info, write_dataset
from tests.media import encode

TOP = "observation.images.top"
LENGTHS = (4, 3, 5)


def write_video(path: Path, numbers: Sequence[int]) -> None:
    encode(path, numbers)


@pytest.fixture
def written(tmp_path: Path) -> Written:
    camera = Camera(write_video, episodes_per_file=1, width=96)
    return write_dataset(tmp_path / "dataset", lengths=LENGTHS, cameras={TOP: camera})


def call(command: str, *arguments: str | Path) -> int:
    return run("lerobot-stream", list(COMMANDS), [command, *map(str, arguments)])


def address(written: Written) -> list[str]:
    return ["--repo-id=local/arm", f"--root={written.root}"]


def build(written: Written, capsys: pytest.CaptureFixture[str], *flags: str) -> Path:
    assert call("build-sidecar", *address(written), *flags) == 0
    return Path(capsys.readouterr().out.strip())


def test_a_build_prints_the_path_of_a_valid_sidecar(
    written: Written, hf_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = build(written, capsys)
    assert path.parent == hf_home / "lerobot/streaming-sidecars/local--arm"
    assert call("validate-sidecar", path, *address(written), "--deep") == 0
    assert capsys.readouterr().out.startswith("valid: ")


def test_the_summary_of_a_build_is_one_json_object(
    written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("build-sidecar", *address(written), "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["files"] == 3
    assert summary["subset"] is False
    assert summary["errors"] == []
    assert Path(summary["path"]).stat().st_size == summary["bytes"]


def test_the_first_episodes_need_their_own_files_only(
    written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("build-sidecar", *address(written), "--episodes=2", "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["files"], summary["subset"]) == (2, True)


def test_a_build_can_be_put_anywhere(
    written: Written, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out/index.npz"
    assert build(written, capsys, f"--output={output}") == output
    assert call("validate-sidecar", output, *address(written)) == 0


@pytest.mark.parametrize("place", ["a video", "a folder"])
def test_a_build_replaces_nothing_but_a_sidecar(
    place: str, written: Written, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    video = written.root / written.video_paths[TOP][0]
    before = video.read_bytes()
    output = video if place == "a video" else tmp_path
    assert call("build-sidecar", *address(written), f"--output={output}") == 2
    assert f"error: --output={output} is" in capsys.readouterr().err
    assert video.read_bytes() == before


def test_torn_videos_are_all_listed_and_nothing_is_installed(
    written: Written, hf_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torn = written.video_paths[TOP][:2]
    for path in torn:
        (written.root / path).write_bytes(b"")
    assert call("build-sidecar", *address(written)) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("error: ") == 1
    for episode, path in enumerate(torn):
        assert f"{path}: it holds {TOP} of episode {episode}" in captured.err
    assert list(hf_home.rglob("*.npz")) == []


def test_rows_in_another_file_stop_a_build(
    written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    def point_to_the_first(row: dict[str, Any]) -> None:
        if row["episode_index"] == 2:
            row["data/file_index"] = 0

    edit_episodes(written.root, point_to_the_first)
    assert call("build-sidecar", *address(written)) == 1
    captured = capsys.readouterr()
    assert "error: episode 2, " in captured.err
    assert written.data_paths[2] in captured.err
    assert call("build-sidecar", *address(written), "--episodes=2") == 0


def test_a_missing_folder_is_told_with_what_to_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = f"--root={tmp_path / 'nowhere'}"
    assert call("build-sidecar", "--repo-id=local/arm", missing) == 1
    told, hint = capsys.readouterr().err.splitlines()
    assert told.endswith("nowhere: no such folder")
    assert "the one with meta/info.json" in hint


def test_an_unknown_episode_is_wrong_usage(
    written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("build-sidecar", *address(written), "--episodes=0,9") == 2
    assert capsys.readouterr().err.startswith("error: episode 9 is not in the dataset")


def test_a_changed_video_makes_a_sidecar_invalid(
    written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    path = build(written, capsys)
    video = written.root / written.video_paths[TOP][1]
    video.write_bytes(video.read_bytes() + b"\0" * 8)
    assert call("validate-sidecar", path, *address(written), "--json") == 1
    result = json.loads(capsys.readouterr().out)
    assert result["valid"] is False
    assert {problem["file"] for problem in result["problems"]} == {written.video_paths[TOP][1]}
    assert set(result["problems"][0]) == {"file", "place", "expected", "found"}


def test_what_is_no_sidecar_is_a_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    assert call("validate-sidecar", tmp_path / "other.npz") == 1
    assert "1 problem" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["nowhere.npz", "folder"])
def test_a_sidecar_that_is_not_there_is_one_line(
    name: str, written: Written, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    file = tmp_path / name
    for flags in ([], address(written)):
        assert call("validate-sidecar", file, *flags) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        [line] = captured.err.splitlines()
        assert line.startswith(f"error: {file}: ")
    assert call("validate-sidecar", file, "--json") == 1
    result = json.loads(capsys.readouterr().out)
    assert (result["valid"], len(result["problems"])) == (False, 1)


def test_there_is_nothing_to_publish_a_folder_to(
    written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    path = build(written, capsys)
    assert call("publish-sidecar", path, *address(written)) == 1
    captured = capsys.readouterr()
    assert "there is nothing to publish to" in captured.err
    assert captured.out == ""


def test_inspecting_shows_every_episode(
    written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("inspect-episodes", *address(written), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [episode["length"] for episode in found["episodes"]] == list(LENGTHS)
    assert {finding["severity"] for finding in found["findings"]} <= {"info"}
    assert call("inspect-episodes", *address(written)) == 0
    assert "nothing wrong was found" in capsys.readouterr().out


def test_one_of_a_thing_is_singular(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    camera = Camera(write_video, width=96)
    root = write_dataset(tmp_path / "dataset", lengths=(1,), cameras={TOP: camera}).root
    edit_info(root, lambda info: info.update(total_episodes=2, total_frames=3))
    for command in ("build-sidecar", "inspect-episodes"):
        call(command, "--repo-id=local/arm", f"--root={root}")
    captured = capfd.readouterr()
    said = captured.out + captured.err
    assert "indexed 1 of 1 video, " in said
    assert "sidecar of 1 video, " in said
    assert "1 with 1 frame at " in said
    assert re.findall(r"(?<![\d.,])1 (?:of 1 )?[a-z]+s\b", said) == []


def test_inspecting_ends_with_1_where_something_cannot_be_read(
    written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written.video_paths[TOP][1]
    (written.root / path).write_bytes(b"")
    assert call("inspect-episodes", *address(written)) == 1
    assert f"error: {path}: " in capsys.readouterr().out


@pytest.mark.parametrize("command", ["build-sidecar", "inspect-episodes"])
def test_looking_at_a_dataset_imports_no_torch(command: str, written: Written) -> None:
    assert imported_by([command, *address(written)], ["torch", "torchcodec"]) == set()


def test_validating_and_publishing_import_no_torch(
    written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(build(written, capsys))
    for command in ("validate-sidecar", "publish-sidecar"):
        assert imported_by([command, path, *address(written)], ["torch", "torchcodec"]) == set()


@pytest.mark.parametrize(
    ("text", "episodes"),
    [("2", [0, 1]), ("3,", [3]), ("0,4,7-9", [0, 4, 7, 8, 9]), ("2-3, 3, 1", [1, 2, 3])],
)
def test_episodes_are_a_count_or_a_list(text: str, episodes: list[int]) -> None:
    assert parse_episodes(text) == episodes


@pytest.mark.parametrize(
    "text", ["", "0", "a", "1-", "-1", "1;2", ",", "3-1", "9" * 12, "0-" + "9" * 12]
)
def test_other_texts_are_no_episodes(text: str) -> None:
    with pytest.raises(ValueError, match="--episodes: "):
        parse_episodes(text)
