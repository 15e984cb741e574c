"""Checks that a dataset of files cannot easily be made to fail."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lerobot_stream.inspect.checks.features import check_features
from lerobot_stream.inspect.checks.video_spans import check_overlaps, check_span_lengths
from lerobot_stream.inspect.checks.videos import check_movies, check_video_times
from lerobot_stream.inspect.facts import Facts, read_facts
from lerobot_stream.inspect.finding import Finding
from lerobot_stream.inspect.summary import Summary, inspect_dataset
from lerobot_stream.inspect.video_files import TOLERANCE_S
from lerobot_stream.source.local import LocalSource
from tests.inspect.damage import TOP, WRIST, base, edited
from tests.lerobot import edit_info


def facts_of(root: Path) -> Facts:
    return read_facts(LocalSource(root, repo_id="a/b"))


def look(root: Path) -> Summary:
    return inspect_dataset(LocalSource(root, repo_id="a/b"))


def times_found(summary: Summary, **changes: Any) -> list[Finding]:
    """What is found where measured times were others."""
    assert summary.videos is not None
    assert summary.times is not None
    times = dataclasses.replace(summary.times, **changes)
    return list(check_video_times(summary.info, summary.table, summary.videos, times))


def shift_start(root: Path, episode: int, seconds: float) -> Facts:
    def shift(row: dict[str, Any]) -> None:
        row[f"videos/{TOP}/from_timestamp"] += seconds

    return facts_of(edited(base(root), shift, episodes=(episode,)))


def test_an_episode_that_starts_before_the_last_one_ends_overlaps(tmp_path: Path) -> None:
    facts = shift_start(tmp_path, 1, -0.2)
    [finding] = check_overlaps(facts.table, 10)
    assert (finding.episode, finding.video_key) == (0, TOP)
    assert finding.message == "it ends 2 frames behind the start of episode 1"


def test_less_than_half_a_frame_is_no_overlap(tmp_path: Path) -> None:
    assert list(check_overlaps(shift_start(tmp_path, 1, -0.04).table, 10)) == []


def test_episodes_that_share_their_frames_do_not_overlap(tmp_path: Path) -> None:
    def share(row: dict[str, Any]) -> None:
        for side, seconds in (("from", 0.0), ("to", 0.3)):
            row[f"videos/{TOP}/{side}_timestamp"] = seconds

    facts = facts_of(edited(base(tmp_path, lengths=(3, 3, 3, 3)), share))
    assert list(check_overlaps(facts.table, 10)) == []


def test_metadata_alone_tell_of_overlaps(tmp_path: Path) -> None:
    shift_start(tmp_path, 1, -0.2)
    source = LocalSource(tmp_path, repo_id="a/b")
    kinds = {finding.kind.name for finding in inspect_dataset(source, cost="metadata").findings}
    assert {"span-overlap", "span-length"} <= kinds


def test_a_missing_end_is_no_length(tmp_path: Path) -> None:
    facts = facts_of(
        edited(base(tmp_path), lambda row: row.update({f"videos/{TOP}/to_timestamp": None}))
    )
    assert list(check_span_lengths(facts.table, 10)) == []


@pytest.mark.parametrize(("drift", "found"), [(TOLERANCE_S, 0), (1.001 * TOLERANCE_S, 1)])
def test_a_drift_of_the_tolerance_is_allowed(tmp_path: Path, drift: float, found: int) -> None:
    summary = look(base(tmp_path))
    drifts = np.zeros((4, 2))
    drifts[2, 1] = drift
    assert len(times_found(summary, drift_s=drifts)) == found


def test_frames_that_share_a_time_are_told(tmp_path: Path) -> None:
    summary = look(base(tmp_path))
    [finding] = times_found(summary, still=np.array([0, 3, 0, 0]))
    assert finding.kind.name == "video-times"
    assert finding.message == "3 of 10 frames come no later than the one before"


def test_long_gops_are_told_with_their_cost(tmp_path: Path) -> None:
    summary = look(base(tmp_path))
    [finding] = times_found(summary, gop=np.array([250, 2, 2, 2]))
    assert "one frame alone costs 125 decoded on average" in finding.message


@pytest.mark.parametrize("declared", ["h264", "libx264", "avc", "H264", "unheard-of", None])
def test_a_codec_has_many_names(tmp_path: Path, declared: str | None) -> None:
    base(tmp_path)
    edit_info(tmp_path, lambda info: info["features"][TOP].update(info={"video.codec": declared}))
    summary = look(tmp_path)
    assert summary.videos is not None
    assert list(check_movies(summary.info, summary.table, summary.videos)) == []


def test_a_declared_depth_map_is_told(tmp_path: Path) -> None:
    base(tmp_path)
    depth = {"video.is_depth_map": True}
    edit_info(tmp_path, lambda info: info["features"][WRIST].update(info=depth))
    found = [finding for finding in look(tmp_path).findings if finding.kind.name == "depth"]
    assert [(finding.video_key, finding.message) for finding in found] == [
        (WRIST, "info.json calls it a depth map")
    ]


@pytest.mark.parametrize("dtype", ["float128", "complex64", "flaot32"])
def test_a_type_that_no_tensor_has_is_told(tmp_path: Path, dtype: str) -> None:
    edit_info(base(tmp_path), lambda info: info["features"]["timestamp"].update(dtype=dtype))
    [finding] = [one for one in look(tmp_path).findings if one.severity != "info"]
    assert (finding.kind.name, finding.severity) == ("feature-type", "error")
    message = f"meta/info.json: feature timestamp has dtype {dtype}, which is no type of a tensor"
    assert str(finding) == message


@pytest.mark.parametrize("dtype", ["string", "language", "timestamp[us]", "float16", "bool"])
def test_text_and_numbers_are_types_to_have(tmp_path: Path, dtype: str) -> None:
    edit_info(base(tmp_path), lambda info: info["features"]["timestamp"].update(dtype=dtype))
    assert list(check_features(facts_of(tmp_path).info)) == []


def test_a_file_that_no_episode_points_to_is_told(tmp_path: Path) -> None:
    base(tmp_path)
    (tmp_path / "videos/extra.mp4").write_bytes(b"x")
    found = [
        finding.path for finding in look(tmp_path).findings if finding.kind.name == "file-unused"
    ]
    assert found == ["videos/extra.mp4"]


def test_a_damaged_file_that_no_episode_points_to_costs_nothing(tmp_path: Path) -> None:
    base(tmp_path)
    (tmp_path / "data/chunk-000/file-009.parquet").write_bytes(b"left over")
    summary = look(tmp_path)
    assert not summary.has("error", "warning")
    told = [str(finding) for finding in summary.findings if finding.kind.name == "file-unused"]
    assert any("file-009.parquet: has no Parquet footer" in text for text in told)
