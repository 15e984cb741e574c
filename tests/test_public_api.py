"""The package's public names, and that they cost nothing before they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import lerobot_stream

NAMES = [name for name in lerobot_stream.__all__ if name != "__version__"]


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_there_and_described(name: str) -> None:
    thing = getattr(lerobot_stream, name)
    assert thing.__name__ == name
    assert thing.__doc__


def test_public_names_are_listed() -> None:
    assert dir(lerobot_stream) == sorted(lerobot_stream.__all__)


def test_every_error_of_the_tree_is_public() -> None:
    found, todo = set(), [lerobot_stream.StreamError]
    while todo:
        error = todo.pop()
        found.add(error.__name__)
        todo += [e for e in error.__subclasses__() if e.__module__ == error.__module__]
    assert found <= set(NAMES)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = lerobot_stream.Nothing


def test_importing_the_package_imports_no_torch() -> None:
    code = "import sys, lerobot_stream as l; l.StreamError; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "False\n"
