"""A nested record becomes dotted flags, and the flags given go over a file's values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from typing import Any, Literal

import pytest
import typer

from lerobot_stream.cli.options import (
    find_renamed,
    merge_values,
    parse_flags,
    takes_settings,
)
from lerobot_stream.cli.setting import list_settings
from lerobot_stream.train.config import TrainConfig


@dataclass(frozen=True)
class Inner:
    """Settings inside."""

    name: str = field(metadata={"help": "What it is called."})
    mode: Literal["a", "b"] = "a"
    episodes: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Outer:
    """Settings outside."""

    inner: Inner
    steps: int = 10
    streaming: bool = False


def given_flags(*arguments: str) -> Mapping[str, str]:
    """What a command with Outer's settings gets."""
    seen: list[Mapping[str, str]] = []
    app = typer.Typer()
    app.command()(takes_settings(Outer)(seen.append))
    app(args=list(arguments), standalone_mode=False)
    return seen[0]


def test_settings_are_named_by_their_place() -> None:
    names = [setting.name for setting in list_settings(Outer)]
    assert names == ["steps", "streaming", "inner.name", "inner.mode", "inner.episodes"]


def test_a_setting_without_a_default_has_none() -> None:
    defaults = {setting.name: setting.default for setting in list_settings(Outer)}
    assert defaults["inner.name"] is MISSING
    assert defaults["steps"] == 10


def test_a_command_gets_only_the_flags_that_were_given() -> None:
    flags = given_flags("--inner.episodes=[0,1]", "--steps", "3")
    assert flags == {"inner.episodes": "[0,1]", "steps": "3"}


def test_flags_become_values_of_their_types() -> None:
    values = parse_flags(Outer, {"inner.episodes": "[0,1]", "steps": "3", "streaming": "true"})
    assert values == {"inner.episodes": (0, 1), "steps": 3, "streaming": True}


def test_a_refused_text_names_its_flag() -> None:
    with pytest.raises(ValueError, match=r"--inner\.mode: wanted a, b, found 'c'"):
        parse_flags(Outer, {"inner.mode": "c"})


def test_flags_go_over_the_files_values() -> None:
    defaults = {"steps": 5, "inner": {"name": "x", "mode": "a"}}
    merged = merge_values(Outer, {"inner.mode": "b"}, defaults)
    assert merged == {"steps": 5, "inner": {"name": "x", "mode": "b"}}


def test_merging_leaves_the_files_values_alone() -> None:
    defaults: dict[str, Any] = {"inner": {"name": "x"}}
    merge_values(Outer, {"inner.mode": "b"}, defaults)
    assert defaults == {"inner": {"name": "x"}}


def test_a_missing_setting_is_named_as_a_flag() -> None:
    with pytest.raises(ValueError, match=r"--inner\.name must be given"):
        merge_values(Outer, {"steps": 1}, {})


@pytest.mark.parametrize(
    ("argument", "advice"),
    [
        ("--dataset.buffer_size=1000", "--dataset.streaming_episode_pool_size"),
        ("--dataset.streaming_buffer_size", "--dataset.streaming_episode_pool_size"),
        ("--dataset.streaming_data_root=/x", "--dataset.root"),
        ("--dataset.streaming_max_open_decoders=4", "--dataset.video_decoder_cache_size"),
        ("--dataset.streaming_encoding=true", "recording"),
        ("--dataset.video_backend=pyav", "torchcodec"),
        ("--policy.push_to_hub=false", "uploads nothing"),
    ],
)
def test_a_flag_of_an_earlier_day_gets_todays(argument: str, advice: str) -> None:
    found = find_renamed(["--steps=1", argument])
    assert found is not None
    assert found[0] == argument.split("=")[0]
    assert advice in found[1]


def test_no_setting_of_today_counts_as_renamed() -> None:
    names = [f"--{setting.name}=1" for setting in list_settings(TrainConfig)]
    assert find_renamed(names) is None


def test_every_setting_of_train_says_what_it_means() -> None:
    assert [setting.name for setting in list_settings(TrainConfig) if not setting.help] == []
