"""From building to publishing to downloading, by real command lines against a loopback Hub."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lerobot_stream.cli.app import COMMANDS
from lerobot_stream.cli.main import run
from lerobot_stream.source.published import BRANCH, FOLDER
from tests.cli.shell import TINY_TRAINING, Shell, finish_all
from tests.hub import Hub, Stall, use_hub
from tests.lerobot import Camera, Written, write_dataset
from tests.media import encode
from tests.sidecar.mounts import in_small_folder

TOP = "observation.images.top"
REPO = "robots/arm"
ADDRESS = f"--repo-id={REPO}"
BUCKET = (ADDRESS, "--repo-type=bucket")
READS = {"GET", "HEAD"}
DIE_INSTEAD_OF_INSTALLING = """
import os, pathlib, signal
pathlib.Path.replace = lambda self, target: os.kill(os.getpid(), signal.SIGKILL)
from lerobot_stream.cli.main import main
main()
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    camera = Camera(lambda path, numbers: encode(path, numbers), episodes_per_file=1, width=96)
    root = tmp_path_factory.mktemp("life") / "dataset"
    return write_dataset(root, lengths=(4, 3, 5), cameras={TOP: camera})


@pytest.fixture
def hub(written: Written) -> Iterator[Hub]:
    with Hub() as hub:
        hub.add_dataset(REPO, written.root)
        hub.add_bucket(REPO, written.root)
        yield hub


@pytest.fixture
def shell(hub: Hub, tmp_path: Path) -> Shell:
    return Shell(hub, tmp_path / "home")


def call(command: str, *arguments: str | Path) -> int:
    """Run a command line in this process."""
    return run("lerobot-stream", list(COMMANDS), [command, *map(str, arguments)])


def movie_boxes(hub: Hub) -> int:
    """Range requests for videos since the last time."""
    count = sum(entry.range is not None for entry in hub.requests("*.mp4"))
    hub.log.clear()
    return count


def files(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.rglob("*") if p.is_file() and p.suffix != ".lock")


def wait_for(hub: Hub, pattern: str) -> None:
    """Wait until the Hub has been asked for something."""
    until = time.monotonic() + 60
    while not any(entry.range for entry in hub.requests(pattern)):
        assert time.monotonic() < until, "the request never came"
        hub.closing.wait(0.01)


def test_it_is_built_once_published_once_and_downloaded_by_everyone_else(
    hub: Hub, shell: Shell, tmp_path: Path
) -> None:
    built = shell.run("build-sidecar", ADDRESS)
    assert (built.code, movie_boxes(hub)) == (0, 3)
    again = shell.run("build-sidecar", ADDRESS)
    assert (again.code, again.out, movie_boxes(hub)) == (0, built.out, 0)

    repository = hub.world.repositories[REPO]
    main, tags = repository.branches["main"], dict(repository.tags)
    published = shell.run("publish-sidecar", built.path, ADDRESS, f"--revision={main}")
    assert published.code == 0, published.err
    assert (repository.branches["main"], repository.tags) == (main, tags)
    blob = repository.commits[repository.branches[BRANCH]].files[f"{FOLDER}/{built.path.name}"]
    assert blob.read(0, blob.size) == built.path.read_bytes()
    assert movie_boxes(hub) == 0

    other = Shell(hub, tmp_path / "other")
    for revision in (f"--revision={main}", "--revision=v3.0"):  # a tag and its commit share it
        found = other.run("build-sidecar", ADDRESS, revision)
        assert (found.code, movie_boxes(hub)) == (0, 0), found.err
        assert found.path.read_bytes() == built.path.read_bytes()
    assert len(files(tmp_path / "other/lerobot/streaming-sidecars")) == 1


