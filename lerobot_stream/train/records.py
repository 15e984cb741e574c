"""Nested configuration records to and from the values of a JSON file."""

from __future__ import annotations

import dataclasses
import difflib
import json
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

RecordT = TypeVar("RecordT")


def record_to_json(record: object) -> dict[str, Any]:
    """Turn a record into values that JSON can hold.

    Args:
        record: A dataclass of plain values, tuples, mappings and such dataclasses.

    Returns:
        Nested dictionaries; tuples became lists.
    """
    return {
        field.name: _plain(getattr(record, field.name))
        for field in dataclasses.fields(record)  # type: ignore[arg-type]
    }


def record_from_json(
    record_class: type[RecordT], values: Mapping[str, Any], *, name: str = ""
) -> RecordT:
    """Make a record from a JSON file's values.

    Args:
        record_class: The dataclass.
        values: Nested dictionaries; what is missing takes the record's default.
        name: Dotted name of the record inside the outermost one, for messages.

    Returns:
        The record; lists became tuples where it asks for them.

    Raises:
        ValueError: A name is unknown, or a value is of another type.
    """
    hints = typing.get_type_hints(record_class)
    prefix = f"{name}." if name else ""
    for key in values:
        if key not in hints:
            close = difflib.get_close_matches(key, hints, n=1)
            hint = f", did you mean {prefix}{close[0]}" if close else ""
            raise ValueError(f"unknown setting {prefix}{key}{hint}")
    given = {key: _typed(value, hints[key], f"{prefix}{key}") for key, value in values.items()}
    try:
        return record_class(**given)
    except TypeError as error:
        raise ValueError(f"{name or record_class.__name__}: {error}") from None


def _plain(value: object) -> Any:
    if dataclasses.is_dataclass(value):
        return record_to_json(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _typed(value: Any, annotation: Any, name: str) -> Any:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _typed(value, next(kind for kind in arguments if kind is not type(None)), name)
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        _expect(isinstance(value, Mapping), "an object", value, name)
        return record_from_json(annotation, value, name=name)
    if origin is Literal:
        _expect(value in arguments, " or ".join(map(str, arguments)), value, name)
        return value
    if origin is tuple:
        _expect(isinstance(value, (list, tuple)), "a list", value, name)
        if arguments[-1] is not Ellipsis:
            _expect(len(value) == len(arguments), f"{len(arguments)} values", value, name)
        return tuple(_typed(item, arguments[0], name) for item in value)
    if origin is not None:  # a mapping
        _expect(isinstance(value, Mapping), "an object", value, name)
        return {key: _typed(item, arguments[1], f"{name}.{key}") for key, item in value.items()}
    if annotation is float and type(value) is int:
        return float(value)
    known = annotation in (bool, int, float, str)
    _expect(
        not known or type(value) is annotation, getattr(annotation, "__name__", ""), value, name
    )
    return value


def _expect(holds: bool, wanted: str, value: object, name: str) -> None:
    if not holds:
        raise ValueError(f"{name}: wanted {wanted}, found {json.dumps(value, default=str)}")
