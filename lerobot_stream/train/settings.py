"""A field of a configuration record: its default, its help, its bounds."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args, get_origin

_BOUNDS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "least": ("at least", lambda value, bound: value >= bound),
    "above": ("above", lambda value, bound: value > bound),
    "most": ("at most", lambda value, bound: value <= bound),
    "below": ("below", lambda value, bound: value < bound),
}


def setting(
    default: object = dataclasses.MISSING,
    *,
    help: str,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> Any:
    """Declare a field of a frozen configuration record.

    Args:
        default: Its default; without one the setting must be given.
        help: What it means, for people.
        least: Smallest value that is allowed.
        above: All values must be larger.
        most: Largest value that is allowed.
        below: All values must be smaller.

    Returns:
        A dataclass field; ``help`` and the bounds stand in its metadata.
    """
    bounds = {"least": least, "above": above, "most": most, "below": below}
    metadata = {"help": help} | {name: bound for name, bound in bounds.items() if bound is not None}
    return dataclasses.field(default=default, metadata=metadata)


def check_settings(record: object) -> None:
    """Check choices and bounds of a record and of the records inside it.

    Args:
        record: A dataclass whose fields were declared with :func:`setting` or hold such records.

    Raises:
        ValueError: A value is no choice or lies out of bounds; its flag is named.
    """
    for name, annotation, metadata, value in _walk(record, prefix=""):
        choices = _choices(annotation)
        if choices and value not in choices:
            wanted = ", ".join("null" if choice is None else str(choice) for choice in choices)
            raise ValueError(f"--{name} must be one of {wanted}, got {value}")
        for bound in (key for key in _BOUNDS if key in metadata and value is not None):
            words, holds = _BOUNDS[bound]
            if not holds(value, metadata[bound]):
                raise ValueError(f"--{name} must be {words} {metadata[bound]}, got {value}")


def _walk(record: Any, *, prefix: str) -> Iterator[tuple[str, Any, Any, Any]]:
    hints = typing.get_type_hints(type(record))
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if dataclasses.is_dataclass(value):
            yield from _walk(value, prefix=f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}", hints[field.name], field.metadata, value


def _choices(annotation: object) -> tuple[object, ...]:
    """All values of a (possibly optional) Literal, else none."""
    members = (annotation,) if get_origin(annotation) is Literal else get_args(annotation)
    literals = [member for member in members if get_origin(member) is Literal]
    if not literals:
        return ()
    optional = (None,) if type(None) in members else ()
    return (*(choice for literal in literals for choice in get_args(literal)), *optional)
