"""The archive is what zipfile and NumPy expect, also where it is large."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.sidecar.archive import Member, Spool, compress, write_archive
from lerobot_stream.sidecar.members import array_to_bytes


def archive_of(*members: Member) -> bytes:
    stream = io.BytesIO()
    write_archive(stream, members)
    return stream.getvalue()


def test_the_bytes_are_those_of_numpy() -> None:
    arrays = {"manifest_json": np.array(b"{}"), "0/sample_sizes": np.arange(9) % 3}
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
    ours = archive_of(*(compress(f"{k}.npy", array_to_bytes(v)) for k, v in arrays.items()))
    assert ours == stream.getvalue()


@given(
    st.dictionaries(st.text("ab/é", min_size=1, max_size=9), st.binary(max_size=300), max_size=6)
)
def test_zipfile_reads_every_member_back(members: dict[str, bytes]) -> None:
    data = archive_of(*(compress(name, value) for name, value in members.items()))
    # no flag says that names are UTF-8: those of a sidecar are plain
    with zipfile.ZipFile(io.BytesIO(data), metadata_encoding="utf-8") as archive:
        assert archive.namelist() == list(members)
        assert {name: archive.read(name) for name in members} == members
        assert archive.testzip() is None


def test_more_members_than_sixteen_bits_count_are_read_back() -> None:
    member = compress("x", b"abc")
    many = (Member(f"{i}", member.crc, member.size, member.data) for i in range(70_000))
    with zipfile.ZipFile(io.BytesIO(archive_of(*many))) as archive:
        assert len(archive.infolist()) == 70_000
        assert archive.read("69999") == b"abc"


def test_members_beyond_four_gigabytes_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "sparse.npz"
    with path.open("wb") as stream:
        stream.seek(5 << 30)  # a hole: nothing is written there
        write_archive(stream, [compress("far", b"abc"), compress("farther", b"d" * 99)])
    with zipfile.ZipFile(path) as archive:
        assert archive.read("far") == b"abc"
        assert archive.read("farther") == b"d" * 99
    path.unlink()


def test_a_spool_gives_back_members_in_any_order_and_leaves_no_file(tmp_path: Path) -> None:
    first, second = compress("a", b"1" * 50), compress("b", b"2")
    with Spool(tmp_path) as spool:
        spool.add([first, second])
        assert spool.take("b") == second
        spool.add([compress("c", b"3")])
        assert spool.take("a") == first
        assert spool.take("c") == compress("c", b"3")
        assert list(tmp_path.iterdir()) == []
