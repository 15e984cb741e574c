"""A decoder shows the wanted frames or says what is wrong, and counts what it goes through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from lerobot_stream.errors import DecodeError
from lerobot_stream.stream import decode
from lerobot_stream.stream.config import ReadConfig
from lerobot_stream.stream.decode import MiniDecoder
from lerobot_stream.stream.decode_run import load_decode_run
from lerobot_stream.stream.episode import EpisodeReader
from lerobot_stream.stream.opened import open_dataset
from lerobot_stream.stream.visit import Visit
from tests.lerobot import Camera, write_dataset
from tests.media import encode, read_number

TOP, LENGTH = "observation.images.top", 40


@pytest.fixture(scope="module")
def decoders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MiniDecoder]:
    """Yield fresh decoders on one episode with a key frame at every tenth frame."""
    root = tmp_path_factory.mktemp("decode") / "set"
    camera = Camera(lambda path, numbers: encode(path, numbers, gop=10), width=96)
    write_dataset(root, lengths=[LENGTH], cameras={TOP: camera})
    data = EpisodeReader(open_dataset(ReadConfig("a/b", root=root))).read(
        Visit((0, 0), 0, 0, LENGTH, 0)
    )
    camera_data = data.cameras[TOP]

    def fresh() -> Iterator[MiniDecoder]:
        while True:
            yield MiniDecoder(camera_data.mini, rank=camera_data.rank, place="here")

    return fresh()


@pytest.mark.parametrize(
    ("calls", "decoded"),
    [
        pytest.param([range(LENGTH)], LENGTH, id="front to back"),
        pytest.param([range(8), range(8, 13), range(13, LENGTH)], LENGTH, id="in pieces"),
        pytest.param([[5]], 6, id="inside a GOP"),
        pytest.param([[5], [7]], 6 + 2, id="onwards in the GOP"),
        pytest.param([[5], [23]], 6 + 4, id="onwards to another GOP"),
        pytest.param([[9], [10]], 10 + 1, id="onwards by one"),
        pytest.param([[5], [3]], 6 + 4, id="backwards"),
        pytest.param([[0, 2, 4, 15, 19]], 5 + 10, id="with gaps"),
    ],
)
def test_pictures_before_the_wanted_ones_are_counted(
    decoders: Iterator[MiniDecoder], calls: list[list[int]], decoded: int
) -> None:
    decoder = next(decoders)
    for numbers in calls:
        for _ in decoder.frames(numbers):
            pass
    assert decoder.decoded == decoded


def test_each_picture_is_the_wanted_one(decoders: Iterator[MiniDecoder]) -> None:
    decoder = next(decoders)
    for numbers in ([0, 1, 2], [7, 12, 13], range(20, LENGTH), [3]):
        shown = [(number, read_number(picture)) for number, picture in decoder.frames(numbers)]
        assert shown == [(number, number) for number in numbers]


def _fails(*_: Any) -> Any:
    raise RuntimeError("no")


@pytest.fixture(params=["without the interpreter", "picture by picture", "at the second try"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way in which frames are written."""
    name: str = request.param
    if name != "without the interpreter":
        run = None if name == "picture by picture" else _fails
        monkeypatch.setattr(decode, "load_decode_run", lambda: run)
    return name


def test_the_versions_that_are_tested_decode_without_the_interpreter() -> None:
    assert load_decode_run() is not None


def test_frames_are_written_to_every_cell_and_those_asked_for_are_kept(
    decoders: Iterator[MiniDecoder], way: str
) -> None:
    decoder, written = next(decoders), torch.zeros(2, 50, 64, 96, 3, dtype=torch.uint8)
    for numbers in ([7, 12, 13], [14], [2, 3]):
        cells = {n: [(written[0], n), (written[1], 49 - n)] for n in reversed(numbers)}
        kept = decoder.write(cells, keep_from=numbers[-1])
        assert [(n, read_number(picture)) for n, picture in kept.items()] == [(numbers[-1],) * 2]
    filled = [n for n in range(50) if written[0, n].any()]
    assert filled == [2, 3, 7, 12, 13, 14], way
    assert [read_number(written[0, n].numpy()) for n in filled] == filled
    assert [read_number(written[1, 49 - n].numpy()) for n in filled] == filled
    assert int(written[1].any(dim=(1, 2, 3)).sum()) == len(filled)
    assert decoder.decoded == 8 + 4 + 1 + 4
    assert (decoder._run is not None) == (way == "without the interpreter")


def test_a_picture_of_another_time_is_never_written_silently(
    decoders: Iterator[MiniDecoder], way: str
) -> None:
    decoder = next(decoders)
    decoder._pts[6] += 1000
    pictures = torch.zeros(8, 64, 96, 3, dtype=torch.uint8)
    with pytest.raises(DecodeError, match=r"frame 6 .* decoded as another picture"):
        decoder.write({n: [(pictures, n)] for n in range(8)}, keep_from=8)


def test_a_picture_of_another_shape_is_told(decoders: Iterator[MiniDecoder], way: str) -> None:
    narrow = torch.zeros(8, 64, 48, 3, dtype=torch.uint8)
    with pytest.raises(DecodeError, match=r"96x64 with 3 channels, other files .* 48x64 with 3"):
        next(decoders).write({5: [(narrow, 0)]}, keep_from=8)
    assert not narrow.any()
