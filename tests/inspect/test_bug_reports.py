"""What users reported of datasets, each made small, and its right outcome."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from lerobot_stream.cli.main import run
from lerobot_stream.errors import StreamError
from lerobot_stream.inspect.finding import Finding, lost_episodes
from lerobot_stream.inspect.summary import Summary, inspect_dataset
from lerobot_stream.source.hub import open_hub
from lerobot_stream.source.local import LocalSource
from lerobot_stream.stream.dataset import StreamingLeRobotDataset
from tests.hub import Hub, use_hub
from tests.inspect.damage import DATA, TABLE, base, tables
from tests.inspect.reports import OTHERS, REPORTS, Report
from tests.lerobot import edit_info
from tests.media import needs_ffmpeg

NO_DATASET = {"table-file", "table-absent", "table-column", "metadata-file"}
NO_DATASET |= {"episode-missing", "episode-negative", "episode-twice", "episode-length"}
"""Errors that no choice of episodes helps against."""


def marked(reports: Iterable[Report]) -> list[Any]:
    """Parameters that are called by the numbers of their reports."""
    return [
        pytest.param(
            report,
            id=f"{report.rows}: {report.name}",
            marks=[needs_ffmpeg] if report.name == "depth" else [],
        )
        for report in reports
    ]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder for a dataset, beside the caches."""
    return tmp_path / "set"


def look(root: Path) -> Summary:
    source = LocalSource(root, repo_id="lab/arm")
    summary = inspect_dataset(source)
    assert source.count.lookups == 0
    return summary


def kinds(findings: list[Finding]) -> set[str]:
    return {finding.kind.name for finding in findings}


@pytest.mark.parametrize("report", marked([*REPORTS, *OTHERS]))
def test_a_report_has_its_right_outcome(report: Report, root: Path) -> None:
    report.make(root)
    summary = look(root)
    by = {
        severity: [finding for finding in summary.findings if finding.severity == severity]
        for severity in ("error", "warning", "info")
    }
    touched: dict[str, set[int]] = {}
    for finding in by["error"]:
        touched.setdefault(finding.kind.name, set()).update(finding.episodes)
    assert touched == {kind: set(episodes) for kind, episodes in report.errors.items()}
    assert kinds(by["warning"]) == report.warnings
    assert report.infos <= kinds(by["info"])
    told = [*by["error"], *by["warning"]] or by["info"]
    told += by["info"] if report.infos else []
    assert any(re.search(report.says, str(finding)) for finding in told) or not report.says
    assert all(finding.hint for finding in by["error"])


@pytest.mark.parametrize(
    "report", marked(r for r in [*REPORTS, *OTHERS] if not NO_DATASET & set(r.errors))
)
def test_what_is_left_after_excluding_can_be_read(report: Report, root: Path) -> None:
    report.make(root)
    summary = look(root)
    lost = lost_episodes(summary.findings, summary.table.episode_index.tolist())
    if len(lost) == len(summary.table):
        return
    stream = StreamingLeRobotDataset("lab/arm", root=root, exclude_episodes=lost, return_uint8=True)
    assert len(list(stream)) == stream.num_frames > 0


def test_48_a_wrong_episode_number_changes_nothing(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base(root)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    flags = ["--repo-id=lab/arm", f"--root={root}", "--episodes=3,99"]
    assert run("lerobot-stream", ["inspect-episodes"], flags) == 2
    assert "episode 99 is not in the dataset" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("row", "change", "message"),
    [
        ("19c", {"fps": 0}, r"fps: wanted frames a second above 0"),
        (
            "36b",
            {"data_path": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"},
            r"data_path: .* names one file an episode, the layout of v2",
        ),
        ("60b", {"codebase_version": "v2.1"}, r"wanted a LeRobotDataset v3, found v2.1"),
    ],
)
def test_an_info_json_that_cannot_be_used_is_one_error(
    row: str,
    change: dict[str, object],
    message: str,
    root: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tables(root)
    edit_info(root, lambda info: info.update(change))
    with pytest.raises(StreamError, match=message):
        look(root)
    flags = ["--repo-id=lab/arm", f"--root={root}", "--json"]
    assert run("lerobot-stream", ["inspect-episodes"], flags) == 1
    captured = capsys.readouterr()
    assert re.search(message, json.loads(captured.out)["error"]["message"]) or row != "60b"
    assert captured.err.startswith("error: meta/info.json: ")


def test_60c_a_label_of_v2_over_the_layout_of_v3_says_so(root: Path) -> None:
    tables(root)
    edit_info(root, lambda info: info.update(codebase_version="v2.1"))
    with pytest.raises(StreamError) as caught:
        look(root)
    assert "if only the label is wrong, correct codebase_version" in str(caught.value.hint)


@pytest.mark.parametrize("revision", [None, "main", "first"])
def test_61_to_65_any_revision_is_looked_at_by_its_commit(
    revision: str | None, tmp_path: Path
) -> None:
    """Rows 61 to 65: a lagging tag, no tag, a branch or a commit as revision, two revisions."""
    names = (DATA.format(0), TABLE.format(0), "meta/info.json", "meta/stats.json")
    sets = []
    for lengths in [(3, 2), (3, 2, 4)]:
        root = tmp_path / str(len(lengths))
        tables(root, lengths=lengths, episodes_per_data_file=9)
        sets.append({name: (root / name).read_bytes() for name in (*names, "meta/tasks.parquet")})
    with Hub() as hub, use_hub(hub):
        first = hub.add_dataset("lab/arm", sets[0], tags=[])
        newest = hub.commit("lab/arm", sets[1])
        source = open_hub("lab/arm", revision=first if revision == "first" else revision)
        summary = inspect_dataset(source)
    wanted, count = (first, 2) if revision == "first" else (newest, 3)
    assert (summary.identity.revision, len(summary.table)) == (wanted, count)
    assert not summary.has("error", "warning")
