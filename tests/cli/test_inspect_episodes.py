from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lerobot_stream.cli.inspect_view import length_histogram
from lerobot_stream.cli.main import run
from lerobot_stream.cli.options import parse_flags
from lerobot_stream.train.config import TrainConfig
from tests.inspect.damage import TOP, base, cut, edited, point, restated, stale_files, tables
from tests.inspect.damage import TOP_FILE as FILE


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "set"


def inspect(root: Path, *flags: object) -> int:
    arguments = ["--repo-id=lab/arm", f"--root={root}", *map(str, flags)]
    return run("lerobot-stream", ["inspect-episodes"], arguments)


def shown_episodes(text: str) -> list[int]:
    return [int(found) for found in re.findall(r"^ +(\d+) +\d+ +\d{3}/", text, re.MULTILINE)]


def test_a_clean_dataset_ends_with_0(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect(base(root)) == 0
    captured = capsys.readouterr()
    assert "4 with 18 frames at 10 per second, 1.8 seconds" in captured.out
    assert f"{TOP}   " in captured.out
    assert "96×64 avc1, GOP 2" in captured.out
    assert "nothing wrong was found" in captured.out
    assert shown_episodes(captured.out) == [0, 1, 2, 3]
    assert re.search(r"read in [\d.]+ s: \d+ requests", captured.err)


def test_errors_end_with_1_and_warnings_only_where_strict(root: Path) -> None:
    assert inspect(stale_files(root, 2)) == 1
    assert inspect(restated(base(root), "index", max=[99.0])) == 0
    assert inspect(root, "--strict") == 1


def test_chosen_episodes_are_shown(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect(base(root), "--episodes=0-1,3") == 0
    assert shown_episodes(capsys.readouterr().out) == [0, 1, 3]


@pytest.mark.parametrize(
    ("sort", "wanted"),
    [("length", [3, 0, 2, 1]), ("drift", [2, 0, 1, 3]), ("episode", [0, 1, 2, 3])],
)
def test_the_largest_come_first(
    root: Path, sort: str, wanted: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    base(root, timestamps=lambda episode, frame: frame / 10 + (0.05 if episode == 2 else 0))
    inspect(root, f"--sort={sort}")
    assert shown_episodes(capsys.readouterr().out) == wanted


def test_long_tables_are_cut_and_say_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inspect(tables(root, lengths=[2] * 60))
    out = capsys.readouterr().out
    assert len(shown_episodes(out)) == 40
    assert "and 20 more; --episodes chooses" in out


def test_findings_only_shows_no_table(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect(stale_files(root, 2), "--findings-only") == 1
    out = capsys.readouterr().out
    assert out.startswith("error: episode 2, ")
    assert shown_episodes(out) == []


def test_findings_of_a_kind_are_one_headline(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def short(row: dict[str, float]) -> None:
        row[f"videos/{TOP}/to_timestamp"] -= 0.1

    edited(base(root, lengths=[3] * 50), short)
    assert inspect(root, "--findings-only") == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"info: to_timestamp one frame short: 50 of 50 episodes ({TOP})" in lines
    assert sum("to_timestamp" in line for line in lines) == 4
    assert "  and 47 more; episodes 0-49" in lines


def test_metadata_alone_reads_no_payload(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut(base(root), FILE.format(1), 0.5)
    assert inspect(root, "--metadata-only") == 0
    assert "read in" in capsys.readouterr().err
    assert inspect(root) == 1


def test_excluded_episodes_are_what_training_takes(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    assert inspect(stale_files(root, 2, 3), f"--exclude-file={out}") == 1
    assert json.loads(out.read_text()) == [2, 3]
    assert f"--dataset.exclude_episodes=@{out}" in capsys.readouterr().err
    taken = parse_flags(TrainConfig, {"dataset.exclude_episodes": f"@{out}"})
    assert taken == {"dataset.exclude_episodes": (2, 3)}


@pytest.mark.parametrize("flag", ["--exclude-file", "--html"])
def test_nothing_is_written_into_the_dataset(
    root: Path, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    base(root)
    assert inspect(root, f"{flag}={root / 'meta/out'}") == 2
    assert "lies inside the dataset" in capsys.readouterr().err
    assert not (root / "meta/out").exists()


@pytest.mark.parametrize("flag", ["--exclude-file", "--html"])
def test_a_file_that_cannot_be_written_is_told_in_one_line(
    root: Path, tmp_path: Path, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    base(root)
    (tmp_path / "file").touch()
    assert inspect(root, f"{flag}={tmp_path / 'file/out'}") == 1
    told = capsys.readouterr().err
    assert f"error: {tmp_path / 'file/out'}: cannot be written: " in told
    assert "hint: name a file in a folder that can be written" in told
    assert inspect(root, f"{flag}={tmp_path}") == 2
    assert f"{tmp_path} is a folder; name a file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--episodes=0"], "episode 0 alone is 0-0"),
        (["--sort=name"], "--sort: wanted episode, length, bytes, drift, found 'name'"),
        (["--metadata-only", "--deep"], "exclude each other"),
        (["--episodes=9-"], "--episodes: wanted a count or a list"),
        (["--episodes=3,9"], "episode 9 is not in the dataset"),
    ],
)
def test_wrong_usage_is_2(
    root: Path, flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert inspect(base(root), *flags) == 2
    assert message in capsys.readouterr().err


def test_texts_of_a_dataset_are_no_markup(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables(root, tasks=["[bold red]no[/]", "[/link]"])
    assert inspect(root) == 0
    assert "[bold red]no[/]" in capsys.readouterr().out


def test_a_length_of_nothing_is_survived(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect(edited(base(root), point(length=0))) == 1
    assert "nothing wrong" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("lengths", "lines"),
    [
        ([], []),
        ([7, 7], ["every episode has 7 frames"]),
        ([1, 2, 2], ["frames an episode", "1 " + "█" * 20 + " 1", "2 " + "█" * 40 + " 2"]),
    ],
)
def test_lengths_are_drawn(lengths: list[int], lines: list[str]) -> None:
    assert length_histogram(lengths).plain.splitlines() == lines


def test_a_wide_range_has_few_bars() -> None:
    lines = length_histogram([1, 50, 1000]).plain.splitlines()
    assert len(lines) == 11
    assert lines[1].split()[0] == "1–100"
    assert lines[-1].split()[0] == "901–1000"
