"""The sample table of a file equals FFmpeg's and LeRobot's, or is refused by name."""

from __future__ import annotations

import json
import logging
import tracemalloc
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torchcodec.decoders import VideoDecoder

from lerobot_stream.errors import FormatError
from lerobot_stream.mp4.index import Mp4Index
from lerobot_stream.mp4.mux import mini_mp4_sizes
from lerobot_stream.mp4.select import present, select_samples
from tests.box_tree import Node, change, full
from tests.clips import ALL, FFMPEG, NUMBERS, FileBytes, make_clip
from tests.media import encode, ffmpeg, needs_ffmpeg, read_number, read_numbers

SHARED = Path(__file__).parents[2] / "../shared"
NAMES = [pytest.param(name, marks=needs_ffmpeg if name in FFMPEG else ()) for name in ALL]
STBL = "trak/mdia/minf/stbl"


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("clips")

    def make(name: str) -> Path:
        path = folder / f"{name}.mp4"
        if not path.exists():
            make_clip(name, path)
        return path

    return make


def index_of(path: Path) -> Mp4Index:
    return FileBytes(path.read_bytes()).index()


def assert_like_ffmpeg(path: Path, index: Mp4Index, *, edited: bool) -> None:
    """Compare every packet that FFmpeg's demuxer gives with the sample at its place."""
    number = {offset: i for i, offset in enumerate(index.offset.tolist())}
    sync = set(index.sync.tolist())
    cts = np.cumsum(index.duration) - index.duration + index.composition_offset
    seen: set[int] = set()
    options = {} if edited else {"ignore_editlist": "1"}
    with av.open(str(path), options=options) as container:
        for packet in container.demux(video=0):
            if not packet.size:
                continue
            i = number[packet.pos]
            seen.add(i)
            assert packet.size == index.size[i]
            assert packet.is_keyframe == (i in sync)
            assert packet.pts is not None
            assert packet.time_base == Fraction(1, index.movie.timescale)
            if edited:
                assert packet.pts / index.movie.timescale == index.pts_s[i]
            else:
                assert packet.pts == cts[i]
    if edited:  # FFmpeg leaves out what nothing presented needs
        assert (index.pts_s[sorted(set(number.values()) - seen)] < 0).all()
    else:
        assert seen == set(range(len(index)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("edited", [True, False])
def test_every_sample_is_as_ffmpeg_demuxes_it(
    name: str, edited: bool, clip: Callable[[str], Path]
) -> None:
    assert_like_ffmpeg(clip(name), index_of(clip(name)), edited=edited)


@pytest.mark.parametrize("name", NAMES)
def test_as_many_frames_are_presented_as_ffmpeg_decodes(
    name: str, clip: Callable[[str], Path]
) -> None:
    path = clip(name)
    assert len(present(index_of(path)).order) == len(read_numbers(path))


def to_co64(moov: Node) -> None:
    stco = moov[f"{STBL}/stco"]
    wide = b"".join(bytes(4) + stco.body[at : at + 4] for at in range(8, len(stco.body), 4))
    moov.replace(f"{STBL}/stco", Node(b"co64", stco.body[:8] + wide))


def to_stz2(moov: Node) -> None:
    body = moov[f"{STBL}/stsz"].body
    short = b"".join(body[at + 2 : at + 4] for at in range(12, len(body), 4))
    moov.replace(f"{STBL}/stsz", Node(b"stz2", bytes(4) + (16).to_bytes(4) + body[8:12] + short))


def to_version_1(moov: Node) -> None:
    """Widen the times of every header, and the edits, to 64 bits."""
    # words: created, changed, then one or two narrow ones, then the duration
    for path, narrow in (("mvhd", 1), ("trak/tkhd", 2), ("trak/mdia/mdhd", 1)):
        body = moov[path].body
        duration = 12 + 4 * narrow
        moov[path].body = b"\1" + body[1:4] + bytes(4) + body[4:8] + bytes(4) + body[8:duration]
        moov[path].body += bytes(4) + body[duration:]
    body = moov["trak/edts/elst"].body
    media_time = int.from_bytes(body[12:16], signed=True).to_bytes(8, signed=True)
    edit = bytes(4) + body[8:12] + media_time + body[16:20]
    moov["trak/edts/elst"].body = b"\1" + body[1:8] + edit


@pytest.mark.parametrize("edit", [to_co64, to_stz2, to_version_1])
@pytest.mark.parametrize("name", ["h264-open", "av1-g2", "h264-negative-ctts"])
def test_the_same_table_in_other_boxes_is_the_same_index(
    name: str, edit: Callable[[Node], None], clip: Callable[[str], Path], tmp_path: Path
) -> None:
    original = index_of(clip(name))
    path = tmp_path / "changed.mp4"
    path.write_bytes(change(clip(name).read_bytes(), edit))
    changed = index_of(path)
    for column in ("pts_s", "duration", "composition_offset", "size", "offset", "sync"):
        assert np.array_equal(getattr(changed, column), getattr(original, column)), column
    assert changed.movie.stsd_body == original.movie.stsd_body
    assert (changed.movie.timescale, changed.movie.duration, changed.movie.track_id) == (
        original.movie.timescale,
        original.movie.duration,
        original.movie.track_id,
    )
    assert_like_ffmpeg(path, changed, edited=True)


def shared_videos() -> Iterator[tuple[int, dict[str, object], Path]]:
    for archive in (SHARED / "interop").glob("mp4-v3-*.npz"):
        with np.load(archive) as arrays:
            manifest = json.loads(arrays["manifest_json"][()])
        for i, file in enumerate(manifest["files"]):
            yield i, file["mp4"], SHARED / "data/g1_inspire" / file["file_path"]


@pytest.mark.skipif(not SHARED.exists(), reason="needs the shared recordings")
def test_a_real_recording_is_indexed_as_lerobot_does() -> None:
    videos = list(shared_videos())
    assert len(videos) == 3
    (archive,) = (SHARED / "interop").glob("mp4-v3-*.npz")
    with np.load(archive) as arrays:
        for i, record, path in videos:
            index = index_of(path)
            for ours, theirs in (
                (index.pts_s, "sample_pts"),
                (index.duration, "sample_durations"),
                (index.composition_offset, "sample_composition_offsets"),
                (index.size, "sample_sizes"),
                (index.offset, "sample_offsets"),
                (index.sync, "sync_samples"),
            ):
                wanted = arrays[f"{i}/{theirs}"]
                assert ours.dtype == wanted.dtype
                assert ours.tobytes() == wanted.tobytes(), theirs
            for name, value in record.items():
                if name == "file_path":
                    continue
                found = getattr(index.movie, name)
                assert (found.hex() if isinstance(found, bytes) else found) == value, name


def without(path: str) -> Callable[[Node], None]:
    """Take a box out of the movie."""
    return lambda moov: moov.replace(path)


def instead(path: str, *words: int) -> Callable[[Node], None]:
    """Put a box of these words in the place of another of its kind."""
    return lambda moov: moov.replace(path, full(path.rpartition("/")[2], *words))


def added(kind: str) -> Callable[[Node], None]:
    """Put a box into the movie."""
    return lambda moov: moov.children.append(full(kind))


def turn(path: str, at: int) -> Callable[[Node], None]:
    """Write a quarter turn into a matrix."""
    quarter = b"".join(
        value.to_bytes(4, signed=True) for value in (0, 1 << 16, 0, -(1 << 16), 0, 0, 0, 0, 1 << 30)
    )

    def edit(moov: Node) -> None:
        body = moov[path].body
        moov[path].body = body[:at] + quarter + body[at + 36 :]

    return edit


def two_entries(moov: Node) -> None:
    """Say that the second half of the samples uses a second, equal sample entry."""
    stsd, stsc = moov[f"{STBL}/stsd"], moov[f"{STBL}/stsc"]
    stsd.body = stsd.body[:4] + (2).to_bytes(4) + stsd.body[8:] * 2
    stsc.body = stsc.body[:-4] + (2).to_bytes(4)


def encrypt(moov: Node) -> None:
    stsd = moov[f"{STBL}/stsd"]
    stsd.body = stsd.body[:12] + b"encv" + stsd.body[16:]


def no_pixels(moov: Node) -> None:
    stsd = moov[f"{STBL}/stsd"]
    stsd.body = stsd.body[:40] + bytes(4) + stsd.body[44:]


def sound_only(moov: Node) -> None:
    hdlr = moov["trak/mdia/hdlr"]
    hdlr.body = hdlr.body[:8] + b"soun" + hdlr.body[12:]


def no_samples(moov: Node) -> None:
    for kind, words in (("stts", [0]), ("stsc", [0]), ("stco", [0]), ("stsz", [0, 0])):
        moov.replace(f"{STBL}/{kind}", full(kind, *words))
    moov[STBL].children[:] = [
        box for box in moov[STBL].children if box.kind not in (b"stss", b"ctts")
    ]


def edits(*rows: tuple[int, int, int]) -> Callable[[Node], None]:
    words = [len(rows), *(word for row in rows for word in row)]
    return lambda moov: moov.replace("trak/edts/elst", full("elst", *words))


RATE = 1 << 16


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        pytest.param(added("mvex"), r"moov at byte \d+: the file is fragmented", id="mvex"),
        pytest.param(added("cmov"), "compressed", id="cmov"),
        pytest.param(encrypt, r"stsd/encv at byte \d+: the video is encrypted", id="encrypted"),
        pytest.param(turn("trak/tkhd", 40), r"trak\[0\]/tkhd .* turns or mirrors", id="turned"),
        pytest.param(turn("mvhd", 36), "moov/mvhd .* turns or mirrors", id="movie turned"),
        pytest.param(two_entries, r"use the sample entries \[2\] of 2", id="two entries"),
        pytest.param(no_pixels, "found 0x0 pixels", id="no pixels"),
        pytest.param(sound_only, r"moov at byte \d+: has no video track", id="no video"),
        pytest.param(no_samples, r"moov/trak\[0\] .*: the video track has no samples", id="empty"),
        pytest.param(without("mvhd"), "moov .*: has no mvhd box", id="no mvhd"),
        pytest.param(without("trak/tkhd"), r"trak\[0\] .*: has no tkhd box", id="no tkhd"),
        pytest.param(without("trak/mdia/mdhd"), "has no mdhd box", id="no mdhd"),
        pytest.param(without(f"{STBL}/stsd"), "has no stsd box", id="no stsd"),
        pytest.param(without(f"{STBL}/stts"), "has no stts box", id="no stts"),
        pytest.param(instead(f"{STBL}/stsd", 0), "stsd .*: has no sample entry", id="no entry"),
        pytest.param(instead("trak/mdia/mdhd", 0, 0, 0, 1, 0), "mdhd .* found 0", id="no ticks"),
        pytest.param(edits((3000, 0, RATE)), "elst: cuts the tail", id="cut tail"),
        pytest.param(edits((3000, 0, RATE), (3000, 30720, RATE)), "one media edit", id="repeated"),
        pytest.param(edits((6000, 0, 0)), "a dwell on one picture", id="dwell"),
        pytest.param(edits((6000, 0, 2 * RATE)), r"rate 2\.0", id="fast"),
        pytest.param(
            edits((100, -1, RATE), (4000, 20480, RATE)),
            r"cuts 2\.000 s from the front, behind an empty edit",
            id="front behind empty",
        ),
    ],
)
def test_what_a_sidecar_cannot_hold_is_refused_by_name(
    edit: Callable[[Node], None], message: str, clip: Callable[[str], Path]
) -> None:
    data = change(clip("av1-g2").read_bytes(), edit)
    with pytest.raises(FormatError, match=f"^clip.mp4: .*{message}"):
        FileBytes(data).index()


