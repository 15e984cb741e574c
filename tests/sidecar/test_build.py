"""Building reads each file once, keeps little in memory, and installs all or nothing."""

from __future__ import annotations

import pickle
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from lerobot_stream.errors import AccessError, SidecarError, SourceError
from lerobot_stream.mp4.probe import read_mp4_index
from lerobot_stream.sidecar.build import BuildFailedError, BuildProgress, build_sidecar
from lerobot_stream.sidecar.identity import sidecar_name
from lerobot_stream.sidecar.members import MEMBERS
from lerobot_stream.sidecar.schema import Sidecar
from lerobot_stream.source.base import Identity
from lerobot_stream.source.local import LocalSource
from tests.media import encode
from tests.sidecar.memory import COMMIT, PINNED, UNPINNED, MemorySource, make_mp4

SHARED = Path(__file__).parents[2].parent / "shared"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("videos")
    encode(folder / "a.mp4", range(12), gop=4, bframes=2)
    encode(folder / "b.mp4", range(9), faststart=True)
    encode(folder / "c.mp4", range(5), codec="av1")
    return {f"videos/{name}": (folder / name).read_bytes() for name in ("a.mp4", "b.mp4", "c.mp4")}


@pytest.mark.skipif(not SHARED.is_dir(), reason="no shared folder")
def test_the_sidecar_of_a_real_dataset_is_lerobots_byte_for_byte(tmp_path: Path) -> None:
    (theirs,) = (SHARED / "interop").glob("mp4-v3-*.npz")
    folder = SHARED / "data/g1_inspire"
    identity = Identity("robots/g1_inspire", COMMIT, f"hf://datasets/robots/g1_inspire@{COMMIT}")
    paths = [str(path.relative_to(folder)) for path in folder.glob("videos/**/*.mp4")]
    source = MemorySource({path: (folder / path).read_bytes() for path in paths}, identity)
    ours = build_sidecar(source, paths, output=tmp_path / sidecar_name(identity, {}))
    assert ours.name == theirs.name
    with np.load(ours) as found, np.load(theirs) as wanted:
        assert found.files == wanted.files
        assert found["manifest_json"] == wanted["manifest_json"]
        for name in wanted.files:
            assert found[name].dtype == wanted[name].dtype
            np.testing.assert_array_equal(found[name], wanted[name])
    assert ours.read_bytes() == theirs.read_bytes()  # where zlib is the same one
    assert max(source.requests.values()) <= 3


def test_every_file_is_indexed_as_it_is(videos: dict[str, bytes], tmp_path: Path) -> None:
    build_sidecar(MemorySource(videos), videos, output=tmp_path / "s.npz")
    sidecar = Sidecar(tmp_path / "s.npz")
    assert sidecar.paths == tuple(sorted(videos))
    for path, data in videos.items():
        wanted = read_mp4_index(
            lambda span, data=data: data[span.start : span.stop],  # type: ignore[misc]
            file_size=len(data),
            path=path,
        )
        found = sidecar.index(path)
        assert found.movie == wanted.movie
        for column in MEMBERS.values():
            np.testing.assert_array_equal(getattr(found, column), getattr(wanted, column))
    sidecar.close()


def test_equal_files_give_equal_bytes_whatever_finishes_first(
    videos: dict[str, bytes], tmp_path: Path
) -> None:
    outputs = []
    for i, workers in enumerate((1, 3, 3)):
        path = tmp_path / f"{i}.npz"
        build_sidecar(MemorySource(videos), reversed(videos), output=path, workers=workers)  # type: ignore[arg-type]
        outputs.append(path.read_bytes())
    assert outputs[0] == outputs[1] == outputs[2]


def test_a_faststart_file_takes_one_request(tmp_path: Path) -> None:
    files = {"long.mp4": make_mp4(tmp_path, 3000, size=1000), "short.mp4": make_mp4(tmp_path, 3)}
    source = MemorySource(files)
    build_sidecar(source, files, output=tmp_path / "s.npz")
    assert source.requests == {"long.mp4": 1, "short.mp4": 1}
    assert source.count.bytes < len(files["long.mp4"])


def test_memory_depends_on_workers_and_not_on_files(tmp_path: Path) -> None:
    data = make_mp4(tmp_path, 20_000, size=1)

    def peak(count: int) -> int:
        source = MemorySource({f"{i:03d}.mp4": data for i in range(count)})
        tracemalloc.start()
        build_sidecar(source, source.files, output=tmp_path / "s.npz", workers=2)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    few, many = peak(4), peak(24)
    arrays = 6 * 8 * 20_000
    assert few > 2 * arrays  # the measure sees what workers hold
    assert many - few < 4 * arrays  # of 20 more files


