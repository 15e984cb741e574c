from __future__ import annotations

import inspect
import pickle

import pytest

from lerobot_stream import errors
from lerobot_stream.errors import FormatError, StreamError

TREE = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, StreamError)
]


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ({}, "size 9 does not fit"),
        ({"path": "a.mp4"}, "a.mp4: size 9 does not fit"),
        ({"where": "box at byte 8"}, "box at byte 8: size 9 does not fit"),
        ({"path": "a.mp4", "where": "box at byte 8"}, "a.mp4: box at byte 8: size 9 does not fit"),
    ],
)
def test_the_place_comes_before_the_message(place: dict[str, str], text: str) -> None:
    assert str(FormatError("size 9 does not fit", **place)) == text


def test_the_hint_is_kept_out_of_the_text() -> None:
    error = FormatError("is torn", path="a.mp4", hint="fetch it again")
    assert error.hint == "fetch it again"
    assert "fetch" not in str(error)


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_an_error_crosses_a_process_border_whole(kind: type[StreamError]) -> None:
    error = kind("wanted 3, found 2", path="a", where="b", hint="c")
    error.add_note("in episode 3, observation.images.top")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == str(error)
    assert (copy.message, copy.path, copy.where, copy.hint) == ("wanted 3, found 2", "a", "b", "c")
    assert copy.__notes__ == ["in episode 3, observation.images.top"]


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_every_error_is_caught_as_a_stream_error_and_as_no_caller_mistake(
    kind: type[StreamError],
) -> None:
    assert issubclass(kind, StreamError)
    assert not issubclass(kind, (ValueError, TypeError, KeyError, OSError))
