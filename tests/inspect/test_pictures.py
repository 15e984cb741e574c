"""Single pictures are the right ones, out of no more than the GOPs that hold them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from lerobot_stream.errors import DecodeError
from lerobot_stream.inspect.checks.pictures import judge
from lerobot_stream.inspect.pictures import Pictures
from lerobot_stream.inspect.spread import spread
from lerobot_stream.inspect.summary import Summary, inspect_dataset
from lerobot_stream.mp4.select import byte_span, present
from lerobot_stream.source.local import LocalSource
from lerobot_stream.span import Span
from tests.lerobot import Camera, number_of, write_dataset
from tests.media import encode, read_number
from tests.recordings import LENGTHS, TOP, WRIST, WRITERS, record

LEFT = "observation.images.left"
BY_COUNT = ("h264-g2", "h264-g30-b-open", "h264-g250", "av1-g30", "edit-list-trim")


class Counting(LocalSource):
    """Notes what is read of videos."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, repo_id="a/b")
        self.spans: list[tuple[str, Span]] = []

    def read(self, path: str, span: Span) -> bytes:
        if path.endswith(".mp4"):
            self.spans.append((path, span))
        return super().read(path, span)


def open_pictures(root: Path, **options: int) -> tuple[Counting, Summary, Pictures]:
    source = Counting(root)
    summary = inspect_dataset(source)
    assert summary.rows is not None
    assert summary.videos is not None
    pictures = Pictures(
        source, summary.info, summary.table, summary.rows, summary.videos, **options
    )
    source.spans.clear()
    return source, summary, pictures


@pytest.mark.parametrize("name", BY_COUNT)
def test_every_picture_is_that_of_its_frame(tmp_path: Path, name: str) -> None:
    written = record(tmp_path / "set", WRITERS[name])
    _, _, pictures = open_pictures(written.root)
    for number, (start, length) in enumerate(zip(written.starts, LENGTHS, strict=True)):
        frames = spread(length, 3)
        for key in (TOP, WRIST):
            shown = [read_number(picture) for picture in pictures.frames(number, key, frames)]
            assert shown == (start + frames).tolist()


@pytest.mark.parametrize("name", ["h264-g2", "h264-g30-b-open", "av1-g30"])
def test_three_pictures_take_at_most_three_gops(tmp_path: Path, name: str) -> None:
    written = record(tmp_path / "set", WRITERS[name])
    source, summary, pictures = open_pictures(written.root)
    assert summary.videos is not None
    assert summary.videos.sidecar is not None
    for number, length in enumerate(LENGTHS):
        source.spans.clear()
        pictures.frames(number, TOP, spread(length, 3))
        assert 1 <= len(source.spans) <= 3
        index = summary.videos.sidecar.index(source.spans[0][0])
        borders = [*present(index).gop.tolist(), len(index)]
        gops = [byte_span(index, *border) for border in pairwise(borders)]
        read = [span for _, span in source.spans]
        touched = [g for g in gops if any(s.start < g.stop and g.start < s.stop for s in read)]
        assert len(touched) <= 3


def test_fifty_episodes_fetch_at_most_three_gops_each(tmp_path: Path) -> None:
    lengths = np.random.default_rng(0).integers(20, 60, 50).tolist()
    cameras = {TOP: Camera(lambda path, numbers: encode(path, numbers, gop=10), 7, width=96)}
    written = write_dataset(tmp_path / "set", lengths=lengths, cameras=cameras)
    source, summary, pictures = open_pictures(written.root)
    assert summary.videos is not None
    for number, length in enumerate(lengths):
        assert pictures.has(number, TOP)
        pictures.frames(number, TOP, spread(length, 3))
    assert len(source.spans) <= 3 * 50
    read = sum(len(span) for _, span in source.spans)
    assert read < 0.75 * int(summary.videos.spans.bytes_of_episode().sum())


