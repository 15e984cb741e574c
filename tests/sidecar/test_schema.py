"""A sidecar opens lazily, in any process, and a damaged one is one error."""

from __future__ import annotations

import os
import pickle
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lerobot_stream.errors import FormatError, SidecarError
from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.sidecar.archive import Member, compress, write_archive
from lerobot_stream.sidecar.manifest import SidecarHeader
from lerobot_stream.sidecar.members import (
    MEMBERS,
    array_to_bytes,
    index_to_bytes,
    member_name,
    text_to_bytes,
)
from lerobot_stream.sidecar.schema import MANIFEST, Sidecar
from tests.sidecar.memory import COMMIT, PINNED
from tests.sidecar.processes import size_of_first_sample
from tests.sidecar.synthetic import make_index

SHARED = Path(__file__).parents[2].parent / "shared"
FILES = {"videos/a.mp4": make_index(20, size=7), "videos/b.mp4": make_index(30, size=8)}


def members_of(files: dict[str, Mp4Index]) -> dict[str, bytes]:
    header = SidecarHeader(PINNED, {}, {path: index.movie for path, index in files.items()})
    members = {MANIFEST: text_to_bytes(header.to_bytes())}
    for number, index in enumerate(files.values()):
        arrays = index_to_bytes(index)
        members |= {member_name(number, name): arrays[name] for name in MEMBERS}
    return members


def write(path: Path, members: dict[str, bytes | Member]) -> Path:
    with path.open("wb") as stream:
        write_archive(
            stream,
            (m if isinstance(m, Member) else compress(name, m) for name, m in members.items()),
        )
    return path


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write(tmp_path / "good.npz", {**members_of(FILES)})


def test_each_file_comes_back(good: Path) -> None:
    sidecar = Sidecar(good)
    assert sidecar.paths == tuple(FILES)
    assert sidecar.identity == PINNED
    assert sidecar.source_files == tuple((p, i.movie.file_size) for p, i in FILES.items())
    assert sidecar.fingerprints == {}
    assert not sidecar.subset
    for path, index in FILES.items():
        found = sidecar.index(path)
        assert found.movie == index.movie
        for column in MEMBERS.values():
            np.testing.assert_array_equal(getattr(found, column), getattr(index, column))
    sidecar.close()


@pytest.mark.skipif(not SHARED.is_dir(), reason="no shared folder")
def test_a_sidecar_of_lerobot_opens() -> None:
    (theirs,) = (SHARED / "interop").glob("mp4-v3-*.npz")
    sidecar = Sidecar(theirs)
    assert sidecar.identity.revision == COMMIT
    assert [len(sidecar.index(path)) for path in sidecar.paths] == [778, 805, 555]
    sidecar.close()


def test_only_the_arrays_of_the_asked_file_are_read(tmp_path: Path) -> None:
    members: dict[str, bytes | Member] = {**members_of(FILES)}
    members["1/sample_sizes.npy"] = b"torn"
    sidecar = Sidecar(write(tmp_path / "torn.npz", members))
    assert len(sidecar.index("videos/a.mp4")) == 20
    with pytest.raises(FormatError, match=r"torn\.npz: videos/b\.mp4: sample_sizes") as caught:
        sidecar.index("videos/b.mp4")
    assert caught.value.hint == f"delete {tmp_path}/torn.npz; it is made anew at the next start"
    sidecar.close()


def test_a_file_it_does_not_hold_is_an_error(good: Path) -> None:
    sidecar = Sidecar(good)
    with pytest.raises(SidecarError, match=r"^c\.mp4: not among the 2 files of sidecar "):
        sidecar.index("c.mp4")
    sidecar.close()


def test_a_closed_sidecar_says_so_and_may_be_closed_again(good: Path) -> None:
    sidecar = Sidecar(good)
    sidecar.close()
    sidecar.close()
    with pytest.raises(ValueError, match="is closed"):
        sidecar.index("videos/a.mp4")


