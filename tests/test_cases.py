"""Damaged and unusual datasets, made by the recipes beside the repository, and their outcomes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from lerobot_stream.cli.main import run
from lerobot_stream.errors import StreamError
from lerobot_stream.stream.dataset import StreamingLeRobotDataset
from lerobot_stream.stream.map_style import LeRobotDataset
from tests.media import needs_ffmpeg

CASES = Path(__file__).parents[1].parent / "shared/cases"
TOP, WRIST = "observation.images.top", "observation.images.wrist"
LENGTHS = (17, 14, 19, 20)

pytestmark = [
    needs_ffmpeg,
    pytest.mark.skipif(not CASES.exists(), reason="no recipes beside the repository"),
]

Make = Callable[[str], Path]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Runs a recipe once and returns the folder of what it made."""
    folder = tmp_path_factory.mktemp("cases")
    done: set[str] = set()

    def make(recipe: str) -> Path:
        if recipe not in done:
            subprocess.run(
                [sys.executable, CASES / f"open/{recipe}.py"],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(CASES)},
                check=True,
            )
            done.add(recipe)
        return folder / "out"

    return make


def grey(picture: torch.Tensor) -> float:
    return float(picture.to(torch.float32).mean())


def check_items(root: Path, episodes: range = range(4), **settings: Any) -> None:
    """Every frame of the episodes, streamed and by number, shows its own grey level."""
    excluded = [episode for episode in range(4) if episode not in episodes]
    options: dict[str, Any] = {"root": root, "return_uint8": True, "exclude_episodes": excluded}
    wanted = [i for e in episodes for i in range(sum(LENGTHS[:e]), sum(LENGTHS[: e + 1]))]
    by_number = LeRobotDataset("t/t", **options, **settings)
    items = [by_number[i] for i in range(len(by_number))]
    assert [int(item["index"]) for item in items] == wanted
    streamed = list(StreamingLeRobotDataset("t/t", **options, **settings))
    assert sorted(int(item["index"]) for item in streamed) == wanted
    for item in [*items, *streamed]:
        level = 16 + 3 * int(item["index"])
        assert grey(item[TOP]) == pytest.approx(level, abs=4), int(item["index"])
        assert grey(item[WRIST]) == pytest.approx(level, abs=4), int(item["index"])
        assert item["action"].tolist() == [float(item["index"])] * 2


@pytest.mark.parametrize(
    ("recipe", "folder"),
    [
        ("r01_rollover", "r01"),
        ("r04_wallclock_timestamps", "r04"),
        ("r06_row_groups", "r06_one"),
        ("r06_row_groups", "r06_straddle"),
        ("r06_row_groups", "r06_nostats"),
        ("r07_to_ts_one_short", "r07"),
        ("r08_meta_chunks", "r08"),
        ("r09_resume_twice", "r09"),
    ],
)
def test_every_frame_of_what_is_only_unusual_is_right(make: Make, recipe: str, folder: str) -> None:
    check_items(make(recipe) / folder)


@pytest.mark.parametrize(
    ("recipe", "folder", "message", "good"),
    [
        (
            "r02_stale_file_index",
            "r02",
            r"episode 2: .*file-000.parquet: .* they are in .*file-001",
            [0, 1, 3],
        ),
        ("r03_torn_files", "r03a", r"episodes 2, 3: .*file-001.parquet: .*footer", [0, 1]),
        ("r03_torn_files", "r03c", r"file-001.mp4", [0, 1]),
        ("r03_torn_files", "r03d", r"file-001.mp4", [0, 1]),
        ("r03_torn_files", "r03e", r"file-000.mp4.*[gG]it-?LFS", [3]),
        ("r05_short_video", "r05", rf"episode 3: {TOP}, .*file-001.mp4: .*17 of 20", [0, 1, 2]),
    ],
)
def test_damage_is_named_and_costs_its_own_episodes_only(
    make: Make, recipe: str, folder: str, message: str, good: list[int]
) -> None:
    root = make(recipe) / folder
    with pytest.raises(StreamError, match=message):
        StreamingLeRobotDataset("t/t", root=root)
    excluded = [episode for episode in range(4) if episode not in good]
    stream = StreamingLeRobotDataset("t/t", root=root, exclude_episodes=excluded, return_uint8=True)
    for item in stream:
        assert grey(item[TOP]) == pytest.approx(16 + 3 * int(item["index"]), abs=4)
    assert stream.num_frames == sum(LENGTHS[episode] for episode in good)


