"""A file appears whole or not at all, and nothing of a dead process is picked up."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lerobot_stream.errors import SidecarError
from lerobot_stream.sidecar.install import atomic_file, sweep

WRITE_AND_WAIT = """
import sys
from pathlib import Path
from lerobot_stream.sidecar.install import atomic_file
with atomic_file(Path(sys.argv[1])) as stream:
    stream.write(b"half")
    stream.flush()
    print("ready", flush=True)
    sys.stdin.read()
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_file_appears_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.npz"
    with atomic_file(path) as stream:
        stream.write(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole"
    assert names(path.parent) == ["a.npz"]


def test_an_error_leaves_the_previous_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(b"before")

    def fail() -> None:
        with atomic_file(path) as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_bytes() == b"before"
    assert names(tmp_path) == ["a.npz"]


def test_others_may_read_the_file_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with atomic_file(tmp_path / "a.npz") as stream:
            stream.write(b"whole")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.npz").stat().st_mode) == 0o644


@pytest.mark.parametrize(
    ("folder", "hint"), [("hf_home/lerobot", "set HF_LEROBOT_HOME to"), ("mine", "--output")]
)
def test_a_folder_that_cannot_be_made_is_an_error_with_a_hint(
    tmp_path: Path, folder: str, hint: str
) -> None:
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "file").write_bytes(b"")
    with (
        pytest.raises(SidecarError, match="cannot be written: ") as caught,
        atomic_file(tmp_path / folder / "file" / "sub" / "a.npz"),
    ):
        pass
    assert hint in str(caught.value.hint)


def test_a_full_disk_is_an_error_with_a_hint(tmp_path: Path) -> None:
    with (
        pytest.raises(SidecarError, match=r"a\.npz: cannot be written: No space left") as caught,
        atomic_file(tmp_path / "a.npz"),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert "has space" in str(caught.value.hint)
    assert names(tmp_path) == []


def test_what_a_killed_process_left_is_swept_and_a_living_one_is_left_alone(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.npz"
    child = subprocess.Popen(
        [sys.executable, "-c", WRITE_AND_WAIT, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        (left,) = names(tmp_path)
        assert left.startswith("a.npz.")
        assert left.endswith(".tmp")
        sweep(path)
        assert names(tmp_path) == [left]
        child.kill()
    sweep(tmp_path / "b.npz")
    assert names(tmp_path) == [left]
    with atomic_file(path) as stream:
        stream.write(b"whole")
    assert names(tmp_path) == ["a.npz"]