def test_a_dropped_sidecar_gives_its_descriptor_back(good: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(5):
        Sidecar(good)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_a_pickled_sidecar_reopens_its_file(good: Path) -> None:
    sidecar = Sidecar(good)
    again = pickle.loads(pickle.dumps(sidecar))
    sidecar.close()
    assert len(again.index("videos/b.mp4")) == 30
    again.close()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_another_process_reads_it(good: Path, method: str) -> None:
    sidecar = Sidecar(good)
    with get_context(method).Pool(2) as pool:
        assert pool.map(size_of_first_sample, [(sidecar, path) for path in FILES]) == [7, 8]
    sidecar.close()


def test_a_forked_process_reads_it_while_a_thread_holds_the_lock(good: Path) -> None:
    sidecar = Sidecar(good)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with sidecar._archive._lock:  # type: ignore[attr-defined]
            held.set()
            done.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(60)
    child = os.fork()
    if not child:
        os._exit(int(sidecar.index("videos/b.mp4").size[0]))
    done.set()
    holder.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 8
    sidecar.close()


def test_many_threads_read_it_at_once(good: Path) -> None:
    sidecar = Sidecar(good)
    paths = list(FILES) * 50
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda path: len(sidecar.index(path)), paths))
    assert found == [20, 30] * 50
    sidecar.close()


def test_a_replaced_file_does_not_disturb_a_reader(good: Path, tmp_path: Path) -> None:
    sidecar = Sidecar(good)
    other = write(tmp_path / "other.npz", {**members_of({"c.mp4": make_index(3)})})
    other.replace(good)
    assert len(sidecar.index("videos/b.mp4")) == 30
    sidecar.close()


def test_no_file_is_a_sidecar_error(tmp_path: Path) -> None:
    with pytest.raises(SidecarError, match=r"none\.npz: cannot be opened: No such file"):
        Sidecar(tmp_path / "none.npz")


def bomb(name: str, size: int) -> Member:
    return Member(name, 0, size, compress(name, bytes(1000)).data)


MANIFEST_BYTES = members_of(FILES)[MANIFEST]
DAMAGE: dict[str, tuple[dict[str, bytes | Member | None], str]] = {
    "no manifest": ({MANIFEST: None}, r"manifest_json\.npy: not in the archive"),
    "manifest of numbers": (
        {MANIFEST: array_to_bytes(np.arange(3))},
        r"wanted one text of bytes, got int64 of shape \(3,\)",
    ),
    "manifest of unicode": (
        {MANIFEST: array_to_bytes(np.array("{}"))},
        "wanted one text of bytes, got <U2",
    ),
    "huge manifest": ({MANIFEST: bomb(MANIFEST, 1 << 40)}, "declares 1099511627776 bytes, at most"),
    "array missing": (
        {"1/sync_samples.npy": None},
        r"videos/b\.mp4: 1/sync_samples\.npy: not in the archive",
    ),
    "huge array": (
        {"0/sample_pts.npy": bomb("0/sample_pts.npy", 1 << 40)},
        r"0/sample_pts\.npy: declares 1099511627776 bytes, at most 5\d\d\d for this file",
    ),
}


@pytest.mark.parametrize(("change", "message"), DAMAGE.values(), ids=DAMAGE.keys())
def test_what_is_declared_is_checked_when_it_opens(
    tmp_path: Path, change: dict[str, bytes | Member | None], message: str
) -> None:
    members = {k: v for k, v in {**members_of(FILES), **change}.items() if v is not None}
    with pytest.raises(FormatError, match=message):
        Sidecar(write(tmp_path / "bad.npz", members))


@pytest.mark.parametrize("keep", [0, 10, 500, -1])
def test_a_torn_archive_is_one_error(good: Path, keep: int) -> None:
    good.write_bytes(good.read_bytes()[:keep])
    with pytest.raises(FormatError, match=r"good\.npz: no archive: "):
        Sidecar(good)


def test_a_folder_is_no_sidecar(tmp_path: Path) -> None:
    with pytest.raises((FormatError, SidecarError)):
        Sidecar(tmp_path)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_any_damage_is_an_error_or_harmless(good: Path, changes: list[tuple[float, int]]) -> None:
    data = bytearray(good.read_bytes())
    for place, value in changes:
        data[min(int(place * len(data)), len(data) - 1)] = value
    bad = good.with_name("damaged.npz")
    bad.write_bytes(data)
    try:
        sidecar = Sidecar(bad)
    except FormatError:
        return
    for path in sidecar.paths:
        try:
            index = sidecar.index(path)
        except FormatError:
            continue
        assert path in FILES
        np.testing.assert_array_equal(index.size, FILES[path].size)
    sidecar.close()


def test_numpy_opens_it(good: Path, tmp_path: Path) -> None:
    shutil.copy(good, tmp_path / "copy.npz")
    with np.load(tmp_path / "copy.npz", allow_pickle=False) as arrays:
        assert arrays.files[:2] == ["manifest_json", "0/sample_pts"]
        np.testing.assert_array_equal(arrays["1/sample_offsets"], FILES["videos/b.mp4"].offset)
