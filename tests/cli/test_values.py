"""Texts of flags become values of the setting's type, or are refused with what was wanted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lerobot_stream.cli.values import describe, from_json, parse_value


@pytest.mark.parametrize(
    ("text", "annotation", "value"),
    [
        pytest.param("true", bool, True, id="true"),
        pytest.param("False", bool, False, id="false as Python writes it"),
        pytest.param("7", int, 7, id="whole number"),
        pytest.param("1e-4", float, 1e-4, id="number"),
        pytest.param("7", int | None, 7, id="optional number"),
        pytest.param("null", int | None, None, id="null"),
        pytest.param("null", str | None, None, id="null of an optional text"),
        pytest.param("null", str, "null", id="null as a text"),
        pytest.param("3", str, "3", id="digits as a text"),
        pytest.param("clip", Literal["clip", "remaining"], "clip", id="choice"),
        pytest.param("[0, 1]", tuple[int, ...], (0, 1), id="list"),
        pytest.param("[]", tuple[int, ...] | None, (), id="empty list"),
        pytest.param("[0.9, 1]", tuple[float, float], (0.9, 1.0), id="pair"),
        pytest.param('["a"]', list[str], ["a"], id="list of texts"),
        pytest.param('{"a": "b"}', Mapping[str, str], {"a": "b"}, id="object"),
        pytest.param('{"a": {"b": 1}}', Mapping[str, Any], {"a": {"b": 1}}, id="nested object"),
    ],
)
def test_a_text_is_read_as_the_type(text: str, annotation: object, value: object) -> None:
    found = parse_value(text, annotation)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "annotation", "message"),
    [
        pytest.param("yes", bool, "wanted true or false, found 'yes'", id="bool"),
        pytest.param("1", bool, "wanted true or false", id="bool as number"),
        pytest.param("1.5", int, "wanted a whole number, found '1.5'", id="int"),
        pytest.param("null", int, "wanted a whole number, found 'null'", id="null"),
        pytest.param("x", float | None, "wanted a number or null", id="float"),
        pytest.param("x", Literal["a", "b"], "wanted a, b, found 'x'", id="choice"),
        pytest.param("[0,", tuple[int, ...], "wanted a list like [0,1]", id="broken list"),
        pytest.param("0,1", tuple[int, ...], "wanted a list like [0,1]", id="bare list"),
        pytest.param("a=1", dict[str, int], "wanted a JSON object", id="no object"),
        pytest.param("0", tuple[int, ...], "wanted a list", id="no list"),
        pytest.param("[true]", tuple[int, ...], "wanted a whole number, found true", id="element"),
        pytest.param("[1]", tuple[float, float], "wanted a list of 2, found 1", id="pair"),
        pytest.param("@nowhere.json", tuple[int, ...], "nowhere.json cannot be read", id="file"),
    ],
)
def test_another_types_text_is_refused(text: str, annotation: object, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        parse_value(text, annotation)


def test_a_list_can_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "episodes.json"
    file.write_text("[3, 1]")
    assert parse_value(f"@{file}", tuple[int, ...] | None) == (3, 1)


def test_a_file_that_is_not_json_is_named(tmp_path: Path) -> None:
    file = tmp_path / "episodes.json"
    file.write_text("3 1")
    with pytest.raises(ValueError, match=r"episodes\.json is not JSON"):
        parse_value(f"@{file}", tuple[int, ...])


@given(st.lists(st.integers()))
def test_written_lists_are_read_back(values: list[int]) -> None:
    assert parse_value(json.dumps(values), tuple[int, ...]) == tuple(values)


def test_json_whole_numbers_are_numbers() -> None:
    assert from_json(3, float) == 3.0


def test_optional_types_are_named_with_null() -> None:
    assert describe(int | None) == "a whole number or null"
