"""Each recipe beside the repository has its right outcome."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lerobot_stream.inspect.finding import Finding
from lerobot_stream.inspect.summary import Summary, inspect_dataset
from lerobot_stream.source.local import LocalSource
from tests.media import needs_ffmpeg

CASES = Path(__file__).parents[2] / "../shared/cases"
TOP, WRIST = "observation.images.top", "observation.images.wrist"
TOP_FILE = f"videos/{TOP}/chunk-000/file-001.mp4"

pytestmark = [
    needs_ffmpeg,
    pytest.mark.skipif(not CASES.exists(), reason="no recipes beside the repository"),
]


@dataclass(frozen=True, slots=True)
class Case:
    """What is found in the output of a recipe, besides its statistics, which are made up."""

    folder: str
    recipe: str
    errors: Mapping[str, Sequence[int]] = field(default_factory=dict)
    warnings: frozenset[str] = frozenset()
    infos: frozenset[str] = frozenset()
    says: tuple[str, ...] = ()


CHECKED = [
    Case("r01", "r01_rollover"),
    Case(
        "r02",
        "r02_stale_file_index",
        {"rows-elsewhere": [2]},
        says=(
            "episode 2, data/chunk-000/file-000.parquet: ",
            "they are in data/chunk-000/file-001",
        ),
    ),
    Case(
        "r03a",
        "r03_torn_files",
        {"file-damaged": [2, 3]},
        says=("file-001.parquet: has no Parquet footer", "the rows of episodes 2-3"),
    ),
    Case(
        "r03b",
        "r03_torn_files",
        {"table-file": [], "episodes-short": []},
        frozenset({"counts"}),
        frozenset({"file-unused", "splits", "episodes-unlisted"}),
        says=("meta/episodes/chunk-000/file-000.parquet: has no Parquet footer", "episodes 0-1"),
    ),
    Case(
        "r03c",
        "r03_torn_files",
        {"file-damaged": [2, 3]},
        says=(f"{TOP_FILE}: mdat at byte", "of episodes 2-3"),
    ),
    Case(
        "r03d",
        "r03_torn_files",
        {"file-damaged": [2, 3]},
        says=(f"{TOP_FILE}: moov at byte", "of episodes 2-3"),
    ),
    Case(
        "r03e",
        "r03_torn_files",
        {"file-damaged": [0, 1, 2]},
        says=("Git-LFS pointer", "of episodes 0-2"),
    ),
    Case(
        "r04",
        "r04_wallclock_timestamps",
        warnings=frozenset({"drift"}),
        says=("episode 0, observation.images.top", "frame 16 is shown 0.109 s away"),
    ),
    Case(
        "r05",
        "r05_short_video",
        {"frames-missing": [3]},
        says=(f"episode 3, {TOP}, {TOP_FILE}: 3 frames missing (17 of 20)",),
    ),
    Case("r06_one", "r06_row_groups", infos=frozenset({"groups-shared"})),
    Case("r06_straddle", "r06_row_groups", infos=frozenset({"groups-shared"})),
    Case("r06_nostats", "r06_row_groups", infos=frozenset({"groups-shared", "groups-silent"})),
    Case("r07", "r07_to_ts_one_short", infos=frozenset({"to-timestamp-short"})),
    Case("r08", "r08_meta_chunks", infos=frozenset({"column-order"})),
    Case("r09", "r09_resume_twice"),
]
Make = Callable[[str], Path]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Run a recipe once and return the folder of what it made."""
    folder = tmp_path_factory.mktemp("cases")
    done: set[str] = set()

    def make(recipe: str) -> Path:
        if recipe not in done:
            environment = {**os.environ, "PYTHONPATH": str(CASES.resolve())}
            script = CASES.resolve() / f"open/{recipe}.py"
            subprocess.run([sys.executable, script], cwd=folder, env=environment, check=True)
            done.add(recipe)
        return folder / "out"

    return make


def look(root: Path) -> Summary:
    source = LocalSource(root, repo_id="a/b")
    summary = inspect_dataset(source)
    assert source.count.lookups == 0
    return summary


def told(summary: Summary, severity: str) -> list[Finding]:
    return [
        finding
        for finding in summary.findings
        if finding.severity == severity and finding.path != "meta/stats.json"
    ]


@pytest.mark.parametrize("case", CHECKED, ids=lambda case: case.folder)
def test_a_recipe_has_its_right_outcome(make: Make, case: Case) -> None:
    summary = look(make(case.recipe) / case.folder)
    errors: dict[str, set[int]] = {}
    for finding in told(summary, "error"):
        errors.setdefault(finding.kind.name, set()).update(finding.episodes)
    assert errors == {kind: set(episodes) for kind, episodes in case.errors.items()}
    assert {finding.kind.name for finding in told(summary, "warning")} == case.warnings
    assert {finding.kind.name for finding in told(summary, "info")} == case.infos
    text = "\n".join(map(str, summary.findings))
    assert [part for part in case.says if part not in text] == []


def test_the_made_up_statistics_of_the_recipes_are_found_out(make: Make) -> None:
    summary = look(make("r01_rollover") / "r01")
    found = {f.kind.name for f in summary.findings if f.severity == "warning"}
    assert found == {"stats-count", "stats-shape", "stats-pictures", "stats-values"}
