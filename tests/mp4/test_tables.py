"""Sample tables: expanding undoes packing, and nothing is expanded on trust."""

from __future__ import annotations

import itertools
import struct
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.errors import FormatError
from lerobot_stream.mp4.boxes import Box, Extract, make_box, make_full_box, parse_header
from lerobot_stream.mp4.tables import MAX_SAMPLES, SampleTable, parse_sample_table, parse_sizes
from lerobot_stream.span import Span

FILE_SIZE = 1 << 40


def words(*values: int) -> bytes:
    return b"".join((value & 0xFFFFFFFF).to_bytes(4) for value in values)


def runs(values: Sequence[int]) -> bytes:
    """Pack values as (count, value) rows, their number first."""
    rows = [(len(list(group)), value) for value, group in itertools.groupby(values)]
    return words(len(rows), *itertools.chain.from_iterable(rows))


def stbl(*boxes: bytes) -> tuple[Extract, Box]:
    extract = Extract("a.mp4", 0, make_box("stbl", *boxes))
    return extract, parse_header(extract, 0, within=Span(0, extract.stop))


def parse(*boxes: bytes, file_size: int = FILE_SIZE) -> SampleTable:
    return parse_sample_table(*stbl(*boxes), file_size=file_size)


STTS = make_full_box("stts", words(1, 4, 512))
STSZ = make_full_box("stsz", words(0, 4, 5, 6, 7, 8))
STSC = make_full_box("stsc", words(1, 1, 2, 1))
STCO = make_full_box("stco", words(2, 100, 200))
PLAIN = {"stts": STTS, "stsz": STSZ, "stsc": STSC, "stco": STCO}


def plain(**changes: bytes) -> list[bytes]:
    return list((PLAIN | changes).values())


@st.composite
def layouts(draw: st.DrawFn) -> tuple[list[int], list[int], list[int]]:
    """Draw the samples of each mp4 chunk, where each chunk lies, and the size of each sample."""
    per_chunk = draw(st.lists(st.integers(1, 4), min_size=1, max_size=8))
    places = draw(st.lists(st.integers(0, 1 << 39), min_size=len(per_chunk), max_size=8))
    total = sum(per_chunk)
    sizes = draw(st.lists(st.integers(1, 15), min_size=total, max_size=total))
    return per_chunk, places[: len(per_chunk)], sizes


@given(layouts(), st.sampled_from(["stsz", "4", "8", "16"]), st.booleans(), st.data())
def test_expanding_undoes_packing(
    layout: tuple[list[int], list[int], list[int]],
    size_box: str,
    all_sync: bool,
    data: st.DataObject,
) -> None:
    per_chunk, places, sizes = layout
    n = len(sizes)
    durations = data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    offsets = data.draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n))
    sync = data.draw(st.sets(st.integers(0, n - 1), min_size=1))
    firsts = [i for i, k in enumerate(per_chunk) if i == 0 or k != per_chunk[i - 1]]
    chunk_rows = [word for i in firsts for word in (i + 1, per_chunk[i], 1)]
    boxes = [
        make_full_box("stts", runs(durations)),
        make_full_box("ctts", runs(offsets), version=1),
        pack_sizes(sizes, size_box),
        make_full_box("stsc", words(len(firsts), *chunk_rows)),
        make_full_box("co64", words(len(places)), struct.pack(f">{len(places)}Q", *places)),
    ]
    if not all_sync:
        boxes.append(make_full_box("stss", words(len(sync), *(i + 1 for i in sorted(sync)))))
    table = parse(*boxes)
    assert table.duration.tolist() == durations
    assert table.composition_offset.tolist() == offsets
    assert table.size.tolist() == sizes
    assert table.sync.tolist() == (list(range(n)) if all_sync else sorted(sync))
    left = iter(sizes)
    expected: list[int] = []
    for place, count in zip(places, per_chunk, strict=True):
        ends = itertools.accumulate(itertools.islice(left, count), initial=place)
        expected += list(ends)[:-1]
    assert table.offset.tolist() == expected