def test_an_edit_that_ffmpeg_lets_cut_one_frame_is_refused(
    clip: Callable[[str], Path], tmp_path: Path
) -> None:
    path = tmp_path / "cut.mp4"
    path.write_bytes(change(clip("h264-g250").read_bytes(), edits((5900, 0, RATE))))
    assert read_numbers(path) == list(NUMBERS[:59])
    with pytest.raises(FormatError, match="cuts the tail"):
        index_of(path)


def test_an_empty_edit_delays_every_frame(clip: Callable[[str], Path], tmp_path: Path) -> None:
    path = tmp_path / "late.mp4"
    path.write_bytes(change(clip("av1-g2").read_bytes(), edits((250, -1, RATE), (6000, 0, RATE))))
    index = index_of(path)
    assert index.pts_s.tolist() == (index_of(clip("av1-g2")).pts_s + 0.25).tolist()
    assert_like_ffmpeg(path, index, edited=True)


@needs_ffmpeg
@pytest.mark.parametrize(
    ("first_gop", "second_gop", "options"),
    [
        pytest.param(250, 1, (), id="more bits second"),
        pytest.param(1, 250, (), id="more bits first"),
        pytest.param(
            1,
            250,
            ("-disposition:v:0", "0", "-disposition:v:1", "default"),
            id="only second enabled",
        ),
    ],
)
def test_of_two_tracks_the_one_torchcodec_plays_is_used(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    first_gop: int,
    second_gop: int,
    options: tuple[str, ...],
) -> None:
    first, second, both = (tmp_path / f"{name}.mp4" for name in ("first", "second", "both"))
    encode(first, range(1, 21), gop=first_gop)
    encode(second, range(1001, 1021), gop=second_gop)
    ffmpeg("-i", first, "-i", second, "-map", "0", "-map", "1", "-c", "copy", *options, both)
    with caplog.at_level(logging.WARNING):
        index = index_of(both)
    frame = VideoDecoder(str(both), dimension_order="NHWC").get_frame_at(0).data
    played = second if read_number(frame.numpy()) > 1000 else first
    assert index.size.tolist() == index_of(played).size.tolist()
    assert f"has 2 video tracks; track {index.movie.track_id} is used" in caplog.text


