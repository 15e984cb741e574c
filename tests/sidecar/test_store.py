"""One valid file opens without a lock, one process builds for all, and no file serves wrongly."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import portalocker
import pytest

from lerobot_stream.errors import LockTimeoutError, SidecarError
from lerobot_stream.sidecar.build import BuildFailedError, build_sidecar
from lerobot_stream.sidecar.schema import Sidecar
from lerobot_stream.sidecar.store import (
    open_sidecar,
    sidecar_cache_dir,
    sidecar_places,
)
from lerobot_stream.source.base import Source
from lerobot_stream.source.local import LocalSource
from tests.media import encode
from tests.sidecar.memory import PINNED, UNPINNED, MemorySource, make_mp4
from tests.sidecar.processes import open_at_once, run_at_once

A, B, C = "videos/a.mp4", "videos/b.mp4", "videos/c.mp4"
ALL = [A, B, C]
HOLD_LOCK = """
import sys, portalocker
stream = open(sys.argv[1], "a")
portalocker.lock(stream, portalocker.LOCK_EX)
print("ready", flush=True)
sys.stdin.read()
"""
BUILD_AND_WAIT = """
import sys
from pathlib import Path
from lerobot_stream.sidecar.store import open_sidecar
from lerobot_stream.source.local import LocalSource
def wait(progress):
    print("ready", flush=True)
    sys.stdin.read()
