"""A sidecar is mapped once for each content, and where that cannot be it serves by itself."""

from __future__ import annotations

import logging
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import portalocker
import pytest

from lerobot_stream.sidecar.build import build_sidecar
from lerobot_stream.sidecar.mapped import MappedIndex
from lerobot_stream.sidecar.mapped_layout import COLUMNS
from lerobot_stream.sidecar.mapped_store import map_sidecar, mapped_cache_dir, mapped_name
from lerobot_stream.sidecar.schema import Sidecar
from lerobot_stream.source.base import Identity
from tests.sidecar.memory import PINNED, UNPINNED, MemorySource, make_mp4
from tests.sidecar.mounts import in_small_folder
from tests.sidecar.processes import map_at_once, run_at_once

INTEROP = Path(__file__).parents[2] / "../shared/interop"
ALL = ["videos/a.mp4", "videos/b.mp4", "videos/c.mp4"]
MAP = """
import sys, logging
from pathlib import Path
from lerobot_stream.sidecar.mapped_store import map_sidecar
from lerobot_stream.sidecar.schema import Sidecar
logging.basicConfig(level=logging.WARNING, stream=sys.stdout, format="%(message)s")
found = map_sidecar(Sidecar(Path(sys.argv[1])), cache_dir=Path(sys.argv[2]))
print(type(found).__name__, [len(found.index(path)) for path in found.paths])
"""
MAP_AND_DIE = """
import os, signal, sys
from pathlib import Path
from lerobot_stream.sidecar import mapped_store
from lerobot_stream.sidecar.schema import Sidecar
class Dying(Sidecar):
    def index(self, path):
        if path == sys.argv[3]:
            print(*(p.name for p in Path(sys.argv[2]).iterdir()), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().index(path)
mapped_store.map_sidecar(Dying(Path(sys.argv[1])), cache_dir=Path(sys.argv[2]))
"""