FUZZED = ("h264-open", "h264-faststart-audio", "av1-g2", "hevc-closed")


@pytest.mark.parametrize("name", FUZZED)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_ends_in_a_format_error_or_a_sound_index(
    name: str, clip: Callable[[str], Path], data: st.DataObject
) -> None:
    original = clip(name).read_bytes()
    movie = original.index(b"moov") - 4
    size = int.from_bytes(original[movie : movie + 4])
    at = st.one_of(st.integers(movie, movie + size - 1), st.integers(0, len(original) - 1))
    damaged = bytearray(original)
    for place in data.draw(st.lists(at, max_size=4)):
        damaged[place] = data.draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF, 0x61]))
    keep = data.draw(st.one_of(st.just(len(damaged)), st.integers(0, len(damaged))))
    tracemalloc.start()
    try:
        index = FileBytes(bytes(damaged[:keep])).index()
    except FormatError:
        return
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 4 << 20
    assert (index.offset >= 0).all()
    assert (index.offset + index.size <= keep).all()
    presentation = present(index)
    frames = np.arange(len(presentation.order))
    start, stop = select_samples(index, presentation, frames, np.ones_like(frames))
    known = start >= 0
    assert (stop[known] > presentation.order[known]).all()
    assert (mini_mp4_sizes(index, start, stop)[known] > 0).all()
