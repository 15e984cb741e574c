"""Whatever goes wrong ends in one line on stderr and an exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from lerobot_stream.cli import main
from lerobot_stream.cli.app import COMMANDS
from lerobot_stream.errors import DatasetError
from tests.cli.processes import imported_by

HEAVY = ["torch", "torchcodec", "pyarrow", "numpy", "huggingface_hub", "fsspec"]


def run(*arguments: str, program: str = "lerobot-stream") -> int:
    return main.run(program, list(COMMANDS), arguments)


@pytest.fixture
def app_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Make every command line run one function."""

    def use(command: Callable[[], None]) -> None:
        def make_app(commands: object) -> typer.Typer:
            app = typer.Typer()
            app.command()(command)
            return app

        monkeypatch.setattr(main, "make_app", make_app)

    return use


def test_a_fault_of_the_world_names_place_notes_and_hint(
    app_of: Callable[[Callable[[], None]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        error = DatasetError("wanted 3 rows, found 2", path="data/file-000.parquet", hint="mend it")
        error.add_note("in episode 4")
        raise error

    app_of(fail)
    assert run() == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "error: data/file-000.parquet: wanted 3 rows, found 2\n  in episode 4\n  hint: mend it\n"
    )


def test_a_bug_keeps_its_traceback(app_of: Callable[[Callable[[], None]], None]) -> None:
    def fail() -> None:
        raise ZeroDivisionError("a bug")

    app_of(fail)
    with pytest.raises(ZeroDivisionError):
        run()


def test_a_foreign_librarys_value_error_is_a_bug(
    app_of: Callable[[Callable[[], None]], None],
) -> None:
    def fail() -> None:
        raise ValueError("not about an argument")

    app_of(fail)
    with pytest.raises(ValueError, match="not about an argument"):
        run()


def test_too_little_memory_is_a_fault_of_the_world(
    app_of: Callable[[Callable[[], None]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise MemoryError("unable to allocate 8 GB")

    app_of(fail)
    assert run() == 1
    assert capsys.readouterr().err.startswith("error: not enough memory: unable to allocate 8 GB")


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt, 130), (BrokenPipeError, 1)])
def test_ends_without_a_word_when_stopped(
    error: type[BaseException],
    code: int,
    app_of: Callable[[Callable[[], None]], None],
    capfd: pytest.CaptureFixture[str],
) -> None:
    def stop() -> None:
        raise error

    app_of(stop)
    assert run() == code
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ["train", "--dataset.streeming=true"],
            "error: no such option: --dataset.streeming\n  hint: did you mean --dataset.streaming",
            id="misspelt flag",
        ),
        pytest.param(
            ["train", "--dataset.buffer_size=3"],
            "error: no such option: --dataset.buffer_size\n  hint: use ",
            id="renamed flag",
        ),
        pytest.param(
            ["train", "--batch-size=3"],
            "error: no such option: --batch-size\n  hint: did you mean --batch_size",
            id="flag of another spelling",
        ),
        pytest.param(
            ["train", "--streaming=true"],
            "error: no such option: --streaming\n  hint: did you mean --dataset.streaming",
            id="flag without its group",
        ),
        pytest.param(
            ["inspect-episodes", "--repo-id=a/b", "--dataset.root=x"],
            "error: no such option: --dataset.root\n  hint: did you mean --root",
            id="flag with a group that only training has",
        ),
        pytest.param(
            ["train", "--policy.repo_id=a/b"],
            "error: no such option: --policy.repo_id\n  hint: leave it out",
            id="flag of another program",
        ),
        pytest.param(
            ["train", "--robot.type=x"],
            "error: no such option: --robot.type\n  hint: lerobot-stream train --help",
            id="flag like no other",
        ),
        pytest.param(
            ["train", "--dataset.streaming"],
            "error: --dataset.streaming needs a value, as in --dataset.streaming=VALUE\n",
            id="flag without its value",
        ),
        pytest.param(
            ["train", "--resume=true"],
            "error: --resume=true needs --config_path=",
            id="resume without a configuration",
        ),
        pytest.param(["train"], "error: --dataset.repo_id must be given\n", id="missing setting"),
        pytest.param(
            ["train", "--dataset.repo_id=a/b", "--batch_size=0"],
            "error: --batch_size must be at least 1, got 0\n",
            id="value out of bounds",
        ),
        pytest.param(
            ["train", "--dataset.repo_id=a/b", "--config_path=/nowhere/train_config.json"],
            "error: --config_path: /nowhere/train_config.json cannot be read",
            id="missing configuration",
        ),
        pytest.param(["fly"], "error: no such command 'fly'", id="unknown command"),
        pytest.param(
            ["build-sidecar"],
            "error: missing option '--repo-id'\n  hint: lerobot-stream build-sidecar --help",
            id="missing option",
        ),
        pytest.param(
            ["build-sidecar", "--repo-id=a/b", "--workers=x"],
            "error: invalid value",
            id="no number",
        ),
        pytest.param(
            ["build-sidecar", "--repo-id=a/b", "--workers=0"],
            "error: invalid value for '--workers'",
            id="no workers",
        ),
        pytest.param(
            ["inspect-episodes", "--repo-id=a/b", "--repo-type=model"],
            "error: --repo-type: wanted dataset or bucket, found 'model'\n",
            id="unknown repository type",
        ),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(message)
    assert len(captured.err.splitlines()) <= 2


@pytest.mark.parametrize(
    ("program", "commands"),
    [
        ("lerobot-stream", list(COMMANDS)),
        ("lerobot-train", ["train"]),
        ("lerobot-build-mp4-sidecar", ["build-sidecar"]),
    ],
)
def test_every_program_tells_its_version(
    program: str,
    commands: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    installed = tmp_path / "lerobot_stream-9.8.7.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Name: lerobot-stream\nVersion: 9.8.7\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert main.run(program, commands, ["--version"]) == 0
    assert capsys.readouterr() == (f"{program} 9.8.7\n", "")
    assert main.run(program, commands, ["--help"]) == 0
    assert "--version" in capsys.readouterr().out


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_help_goes_to_stdout(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command, "--help") == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "Usage" in captured.out


def test_the_help_of_train_shows_every_flag_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    main.run("lerobot-train", ["train"], ["--help"])
    shown = capsys.readouterr().out
    assert "--dataset.streaming_native_http_connections=null\n" in shown
    assert "--dataset.streaming_sampling_strategy=remaining\n" in shown


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_imports_nothing_heavy(command: list[str]) -> None:
    assert imported_by([*command, "--help"], HEAVY) == set()


def test_the_version_imports_nothing_heavy() -> None:
    assert imported_by(["--version"], HEAVY) == set()