def test_pictures_inside_rows_are_found(tmp_path: Path) -> None:
    written = write_dataset(
        tmp_path / "set", lengths=[5, 3, 4], image_cameras={LEFT: (16, 24)}, row_group=4
    )
    _, _, pictures = open_pictures(written.root)
    shown = pictures.frames(1, LEFT, np.array([0, 2]))
    assert [number_of(picture) for picture in shown] == [5, 7]
    assert shown[0].shape == (16, 24, 3)
    with pytest.raises(DecodeError, match=f"episode 2, {LEFT}: there is no row of frame 9"):
        pictures.frames(2, LEFT, np.array([9]))


def test_row_groups_that_are_too_large_are_not_asked_for(tmp_path: Path) -> None:
    written = write_dataset(tmp_path / "set", lengths=[5, 3], image_cameras={LEFT: (16, 24)})
    _, _, pictures = open_pictures(written.root, max_row_bytes=100)
    assert not pictures.has(0, LEFT)


def test_what_cannot_be_placed_has_no_pictures(tmp_path: Path) -> None:
    written = record(tmp_path / "set", WRITERS["h264-g2"], lengths=[4, 3, 5, 2])
    (written.root / written.video_paths[TOP][2]).write_bytes(b"")
    _, _, pictures = open_pictures(written.root)
    assert [pictures.has(number, TOP) for number in range(4)] == [True, True, False, False]
    assert all(pictures.has(number, WRIST) for number in range(4))


# frozen and black cameras


def noise(seed: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(60, 200, (48, 64, 3), np.uint8)


def test_moving_pictures_are_neither_black_nor_frozen() -> None:
    look = judge([noise(i) for i in range(12)], np.arange(12) * 10)
    assert (look.black, look.frozen) == (None, None)


def test_a_long_run_of_one_picture_is_frozen() -> None:
    shown = [noise(i) for i in range(4)] + [noise(9)] * 6 + [noise(10), noise(11)]
    assert judge(shown, np.arange(12) * 10).frozen == (40, 90)


def test_a_short_pause_is_not_frozen() -> None:
    shown = [noise(i) for i in range(8)] + [noise(9)] * 4
    assert judge(shown, np.arange(12) * 10).frozen is None


def test_black_is_black_and_not_frozen() -> None:
    shown = [np.full((48, 64, 3), 3, np.uint8)] * 12
    look = judge(shown, np.arange(12))
    assert (look.black, look.frozen) == ((0, 11), None)


def stuck(path: Path, numbers: Sequence[int]) -> None:
    encode(path, [numbers[0] + 40000] * 30 + list(numbers[30:]))


def black(path: Path, numbers: Sequence[int]) -> None:
    encode(path, [0] * len(numbers))


@pytest.mark.parametrize(("write", "kind"), [(stuck, "pictures-frozen"), (black, "pictures-black")])
def test_deep_inspection_finds_the_camera(
    tmp_path: Path, write: Callable[[Path, Sequence[int]], None], kind: str
) -> None:
    cameras = {
        TOP: Camera(write, width=96),
        WRIST: Camera(lambda path, numbers: encode(path, [n + 1 for n in numbers]), width=96),
    }
    written = write_dataset(tmp_path / "set", lengths=[40, 40], cameras=cameras)
    summary = inspect_dataset(LocalSource(written.root, repo_id="a/b"), cost="deep")
    found = [finding for finding in summary.findings if finding.severity != "info"]
    assert {(finding.kind.name, finding.video_key) for finding in found} == {(kind, TOP)}
    assert found[0].episode == 0


def test_deep_inspection_finds_pictures_that_cannot_be_decoded(tmp_path: Path) -> None:
    written = record(tmp_path / "set", WRITERS["av1-g2"], lengths=[6, 6])
    path = written.root / written.video_paths[WRIST][0]
    data = bytearray(path.read_bytes())
    start = data.index(b"mdat") + 4
    data[start : start + 400] = b"\x00" * 400
    path.write_bytes(data)
    summary = inspect_dataset(LocalSource(written.root, repo_id="a/b"), cost="deep")
    errors = [finding for finding in summary.findings if finding.severity == "error"]
    assert {(f.kind.name, f.video_key) for f in errors} == {("pictures-damaged", WRIST)}
    assert errors[0].episode == 0