def test_training_inspecting_and_validating_send_only_reads(
    hub: Hub, shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sidecar = shell.run("build-sidecar", *BUCKET, "--push")
    assert sidecar.code == 0, sidecar.err
    assert not {entry.method for entry in hub.requests()} <= READS
    hub.log.clear()
    trained = Shell(hub, tmp_path / "other").run(
        "train",
        f"--dataset.repo_id={REPO}",
        "--dataset.repo_type=bucket",
        "--dataset.streaming=true",
        f"--output_dir={tmp_path / 'run'}",
        *TINY_TRAINING,
    )
    assert trained.code == 0, trained.err
    assert "downloading the published sidecar" in trained.err
    with use_hub(hub):
        assert call("validate-sidecar", sidecar.path, *BUCKET, "--deep") == 0
        assert capsys.readouterr().out.startswith("valid: ")
        assert call("inspect-episodes", ADDRESS) == 0
    assert {entry.method for entry in hub.requests()} <= READS
    assert not any(entry.authorized for entry in hub.requests(origin="blobs"))


def test_a_replaced_video_of_equal_size_in_a_bucket_is_noticed(
    hub: Hub, shell: Shell, written: Written
) -> None:
    first = shell.run("build-sidecar", *BUCKET, "--push")
    assert (first.code, movie_boxes(hub)) == (0, 3)
    path = written.video_paths[TOP][1]
    content = (written.root / path).read_bytes()
    hub.put(REPO, {path: content[:-1] + bytes([content[-1] ^ 1])})
    second = shell.run("build-sidecar", *BUCKET)
    assert (second.code, movie_boxes(hub)) == (0, 3)
    assert second.path != first.path
    old = shell.run("validate-sidecar", first.path, *BUCKET, "--json")
    assert old.code == 1
    problems = json.loads(old.out)["problems"]
    assert [(p["file"], p["place"]) for p in problems] == [(path, "fingerprint")]


def test_processes_and_hosts_that_start_at_once_build_once(hub: Hub, tmp_path: Path) -> None:
    shared = {"HF_LEROBOT_HOME": str(tmp_path / "shared")}
    hosts = [Shell(hub, tmp_path / f"host{i}", settings=shared) for i in (0, 1)]
    hub.latency_s = 0.02  # so that they meet
    done = finish_all([host.start("build-sidecar", ADDRESS) for host in (*hosts, *hosts)])
    assert [d.code for d in done] == [0] * 4, "\n".join(d.err for d in done)
    assert len({d.out for d in done}) == 1
    assert movie_boxes(hub) == 3
    assert sum("indexing 3 video files" in d.err for d in done) == 1


@pytest.mark.parametrize("published", [False, True], ids=["build", "download"])
def test_a_process_killed_on_the_way_leaves_nothing_that_is_picked_up(
    hub: Hub, shell: Shell, tmp_path: Path, published: bool
) -> None:
    if published:
        ready = Shell(hub, tmp_path / "ready").run("build-sidecar", *BUCKET, "--push")
        assert ready.code == 0, ready.err
    pattern = "*.npz" if published else "*file-001.mp4"
    hub.log.clear()
    hub.fail(Stall(after=100), f"/blobs/{pattern}")
    child = shell.start("build-sidecar", *BUCKET)
    wait_for(hub, f"/blobs/{pattern}")
    child.kill()
    assert child.wait(60) == -signal.SIGKILL
    child.communicate()
    cache = shell.home / "lerobot"
    assert not [name for name in files(cache) if name.endswith(".npz")]
    hub.log.clear()
    again = shell.run("build-sidecar", *BUCKET)
    assert (again.code, movie_boxes(hub)) == (0, 0 if published else 3), again.err
    assert files(cache) == [again.path.name]


def test_a_process_killed_while_installing_leaves_nothing_that_is_picked_up(
    shell: Shell,
) -> None:
    child = shell.start("build-sidecar", ADDRESS, code=DIE_INSTEAD_OF_INSTALLING)
    assert child.wait(60) == -signal.SIGKILL
    child.communicate()
    cache = shell.home / "lerobot"
    (left,) = files(cache)
    assert left.endswith(".tmp")
    again = shell.run("build-sidecar", ADDRESS)
    assert again.code == 0
    assert files(cache) == [again.path.name]


@pytest.mark.parametrize(
    ("options", "reason"),
    [("size=4k", "No space left on device"), ("ro", "Read-only file system")],
    ids=["full", "read-only"],
)
def test_a_cache_that_cannot_be_written_is_one_error_with_what_to_do(
    shell: Shell, written: Written, options: str, reason: str
) -> None:
    code = "from lerobot_stream.cli.main import main; main()"
    arguments = ["build-sidecar", "--repo-id=local/arm", f"--root={written.root}"]
    said = in_small_folder(
        shell.home / "lerobot",
        options,
        [sys.executable, "-c", code, *arguments],
        environment=shell.environment(),
    )
    error, hint = said.splitlines()[-2:]
    assert said.count("error: ") == 1
    assert f"cannot be written: {reason}" in error
    assert "set HF_LEROBOT_HOME to a folder that can be written" in hint


def test_offline_a_warm_folder_trains(
    written: Written, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = (f"--repo-id={REPO}", f"--root={written.root}")
    assert call("build-sidecar", *place) == 0
    caplog.clear()
    code = call(
        "train",
        f"--dataset.repo_id={REPO}",
        f"--dataset.root={written.root}",
        "--dataset.streaming=true",
        f"--output_dir={tmp_path / 'run'}",
        *TINY_TRAINING,
    )
    assert code == 0
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    assert "indexing" not in caplog.text


def test_offline_a_repository_says_what_is_missing(hub: Hub, shell: Shell) -> None:
    assert shell.run("build-sidecar", ADDRESS).code == 0
    hub.log.clear()
    offline = Shell(hub, shell.home, settings={"HF_HUB_OFFLINE": "1"})
    done = offline.run("build-sidecar", ADDRESS)
    assert done.code == 1
    error, hint = done.error
    assert "the list of its revisions must come from" in error
    assert "HF_HUB_OFFLINE is set" in error
    assert "name the folder where the dataset lies" in hint
    assert hub.requests() == []
