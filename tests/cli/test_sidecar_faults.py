"""What stands in the way of a sidecar command is one clear line, with what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import portalocker
import pytest

from lerobot_stream.cli.app import COMMANDS
from lerobot_stream.cli.main import run
from lerobot_stream.source.published import BRANCH
from tests.cli.shell import TINY_TRAINING
from tests.hub import Hub, Status, use_hub
from tests.lerobot import Camera, Written, write_dataset
from tests.media import encode

TOP = "observation.images.top"
REPO = "robots/arm"
ADDRESS = f"--repo-id={REPO}"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    camera = Camera(lambda path, numbers: encode(path, numbers), episodes_per_file=1, width=96)
    root = tmp_path_factory.mktemp("faults") / "dataset"
    return write_dataset(root, lengths=(4, 3, 5), cameras={TOP: camera})


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as hub, use_hub(hub):
        yield hub


@pytest.fixture
def commit(hub: Hub, written: Written) -> str:
    """The dataset on the Hub."""
    return hub.add_dataset(REPO, written.root)


def tear(path: Path, numbers: Sequence[int]) -> None:
    path.write_bytes(b"torn")


def call(command: str, *arguments: str | Path) -> int:
    return run("lerobot-stream", list(COMMANDS), [command, *map(str, arguments)])


def sidecars(hf_home: Path) -> list[Path]:
    return list(hf_home.rglob("*.npz"))


def error_of(capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """The error and its hint; nothing else may have been said about it."""
    lines = capsys.readouterr().err.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("error: "))
    assert len(lines) == at + 2, lines[at:]
    return lines[at], lines[at + 1]


@pytest.mark.parametrize("command", ["build-sidecar", "inspect-episodes"])
def test_a_repository_that_may_not_be_seen(
    hub: Hub, written: Written, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    hub.add_dataset(REPO, written.root, private=True)
    with use_hub(hub, token=None):
        assert call(command, ADDRESS) == 1
    error, hint = error_of(capsys)
    assert "does not exist on 127.0.0.1" in error
    assert "or needs a token (401)" in error
    assert "`hf auth login`, or set HF_TOKEN" in hint


def test_a_gated_repository(hub: Hub, written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    hub.add_dataset(REPO, written.root, gated=True)
    assert call("build-sidecar", ADDRESS) == 1
    error, hint = error_of(capsys)
    assert "is gated" in error
    assert f"accept its terms at {hub.url}/datasets/{REPO}" in hint


def test_a_lock_that_another_process_keeps(
    written: Written, tmp_path: Path, hf_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = (f"--dataset.repo_id={REPO}", f"--dataset.root={written.root}")
    assert call("build-sidecar", ADDRESS, f"--root={written.root}") == 0
    (path,) = sidecars(hf_home)
    path.unlink()
    with portalocker.Lock(f"{path}.lock", "a"):
        code = call(
            "train",
            *place,
            "--dataset.streaming=true",
            "--dataset.streaming_sidecar_lock_timeout_s=0.01",
            f"--output_dir={tmp_path / 'run'}",
            *TINY_TRAINING,
        )
    assert code == 1
    error, hint = error_of(capsys)
    assert error == f"error: {path}.lock: another process kept the lock for 0.01 seconds"
    assert "--dataset.streaming_sidecar_lock_timeout_s" in hint


def test_lerobots_own_command_line_builds(
    hub: Hub, commit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "index.npz"
    flags = [
        "--repo-id",
        REPO,
        "--data-root",
        f"hf://datasets/{REPO}@{commit}",
        "--range-backend",
        "native-http",
        "--max-probe-mb",
        "8",
        "--workers",
        "2",
        "--output",
        str(output),
    ]
    assert run("lerobot-build-mp4-sidecar", ["build-sidecar"], flags) == 0
    assert capsys.readouterr().out.strip() == str(output)
    assert call("validate-sidecar", output, ADDRESS) == 0


def test_the_address_decides_how_the_hub_is_read(
    hub: Hub, commit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("build-sidecar", ADDRESS, "--range-backend=fsspec") == 0
    assert "the Hub is read with native-http all the same" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--revision=other"], "and revision other disagree"),
        (["--range-backend=http"], "wanted fsspec or native-http, found 'http'"),
        (["--repo-type=model"], "wanted dataset or bucket, found 'model'"),
        (["--repo-type=bucket"], "is not a bucket"),
        (["--episodes=x"], "wanted a count or a list"),
    ],
)
def test_flags_that_contradict_each_other_are_wrong_usage(
    hub: Hub, commit: str, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    root = f"--data-root=hf://datasets/{REPO}@{commit}"
    assert call("build-sidecar", ADDRESS, root, *flags) == 2
    assert message in capsys.readouterr().err
    assert hub.requests() == []


def test_a_folder_is_not_read_over_http(
    written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    root = f"--root={written.root}"
    assert call("build-sidecar", ADDRESS, root, "--range-backend=native-http") == 2
    assert "is not there" in capsys.readouterr().err
    assert call("build-sidecar", ADDRESS, root, "--range-backend=fsspec") == 0


def test_the_address_goes_before_the_root(
    written: Written, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = (f"--data-root={written.root}", f"--root={tmp_path / 'nowhere'}")
    assert call("build-sidecar", ADDRESS, *flags) == 0


def test_every_file_that_fails_is_listed_and_nothing_is_installed(
    tmp_path: Path, hf_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "torn"
    torn = write_dataset(root, lengths=(4, 3), cameras={TOP: Camera(tear, episodes_per_file=1)})
    assert call("build-sidecar", ADDRESS, f"--root={root}", "--json") == 1
    captured = capsys.readouterr()
    summary = json.loads(captured.out)
    assert summary["path"] is None
    assert [text.partition(": ")[0] for text in summary["errors"]] == list(torn.video_paths[TOP])
    assert "2 of 2 video files cannot be indexed" in captured.err
    assert sidecars(hf_home) == []


def test_a_folder_is_refused_before_it_is_indexed(
    written: Written, hf_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("build-sidecar", ADDRESS, f"--root={written.root}", "--push") == 1
    assert "there is nothing to publish to" in capsys.readouterr().err
    assert sidecars(hf_home) == []


def test_a_part_is_not_published(hub: Hub, commit: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("build-sidecar", ADDRESS, "--episodes=1", "--push") == 1
    assert "only a whole can be published" in capsys.readouterr().err
    assert BRANCH not in hub.world.repositories[REPO].branches


def test_publishing_can_be_tried_first(
    hub: Hub, commit: str, hf_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("build-sidecar", ADDRESS) == 0
    (path,) = sidecars(hf_home)
    capsys.readouterr()
    assert call("publish-sidecar", path, ADDRESS, "--dry-run") == 0
    captured = capsys.readouterr()
    assert f"would make branch {BRANCH} from commit {commit}" in captured.err
    assert captured.out.strip().endswith(path.name)
    assert list(hub.world.repositories[REPO].branches) == ["main"]


def test_the_sidecar_of_another_commit_is_not_published(
    hub: Hub, commit: str, hf_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("build-sidecar", ADDRESS) == 0
    (path,) = sidecars(hf_home)
    newer = hub.commit(REPO, {"README.md": b"more"})
    capsys.readouterr()
    assert call("publish-sidecar", path, ADDRESS, f"--revision={newer}") == 1
    said = capsys.readouterr().err
    assert f"not a sidecar of hf://datasets/{REPO}@{newer} as it is, 1 problem" in said
    assert f"sidecar.data_root: wanted 'hf://datasets/{REPO}@{newer}'" in said
    assert BRANCH not in hub.world.repositories[REPO].branches


@pytest.mark.parametrize("as_json", [False, True])
def test_what_cannot_be_reached_decides_nothing(
    hub: Hub,
    commit: str,
    hf_home: Path,
    capsys: pytest.CaptureFixture[str],
    as_json: bool,
) -> None:
    assert call("build-sidecar", ADDRESS) == 0
    (path,) = sidecars(hf_home)
    capsys.readouterr()
    with use_hub(hub, offline=True):
        assert call("validate-sidecar", path, ADDRESS, *(["--json"] if as_json else [])) == 1
    captured = capsys.readouterr()
    if as_json:
        answer = json.loads(captured.out)
        assert answer["valid"] is None
        assert "nothing was decided" in answer["problems"][0]["expected"]
    else:
        assert f"nothing was decided about {path}" in captured.err
        assert captured.out == ""


def test_what_is_lost_on_the_way_decides_nothing_there(
    hub: Hub, commit: str, hf_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("build-sidecar", ADDRESS) == 0
    (path,) = sidecars(hf_home)
    capsys.readouterr()
    hub.fail(Status(403), "*.mp4", times=None)
    assert call("validate-sidecar", path, ADDRESS, "--deep", "--json") == 1
    assert json.loads(capsys.readouterr().out)["valid"] is None
    assert call("validate-sidecar", path, ADDRESS, "--deep") == 1
    assert "nothing was decided there" in capsys.readouterr().out


def test_looking_deeper_needs_a_dataset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("validate-sidecar", tmp_path / "x.npz", "--deep") == 2
    assert "need --repo-id" in capsys.readouterr().err
