from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path

import pytest

from lerobot_stream.train.policies.act_setup import make_act
from lerobot_stream.train.policies.registry import GROUP, find_factory


def test_act_is_built_in() -> None:
    assert find_factory("act") is make_act


def test_a_package_registers_its_own_by_an_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nmine = my_package:make_mine\n")
    (tmp_path / "my_package.py").write_text(
        "def make_mine(request):\n    raise ValueError(f'made from {request}')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ValueError, match="made from this"):
        find_factory("mine")("this")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="there are act, mine"):
        find_factory("other")


@pytest.mark.skipif(
    importlib.util.find_spec("lerobot") is not None, reason="LeRobot is installed here"
)
def test_an_unknown_type_lists_what_there_is_and_how_to_get_the_rest() -> None:
    assert not importlib.metadata.entry_points(group=GROUP)
    with pytest.raises(
        ValueError,
        match=r"--policy\.type=diffusion is unknown; there are act; LeRobot's own are there where "
        r"the package lerobot is installed",
    ):
        find_factory("diffusion")