READ_AND_WAIT = """
import sys
from pathlib import Path
from lerobot_stream.sidecar.mapped import MappedIndex
found = MappedIndex(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def sidecar(tmp_path: Path) -> Path:
    files = {path: make_mp4(tmp_path, 10 + i) for i, path in enumerate(ALL)}
    return build_sidecar(MemorySource(files), ALL, output=tmp_path / "s.npz")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "indexes"


def names(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if path.suffix != ".lock")


def lengths(found: MappedIndex | Sidecar) -> list[int]:
    return [len(found.index(path)) for path in ALL]


def run(code: str, *arguments: str | Path) -> str:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=root)
    return done.stdout


def test_indexes_lie_beside_those_of_lerobot(hf_home: Path) -> None:
    assert mapped_cache_dir() == hf_home / "lerobot/streaming-indexes"


def test_it_is_made_once_and_found_again(sidecar: Path, cache: Path) -> None:
    first = map_sidecar(Sidecar(sidecar), cache_dir=cache)
    made = first.path.stat()
    second = map_sidecar(Sidecar(sidecar), cache_dir=cache)
    assert isinstance(second, MappedIndex)
    assert lengths(first) == lengths(second) == [10, 11, 12]
    assert second.path.stat() == made
    assert len(names(cache)) == 1


def test_the_sidecar_is_closed_where_its_mapped_form_serves(sidecar: Path, cache: Path) -> None:
    whole = Sidecar(sidecar)
    map_sidecar(whole, cache_dir=cache)
    with pytest.raises(ValueError, match="is closed"):
        whole.index(ALL[0])


def test_a_copy_compressed_otherwise_is_the_same_content(sidecar: Path, tmp_path: Path) -> None:
    other = tmp_path / "stored.npz"
    with zipfile.ZipFile(sidecar) as old, zipfile.ZipFile(other, "w") as new:
        for name in reversed(old.namelist()):
            new.writestr(name, old.read(name))
    assert mapped_name(Sidecar(other)) == mapped_name(Sidecar(sidecar))


def test_another_content_has_another_file_and_the_older_stays_while_it_is_read(
    sidecar: Path, cache: Path, tmp_path: Path
) -> None:
    first = map_sidecar(Sidecar(sidecar), cache_dir=cache)
    files = {path: make_mp4(tmp_path, 20 + i) for i, path in enumerate(ALL)}
    build_sidecar(MemorySource(files), ALL, output=sidecar)
    second = map_sidecar(Sidecar(sidecar), cache_dir=cache)
    renamed = replace(PINNED, repo_id="robots/arm2")
    build_sidecar(MemorySource(files, renamed), ALL, output=sidecar)
    third = map_sidecar(Sidecar(sidecar), cache_dir=cache)
    assert lengths(first) == [10, 11, 12]
    assert lengths(second) == lengths(third) == [20, 21, 22]
    assert (second.identity, third.identity) == (PINNED, renamed)
    assert len(names(cache)) == 3


def built(
    output: Path, first: int, identity: Identity = UNPINNED, *, subset: bool = False, count: int = 3
) -> Sidecar:
    """The sidecar of files of ``first``, ``first + 1``, … frames."""
    files = {p: make_mp4(output.parent, first + i) for i, p in enumerate(ALL[:count])}
    source = MemorySource(files, identity)
    return Sidecar(build_sidecar(source, files, output=output, subset=subset))


def test_an_older_one_that_nobody_reads_is_removed(cache: Path, tmp_path: Path) -> None:
    first = map_sidecar(built(tmp_path / "s.npz", 10), cache_dir=cache)
    first.close()
    second = map_sidecar(built(tmp_path / "s.npz", 20, count=2), cache_dir=cache)
    assert names(cache) == [second.path.name]
    assert len(second.index(ALL[0])) == 20


def test_what_is_still_looked_at_is_not_removed(cache: Path, tmp_path: Path) -> None:
    first = map_sidecar(built(tmp_path / "s.npz", 10), cache_dir=cache)
    view = first.index(ALL[2]).size
    first.close()
    map_sidecar(built(tmp_path / "s.npz", 20), cache_dir=cache).close()
    assert len(names(cache)) == 2
    assert len(view) == 12
    del view
    third = map_sidecar(built(tmp_path / "s.npz", 30), cache_dir=cache)
    assert names(cache) == [third.path.name]


def test_what_another_process_reads_is_not_removed(cache: Path, tmp_path: Path) -> None:
    first = map_sidecar(built(tmp_path / "s.npz", 10), cache_dir=cache).path
    child = subprocess.Popen(
        [sys.executable, "-c", READ_AND_WAIT, str(first)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        map_sidecar(built(tmp_path / "s.npz", 20), cache_dir=cache).close()
        assert first.exists()
        child.kill()
    map_sidecar(built(tmp_path / "s.npz", 30), cache_dir=cache).close()
    assert len(names(cache)) == 1


@pytest.mark.parametrize(
    ("identity", "subset", "count"),
    [
        (replace(UNPINNED, repo_id="robots/other"), False, 3),
        (replace(UNPINNED, data_root="memory://elsewhere"), False, 3),
        (UNPINNED, True, 3),
        (UNPINNED, True, 2),
    ],
    ids=["name", "place", "a part", "another part"],
)
def test_of_other_places_and_parts_nothing_is_removed(
    cache: Path, tmp_path: Path, identity: Identity, subset: bool, count: int
) -> None:
    other = built(tmp_path / "o.npz", 10, identity, subset=subset, count=count)
    kept = map_sidecar(other, cache_dir=cache).path
    own = built(tmp_path / "s.npz", 20, subset=count == 2)
    map_sidecar(own, cache_dir=cache).close()
    assert kept.exists()
    assert len(names(cache)) == 2


def test_files_of_others_are_not_touched(sidecar: Path, cache: Path) -> None:
    cache.mkdir()
    theirs = cache / "mp4-0123456789abcdef.bin"
    theirs.write_bytes(b"lerobot")
    before = theirs.stat()
    map_sidecar(Sidecar(sidecar), cache_dir=cache)
    assert theirs.read_bytes() == b"lerobot"
    assert theirs.stat().st_mtime_ns == before.st_mtime_ns
    assert not any(name.startswith("mp4-") for name in names(cache) if name != theirs.name)


def test_one_that_is_there_opens_while_another_process_holds_the_lock(
    sidecar: Path, cache: Path
) -> None:
    path = map_sidecar(Sidecar(sidecar), cache_dir=cache).path
    with portalocker.Lock(f"{path}.lock", "a"):
        assert map_sidecar(Sidecar(sidecar), cache_dir=cache, lock_timeout_s=0).path == path


def test_the_sidecar_serves_while_another_process_keeps_the_lock(
    sidecar: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache.mkdir()
    with portalocker.Lock(cache / f"{mapped_name(Sidecar(sidecar))}.lock", "a"):
        found = map_sidecar(Sidecar(sidecar), cache_dir=cache, lock_timeout_s=0.01)
    assert isinstance(found, Sidecar)
    assert lengths(found) == [10, 11, 12]
    assert "kept the lock for 0.01 seconds" in caplog.text


@pytest.mark.parametrize("options", ["size=4k", "ro"])
def test_the_sidecar_serves_where_the_cache_is_full_or_read_only(
    sidecar: Path, cache: Path, options: str
) -> None:
    out = in_small_folder(cache, options, [sys.executable, "-c", MAP, str(sidecar), str(cache)])
    warning, found = out.splitlines()
    assert found == "Sidecar [10, 11, 12]"
    assert warning.startswith("sample tables are read into each process: ")


def test_what_is_damaged_is_made_anew(
    sidecar: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    path = map_sidecar(Sidecar(sidecar), cache_dir=cache).path
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    found = map_sidecar(Sidecar(sidecar), cache_dir=cache)
    assert isinstance(found, MappedIndex)
    assert path.read_bytes() == whole
    assert f"wanted {len(whole)} bytes, found {len(whole) - 1}" in caplog.text


def test_a_damaged_sidecar_says_so_where_it_is_read(sidecar: Path, cache: Path) -> None:
    data = bytearray(sidecar.read_bytes())
    at = data.index(b"1/sample_pts.npy") + 60
    data[at] ^= 255
    sidecar.write_bytes(data)
    found = map_sidecar(Sidecar(sidecar), cache_dir=cache)
    assert isinstance(found, Sidecar)
    assert len(found.index(ALL[0])) == 10
    assert names(cache) == []


@pytest.mark.parametrize("path", ALL)
def test_a_process_killed_while_mapping_leaves_nothing_that_is_picked_up(
    sidecar: Path, cache: Path, path: str
) -> None:
    (half,) = [n for n in run(MAP_AND_DIE, sidecar, cache, path).split() if ".lock" not in n]
    assert half.endswith(".tmp")
    found = map_sidecar(Sidecar(sidecar), cache_dir=cache, lock_timeout_s=0)
    assert isinstance(found, MappedIndex)
    assert lengths(found) == [10, 11, 12]
    assert names(cache) == [found.path.name]


def test_of_four_processes_that_start_at_once_one_maps(sidecar: Path, cache: Path) -> None:
    found = run_at_once(4, map_at_once, sidecar, cache)
    assert sorted(tables for tables, _ in found) == [0, 0, 0, 3]
    assert [lengths for _, lengths in found] == [[10, 11, 12]] * 4
    assert len(names(cache)) == 1


@pytest.mark.skipif(not INTEROP.is_dir(), reason="no sidecar of LeRobot's at hand")
def test_a_sidecar_that_lerobot_wrote_is_mapped_number_by_number(cache: Path) -> None:
    (file,) = INTEROP.glob("*.npz")
    whole, found = Sidecar(file), map_sidecar(Sidecar(file), cache_dir=cache)
    assert found.paths == whole.paths
    for path in whole.paths:
        one, other = whole.index(path), found.index(path)
        assert one.movie == other.movie
        assert all(np.array_equal(getattr(one, name), getattr(other, name)) for name in COLUMNS)
