"""From the text of a flag, or a value of a JSON file, to the type that a setting asks for."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

_PLAIN: dict[object, str] = {bool: "true or false", int: "a whole number", float: "a number"}
_SEQUENCES = (list, tuple, Sequence)
_MAPPINGS = (dict, Mapping)


def describe(annotation: object) -> str:
    """Name the values that a type takes, as a person writes them.

    Args:
        annotation: The type of a setting.

    Returns:
        For example ``whole number or null``.
    """
    if annotation is None or annotation is types.NoneType:
        return "null"
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return " or ".join(describe(argument) for argument in arguments)
    if origin is Literal:
        return ", ".join(_written(choice) for choice in arguments)
    if _is_a(annotation, _SEQUENCES):
        return "a list like [0,1], or @file.json"
    if _is_a(annotation, _MAPPINGS):
        return "a JSON object, or @file.json"
    return _PLAIN.get(annotation, "text")


def parse_value(text: str, annotation: object) -> object:
    """Read the text of a flag.

    Args:
        text: ``true``, ``false``, ``null``, a number, text, JSON, or ``@file.json`` for a list
            or an object.
        annotation: The type of the setting.

    Returns:
        The value, of that type.

    Raises:
        ValueError: It is another type's text, or the file cannot be read as JSON.
    """
    members = _members(annotation)
    if text == "null" and types.NoneType in members:
        return None
    if any(_is_a(member, (*_SEQUENCES, *_MAPPINGS)) for member in members):
        return from_json(_json(text, annotation), annotation)
    for member in members:
        if get_origin(member) is Literal:
            for choice in get_args(member):
                if text == _written(choice):
                    return choice
        elif member in _PLAIN:
            value = _number(text, member)
            if value is not None:
                return value
    if str in members:
        return text
    if Path in members:
        return Path(text)
    raise ValueError(f"wanted {describe(annotation)}, found {text!r}")


def from_json(value: object, annotation: object) -> object:
    """Take a decoded JSON value as a setting's type.

    Args:
        value: What ``json.loads`` gave.
        annotation: The type of the setting.

    Returns:
        The value, with lists as tuples where the type asks for them.

    Raises:
        ValueError: It is of another type.
    """
    for member in _members(annotation):
        taken, result = _taken(value, member)
        if taken:
            return result
    raise ValueError(f"wanted {describe(annotation)}, found {json.dumps(value, default=str)}")


def _taken(value: object, member: object) -> tuple[bool, object]:
    if member in (Any, object) or (member is types.NoneType and value is None):
        return True, value
    if get_origin(member) is Literal:
        return value in get_args(member), value
    if _is_a(member, _SEQUENCES):
        return isinstance(value, list), _sequence(value, member)
    if _is_a(member, _MAPPINGS):
        return isinstance(value, dict), _mapping(value, member)
    if member is Path:
        return isinstance(value, str), Path(value) if isinstance(value, str) else value
    if member is float and type(value) is int:
        return True, float(value)
    return type(value) is member, value


def _sequence(value: object, member: object) -> object:
    if not isinstance(value, list):
        return value
    arguments = get_args(member)
    if not _is_a(member, (tuple,)):
        return [from_json(item, arguments[0]) for item in value] if arguments else value
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(from_json(item, arguments[0]) for item in value)
    if len(arguments) != len(value):
        raise ValueError(f"wanted a list of {len(arguments)}, found {len(value)} in {value}")
    return tuple(from_json(item, kind) for item, kind in zip(value, arguments, strict=True))


def _mapping(value: object, member: object) -> object:
    arguments = get_args(member)
    if not isinstance(value, dict) or not arguments:
        return value
    taken = {}
    for key, item in value.items():
        try:
            taken[key] = from_json(item, arguments[1])
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None
    return taken


def _json(text: str, annotation: object) -> object:
    if not text.startswith("@"):
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            wanted = describe(annotation)
            raise ValueError(f"wanted {wanted}, found {text!r} ({error.msg})") from None
    path = Path(text[1:])
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error})") from None


def _number(text: str, kind: object) -> bool | int | float | None:
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower())
    try:
        return int(text) if kind is int else float(text)
    except ValueError:
        return None


def _members(annotation: object) -> list[object]:
    """The alternatives of a union, those first that take the fewest texts."""
    if get_origin(annotation) not in (Union, types.UnionType):
        return [annotation]
    order = [types.NoneType, bool, int, float]
    rank = {kind: i for i, kind in enumerate(order)}
    return sorted(get_args(annotation), key=lambda kind: rank.get(kind, len(order)))


def _is_a(annotation: object, kinds: tuple[object, ...]) -> bool:
    return annotation in kinds or get_origin(annotation) in {get_origin(k) or k for k in kinds}


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