def test_progress_is_told_after_each_file(videos: dict[str, bytes], tmp_path: Path) -> None:
    told: list[BuildProgress] = []
    files = videos | {"videos/d.mp4": LFS}
    with pytest.raises(BuildFailedError):
        build_sidecar(MemorySource(files), files, output=tmp_path / "s.npz", progress=told.append)
    assert [(p.done, p.total) for p in told] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert {p.path for p in told} == set(files)
    assert told[-1].failures == 1
    assert told[-1].read_bytes == sum(map(len, files.values()))


def test_all_failures_are_listed_and_nothing_is_installed(
    videos: dict[str, bytes], tmp_path: Path
) -> None:
    files = videos | {
        "videos/lfs.mp4": LFS,
        "videos/torn.mp4": videos["videos/a.mp4"][:-200],
        "videos/away.mp4": b"x" * 100,
    }
    source = MemorySource(files, faults={"videos/away.mp4": SourceError("gone", path="host")})
    output = tmp_path / "s.npz"
    output.write_bytes(b"before")
    with pytest.raises(BuildFailedError, match="4 of 7 video files cannot be indexed") as caught:
        build_sidecar(source, [*files, "videos/none.mp4"], output=output)
    failures = dict(caught.value.failures)
    assert list(failures) == [f"videos/{n}.mp4" for n in ("away", "lfs", "none", "torn")]
    assert failures["videos/away.mp4"] == "host: gone"
    assert failures["videos/none.mp4"] == f"no such file in {PINNED.data_root}"
    assert caught.value.__notes__ == [f"{path}: {reason}" for path, reason in failures.items()]
    assert [path.name for path in tmp_path.iterdir()] == ["s.npz"]
    assert output.read_bytes() == b"before"


def test_a_single_failure_is_told_as_it_is(videos: dict[str, bytes], tmp_path: Path) -> None:
    files = videos | {"videos/lfs.mp4": LFS}
    with pytest.raises(BuildFailedError, match=r"^videos/lfs\.mp4: .*LFS") as caught:
        build_sidecar(MemorySource(files), files, output=tmp_path / "s.npz")
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.failures == caught.value.failures
    assert str(again) == str(caught.value)


def test_a_refused_token_ends_the_build(videos: dict[str, bytes], tmp_path: Path) -> None:
    fault = AccessError("401 from the server", path="videos/b.mp4")
    source = MemorySource(videos, faults=dict.fromkeys(videos, fault))
    with pytest.raises(AccessError, match="401"):
        build_sidecar(source, videos, output=tmp_path / "s.npz", workers=1)
    assert list(tmp_path.iterdir()) == []


def test_a_callback_that_raises_ends_the_build(videos: dict[str, bytes], tmp_path: Path) -> None:
    def stop(progress: BuildProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_sidecar(MemorySource(videos), videos, output=tmp_path / "s.npz", progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_fingerprints_and_the_mark_of_a_subset_are_written(
    videos: dict[str, bytes], tmp_path: Path
) -> None:
    source = MemorySource(videos, UNPINNED, {path: f"etag {path}" for path in videos})
    build_sidecar(source, ["videos/b.mp4"], output=tmp_path / "s.npz", subset=True)
    sidecar = Sidecar(tmp_path / "s.npz")
    assert sidecar.subset
    assert sidecar.identity == UNPINNED
    assert sidecar.fingerprints == {"videos/b.mp4": "etag videos/b.mp4"}
    sidecar.close()


def test_a_file_that_changes_after_it_was_listed_is_not_indexed(
    videos: dict[str, bytes], tmp_path: Path
) -> None:
    (tmp_path / "a.mp4").write_bytes(videos["videos/a.mp4"])
    source = LocalSource(tmp_path, repo_id="robots/arm")
    source.list_files()
    (tmp_path / "a.mp4").write_bytes(videos["videos/a.mp4"] + bytes(8))
    with pytest.raises(BuildFailedError, match=r"a\.mp4: changed while in use"):
        build_sidecar(source, ["a.mp4"], output=tmp_path / "s" / "s.npz")


def test_a_folder_that_cannot_be_written_is_an_error(
    videos: dict[str, bytes], tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SidecarError, match="cannot be written") as caught:
        build_sidecar(MemorySource(videos), videos, output=tmp_path / "file" / "x" / "s.npz")
    assert caught.value.hint == (
        "name with --output a file in a folder that can be written and has space"
    )


def test_no_worker_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="workers is 0"):
        build_sidecar(MemorySource({}, PINNED), [], output=tmp_path / "s.npz", workers=0)