source = LocalSource(Path(sys.argv[1]), repo_id="robots/arm")
paths = sys.argv[3:]
open_sidecar(source, paths, dataset_paths=paths, cache_dir=Path(sys.argv[2]), progress=wait)
"""


@pytest.fixture
def files(tmp_path: Path) -> dict[str, bytes]:
    return {path: make_mp4(tmp_path, 10 + i) for i, path in enumerate(ALL)}


@pytest.fixture
def cache(hf_home: Path) -> Path:
    return hf_home / "lerobot/cache"


def opened(source: Source, paths: list[str], cache: Path, **options: float) -> Sidecar:
    sidecar = open_sidecar(source, paths, dataset_paths=ALL, cache_dir=cache, **options)  # type: ignore[arg-type]
    sidecar.close()
    return sidecar


def names(cache: Path) -> list[str]:
    return sorted(p.name for p in cache.rglob("*") if p.is_file() and p.suffix != ".lock")


def test_the_cache_lies_where_lerobot_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_LEROBOT_HOME", "/x")
    assert sidecar_cache_dir() == Path("/x/streaming-sidecars")


def test_the_second_opening_reads_nothing_of_the_source(
    files: dict[str, bytes], cache: Path
) -> None:
    source = MemorySource(files)
    first = opened(source, ALL, cache)
    before = source.count.requests
    second = opened(source, ALL, cache)
    assert before == 3
    assert source.count.requests == before
    assert (
        first.path
        == second.path
        == sidecar_places(source, ALL, dataset_paths=ALL, cache_dir=cache).complete
    )
    assert first.path.parent == cache / "robots--arm"


def test_a_usable_sidecar_opens_while_another_process_holds_the_lock(
    files: dict[str, bytes], cache: Path
) -> None:
    path = opened(MemorySource(files), ALL, cache).path
    with portalocker.Lock(f"{path}.lock", "a"):
        assert opened(MemorySource(files), ALL, cache, lock_timeout_s=0).path == path


def test_a_usable_sidecar_opens_from_a_cache_that_holds_nothing_else(
    files: dict[str, bytes], cache: Path
) -> None:
    path = opened(MemorySource(files), ALL, cache).path
    Path(f"{path}.lock").unlink()
    opened(MemorySource(files), ALL, cache)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_cache_serves_and_refuses_with_a_hint(
    files: dict[str, bytes], cache: Path
) -> None:
    path = opened(MemorySource(files), ALL, cache).path
    path.parent.chmod(0o555)
    try:
        assert opened(MemorySource(files), ALL, cache).path == path
        with pytest.raises(SidecarError, match="cannot be written: Permission denied") as caught:
            opened(MemorySource(files, replace(PINNED, revision="x")), ALL, cache)
        assert "HF_LEROBOT_HOME" in str(caught.value.hint)
    finally:
        path.parent.chmod(0o755)


def test_a_cache_that_cannot_be_made_is_an_error_with_a_hint(
    files: dict[str, bytes], hf_home: Path
) -> None:
    hf_home.mkdir()
    (hf_home / "lerobot").write_bytes(b"")
    with pytest.raises(SidecarError, match="cannot be written") as caught:
        opened(MemorySource(files), ALL, hf_home / "lerobot/cache")
    assert "HF_LEROBOT_HOME" in str(caught.value.hint)


def test_a_lock_that_is_kept_too_long_is_named_with_the_seconds(
    files: dict[str, bytes], cache: Path
) -> None:
    source = MemorySource(files)
    path = sidecar_places(source, ALL, dataset_paths=ALL, cache_dir=cache).own
    path.parent.mkdir(parents=True)
    lock = f"{path}.lock"
    with (
        portalocker.Lock(lock, "a"),
        pytest.raises(LockTimeoutError, match=r"kept the lock for 0\.01 seconds") as caught,
    ):
        opened(source, ALL, cache, lock_timeout_s=0.01)
    assert caught.value.path == lock
    assert source.count.requests == 0
    assert len(opened(source, ALL, cache, lock_timeout_s=0).paths) == 3


def test_the_lock_of_a_killed_process_is_free(files: dict[str, bytes], cache: Path) -> None:
    source = MemorySource(files)
    path = sidecar_places(source, ALL, dataset_paths=ALL, cache_dir=cache).own
    path.parent.mkdir(parents=True)
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, f"{path}.lock"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        with pytest.raises(LockTimeoutError):
            opened(source, ALL, cache, lock_timeout_s=0)
        child.kill()
    assert opened(source, ALL, cache, lock_timeout_s=0).path == path


def test_a_build_that_was_killed_leaves_nothing_and_is_done_again(
    files: dict[str, bytes], tmp_path: Path, cache: Path
) -> None:
    root = tmp_path / "data"
    (root / "videos").mkdir(parents=True)
    for path, data in files.items():
        (root / path).write_bytes(data)
    child = subprocess.Popen(
        [sys.executable, "-c", BUILD_AND_WAIT, str(root), str(cache), *ALL],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.kill()
    assert names(cache) == []
    source = LocalSource(root, repo_id="robots/arm")
    assert opened(source, ALL, cache, lock_timeout_s=0).paths == tuple(ALL)
    assert source.count.requests == 3


def test_of_four_processes_that_start_at_once_one_builds(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "data"
    (root / "videos").mkdir(parents=True)
    for i in range(3):
        encode(root / f"videos/{i}.mp4", range(4 + i), codec="mpeg4")
    found = run_at_once(4, open_at_once, root, cache)
    assert sorted(requests for requests, _ in found) == [0, 0, 0, 3]
    assert [lengths for _, lengths in found] == [[4, 5, 6]] * 4
    assert len(names(cache)) == 1


def test_a_failed_build_leaves_no_file_and_frees_the_lock(
    files: dict[str, bytes], cache: Path
) -> None:
    broken = files | {B: b"x" * 100}
    with pytest.raises(BuildFailedError, match=r"^videos/b\.mp4: "):
        opened(MemorySource(broken), ALL, cache)
    assert names(cache) == []
    opened(MemorySource(files), ALL, cache, lock_timeout_s=0)


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\5\6" + bytes(18)])
def test_an_invalid_file_under_our_name_is_replaced(
    files: dict[str, bytes], cache: Path, content: bytes
) -> None:
    path = opened(MemorySource(files), ALL, cache).path
    good = path.read_bytes()
    path.write_bytes(content)
    assert opened(MemorySource(files), ALL, cache).path == path
    assert path.read_bytes() == good


def test_a_sidecar_of_an_older_schema_is_left_alone(files: dict[str, bytes], cache: Path) -> None:
    source = MemorySource(files)
    path = sidecar_places(source, ALL, dataset_paths=ALL, cache_dir=cache).own
    older = path.with_name(path.name.replace("mp4-v3-", "mp4-v2-"))
    older.parent.mkdir(parents=True)
    older.write_bytes(b"older")
    assert opened(source, ALL, cache).path == path
    assert older.read_bytes() == b"older"


def test_the_sidecar_of_another_dataset_is_neither_used_nor_touched(
    files: dict[str, bytes], cache: Path
) -> None:
    theirs = opened(
        MemorySource(files, replace(PINNED, data_root="hf://x@" + "1" * 40)), ALL, cache
    )
    before = theirs.path.read_bytes()
    source = MemorySource(files)
    ours = opened(source, ALL, cache)
    assert ours.path != theirs.path
    assert ours.path.parent == theirs.path.parent
    assert source.count.requests == 3
    assert theirs.path.read_bytes() == before


def test_a_foreign_sidecar_under_our_name_is_not_used(
    files: dict[str, bytes], cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="lerobot_stream.sidecar.store")
    other = opened(MemorySource(files, replace(PINNED, repo_id="robots/arm2")), ALL, cache)
    source = MemorySource(files)
    path = sidecar_places(source, ALL, dataset_paths=ALL, cache_dir=cache).own
    path.parent.mkdir(parents=True)
    shutil.copy(other.path, path)
    assert opened(source, ALL, cache).identity == PINNED
    assert source.count.requests == 3
    assert "repo_id is 'robots/arm2', wanted 'robots/arm'" in caplog.text


def test_a_complete_sidecar_serves_any_subset(files: dict[str, bytes], cache: Path) -> None:
    path = opened(MemorySource(files), ALL, cache).path
    source = MemorySource(files)
    assert opened(source, [B], cache).path == path
    assert source.count.requests == 0


def test_a_subset_has_a_name_and_a_mark_of_its_own(files: dict[str, bytes], cache: Path) -> None:
    source = MemorySource(files)
    part = opened(source, [B], cache)
    assert part.subset
    assert part.paths == (B,)
    assert source.requests == {B: 1}
    again = MemorySource(files)
    assert opened(again, [B], cache).path == part.path
    assert again.count.requests == 0
    other = opened(MemorySource(files), [A, B], cache)
    whole = opened(MemorySource(files), ALL, cache)
    assert len({part.path, other.path, whole.path}) == 3
    assert not whole.subset


def test_a_subset_under_the_complete_name_is_not_taken_for_it(
    files: dict[str, bytes], cache: Path
) -> None:
    source = MemorySource(files)
    places = sidecar_places(source, ALL, dataset_paths=ALL, cache_dir=cache)
    build_sidecar(source, ALL, output=places.complete, subset=True)
    before = source.count.requests
    assert not opened(source, ALL, cache).subset
    assert source.count.requests == before + 3


def test_a_local_file_of_equal_size_that_was_written_again_is_indexed_again(
    tmp_path: Path, cache: Path
) -> None:
    root = tmp_path / "data"
    (root / "videos").mkdir(parents=True)
    for path in ALL:
        (root / path).write_bytes(make_mp4(tmp_path, 10))

    def build() -> tuple[Path, int]:
        source = LocalSource(root, repo_id="robots/arm")
        return opened(source, ALL, cache).path, source.count.requests

    first, requests = build()
    assert requests == 3
    (root / B).chmod(0o600)
    assert build() == (first, 0)
    status = (root / B).stat()
    os.utime(root / B, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    second, requests = build()
    assert (second != first, requests) == (True, 3)
    assert first.exists()


def test_a_file_whose_changes_cannot_be_seen_is_indexed_at_each_opening(
    files: dict[str, bytes], cache: Path
) -> None:
    source = MemorySource(files, UNPINNED)
    for openings in (1, 2):
        opened(source, ALL, cache)
        assert source.count.requests == 3 * openings
    assert len(names(cache)) == 1


def test_fingerprints_that_differ_have_entries_of_their_own(
    files: dict[str, bytes], cache: Path
) -> None:
    marks = dict.fromkeys(ALL, "one")
    first = opened(MemorySource(files, UNPINNED, marks), ALL, cache)
    source = MemorySource(files, UNPINNED, marks | {A: "two"})
    second = opened(source, ALL, cache)
    assert first.path != second.path
    assert source.count.requests == 3
    assert opened(MemorySource(files, UNPINNED, marks), ALL, cache).path == first.path