def test_a_torn_episode_table_is_named(make: Make) -> None:
    root = make("r03_torn_files") / "r03b"
    with pytest.raises(StreamError, match=r"meta/episodes/chunk-000/file-000.parquet: .*footer"):
        StreamingLeRobotDataset("t/t", root=root)


def test_rows_are_read_where_they_are_if_asked_for(make: Make) -> None:
    check_items(make("r02_stale_file_index") / "r02", find_rows=True)


def test_resuming_twice_gives_the_uninterrupted_sequence(make: Make) -> None:
    out = make("r09_resume_twice")
    plan = json.loads((out / "r09/plan.json").read_text())
    batch = plan["batch"]
    for rank in range(plan["world"]):

        def opened(rank: int = rank) -> StreamingLeRobotDataset:
            return StreamingLeRobotDataset(
                "t/t", root=out / "r09", rank=rank, world_size=plan["world"], repeat=True
            )

        def taken(dataset: StreamingLeRobotDataset, count: int) -> list[int]:
            batches = islice(dataset.batches(batch), count)
            return [int(index) for one in batches for index in torch.as_tensor(one["index"])]

        unbroken = taken(opened(), 20)
        first, second, third = opened(), opened(), opened()
        seen = taken(first, plan["stops"][0])
        second.load_state_dict(first.state_dict())
        seen += taken(second, plan["stops"][1] - plan["stops"][0])
        third.load_state_dict(second.state_dict())
        seen += taken(third, 20 - plan["stops"][1])
        assert seen == unbroken


FAULTS = [
    ("r02_stale_file_index", "r02", [2]),
    ("r03_torn_files", "r03a", [2, 3]),
    ("r03_torn_files", "r03c", [2, 3]),
    ("r03_torn_files", "r03d", [2, 3]),
    ("r03_torn_files", "r03e", [0, 1, 2]),
    ("r05_short_video", "r05", [3]),
]


@pytest.mark.parametrize(("recipe", "folder", "lost"), FAULTS)
def test_train_and_build_sidecar_stop_with_one_clear_error(
    make: Make, capsys: pytest.CaptureFixture[str], recipe: str, folder: str, lost: list[int]
) -> None:
    root = make(recipe) / folder
    for program, command, arguments in [
        ("lerobot-train", "train", train_arguments(root, root.parent / "never")),
        ("lerobot-build-mp4-sidecar", "build-sidecar", ["--repo-id=t/t", f"--root={root}"]),
    ]:
        assert run(program, [command], arguments) == 1
        error = capsys.readouterr().err
        assert "Traceback" not in error
        assert "error: " in error
        assert all(part in error for part in ("episode", "file-00", str(lost[0])))
    assert not (root.parent / "never").exists()


@pytest.mark.parametrize(("recipe", "folder", "lost"), FAULTS[:1] + FAULTS[4:])
def test_training_goes_on_without_the_damaged_episodes(
    make: Make, tmp_path: Path, recipe: str, folder: str, lost: list[int]
) -> None:
    root = make(recipe) / folder
    arguments = train_arguments(root, tmp_path / "out")
    arguments.append(f"--dataset.exclude_episodes={json.dumps(lost)}")
    assert run("lerobot-train", ["train"], arguments) == 0
    assert (tmp_path / "out/checkpoints/last/pretrained_model/model.safetensors").exists()


def train_arguments(root: Path, output: Path) -> list[str]:
    return [
        "--dataset.repo_id=t/t",
        f"--dataset.root={root}",
        "--dataset.streaming=true",
        "--policy.type=act",
        "--policy.dim_model=16",
        "--policy.n_heads=2",
        "--policy.dim_feedforward=16",
        "--policy.n_encoder_layers=1",
        "--policy.n_vae_encoder_layers=1",
        "--policy.chunk_size=4",
        "--policy.n_action_steps=4",
        "--batch_size=2",
        "--steps=2",
        f"--output_dir={output}",
    ]