def pack_sizes(sizes: list[int], box: str) -> bytes:
    if box == "stsz":
        return make_full_box("stsz", words(0, len(sizes), *sizes))
    head = words(int(box), len(sizes))
    if box == "4":
        padded = [*sizes, 0][: len(sizes) + len(sizes) % 2]
        pairs = bytes(a << 4 | b for a, b in zip(padded[::2], padded[1::2], strict=True))
        return make_full_box("stz2", head, pairs)
    return make_full_box("stz2", head, b"".join(size.to_bytes(int(box) // 8) for size in sizes))


def test_one_size_for_all_needs_no_table() -> None:
    table = parse(*plain(stsz=make_full_box("stsz", words(9, 4))))
    assert table.size.tolist() == [9] * 4
    assert table.offset.tolist() == [100, 109, 200, 209]


def test_the_sample_entry_of_each_sample_is_kept() -> None:
    stsc = make_full_box("stsc", words(2, 1, 2, 1, 2, 2, 3))
    assert parse(*plain(stsc=stsc)).entry.tolist() == [1, 1, 3, 3]


def test_negative_offsets_are_read_from_version_0_as_well() -> None:
    ctts = make_full_box("ctts", words(2, 3, 5, 1, -7), version=0)
    assert parse(*plain(ctts=ctts)).composition_offset.tolist() == [5, 5, 5, -7]


def test_mp4_chunks_without_samples_are_skipped() -> None:
    stsc = make_full_box("stsc", words(3, 1, 0, 1, 2, 4, 1, 3, 0, 1))
    stco = make_full_box("stco", words(3, 50, 100, 200))
    assert parse(*plain(stsc=stsc, stco=stco)).offset.tolist() == [100, 105, 111, 118]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"stts": b""}, "stbl at byte 0: has no stts box", id="no stts"),
        pytest.param({"stsz": b""}, "has no stsz or stz2 box", id="no stsz"),
        pytest.param({"stsc": b""}, "has no stsc box", id="no stsc"),
        pytest.param({"stco": b""}, "has no stco box", id="no stco"),
        pytest.param(
            {"stts": make_full_box("stts", words(1, 5, 512))},
            "stbl/stts at byte 8: wanted 4 samples, as in stsz, found 5",
            id="stts counts more",
        ),
        pytest.param(
            {"stts": make_full_box("stts", words(2, 0xFFFFFFFF, 1, 0xFFFFFFFF, 1))},
            "found 8589934590",
            id="stts counts absurdly many",
        ),
        pytest.param(
            {"stts": make_full_box("stts", words(1, 4, 1 << 31))},
            "at most 2147483647 ticks, found 2147483648",
            id="endless sample",
        ),
        pytest.param(
            {"ctts": make_full_box("ctts", words(1, 3, 0))}, "ctts .* found 3", id="short ctts"
        ),
        pytest.param(
            {"stsc": make_full_box("stsc", words(1, 1, 3, 1))}, "stsc .* found 6", id="long chunks"
        ),
        pytest.param(
            {"stsc": make_full_box("stsc", words(1, 2, 2, 1))},
            "1 runs do not cover 2 mp4 chunks",
            id="chunks do not start at 1",
        ),
        pytest.param(
            {"stsc": make_full_box("stsc", words(2, 1, 1, 1, 1, 1, 1))},
            "2 runs do not cover 2",
            id="chunks do not rise",
        ),
        pytest.param(
            {"stsc": make_full_box("stsc", words(1, 1, 0xFFFFFFFF, 1))},
            "found 8589934590",
            id="absurd chunks",
        ),
        pytest.param(
            {"stsc": make_full_box("stsc", words(0))}, "0 runs do not cover 2", id="no runs"
        ),
        pytest.param(
            {"stco": make_full_box("stco", words(2, 100, 995))},
            "sample 2 ends at byte 1002, the file has 1000 bytes",
            id="sample behind the end",
        ),
        pytest.param(
            {"stco": make_full_box("stco", words(2, 100, 1001))},
            "mp4 chunk 1 lies outside the file's 1000 bytes",
            id="chunk behind the end",
        ),
        pytest.param(
            {"stco": make_full_box("co64", words(2), struct.pack(">QQ", 100, (1 << 64) - 4))},
            "mp4 chunk 1 lies outside",
            id="chunk above 2**63",
        ),
        pytest.param(
            {"stss": make_full_box("stss", words(0))}, "no sample is a sync sample", id="no sync"
        ),
        pytest.param(
            {"stss": make_full_box("stss", words(2, 1, 5))}, "rising numbers from 1 to 4", id="sync"
        ),
        pytest.param(
            {"stss": make_full_box("stss", words(2, 3, 3))}, "rising numbers", id="sync twice"
        ),
        pytest.param(
            {"stsz": make_full_box("stsz", words(0, 4, 5, 0, 7, 8))},
            "sample 1 has no bytes",
            id="0",
        ),
        pytest.param(
            {"stsz": make_full_box("stz2", words(12, 4), bytes(8))}, "found 12", id="12-bit sizes"
        ),
    ],
)
def test_what_contradicts_itself_is_refused(changes: dict[str, bytes], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        parse(*plain(**changes), file_size=1000)


@pytest.mark.parametrize("count", [MAX_SAMPLES + 1, 0xFFFFFFFF])
@pytest.mark.parametrize("kind", ["stsz", "stz2"])
def test_absurd_counts_take_no_memory(kind: str, count: int) -> None:
    extract, box = stbl(make_full_box(kind, words(8, count)))
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match=f"at most {MAX_SAMPLES} samples, found {count}"):
            parse_sizes(extract, box, file_size=FILE_SIZE)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_file_holds_no_more_samples_than_bytes() -> None:
    extract, box = stbl(make_full_box("stsz", words(1, 1001)))
    with pytest.raises(FormatError, match="at most 1000 samples, found 1001"):
        parse_sizes(extract, box, file_size=1000)


def test_no_samples_are_no_fault_of_the_table() -> None:
    empty = [make_full_box(kind, words(0)) for kind in ("stts", "stsc", "stco")]
    table = parse(*empty, make_full_box("stsz", words(0, 0)))
    assert [len(getattr(table, name)) for name in ("size", "offset", "duration", "entry")] == [
        0
    ] * 4
    assert np.array_equal(table.sync, [])
