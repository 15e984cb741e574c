"""One setting of a nested configuration record, as a flag sees it."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator
from dataclasses import MISSING, dataclass
from typing import Union, get_args, get_origin


@dataclass(frozen=True, slots=True)
class Setting:
    """One field of a nested configuration record."""

    name: str
    """Dotted, ``dataset.repo_id``."""
    annotation: object
    """The type of its values."""
    default: object
    """``dataclasses.MISSING`` where it must be given."""
    help: str
    """What it means, for people."""
    panel: str
    """The heading it stands under."""

    @property
    def parameter(self) -> str:
        """The name as a Python identifier."""
        return self.name.replace(".", "__")


def list_settings(config_class: type) -> list[Setting]:
    """List every setting of a nested configuration record.

    Args:
        config_class: A dataclass whose fields are values or such dataclasses; ``help`` stands
            in each field's metadata.

    Returns:
        The settings by heading: the record's own first, then those of nested records under
        their dotted names.
    """
    return list(_walk(config_class, prefix="", panel="Run"))


def _walk(config_class: type, *, prefix: str, panel: str) -> Iterator[Setting]:
    hints = typing.get_type_hints(config_class)
    nested: list[tuple[str, type]] = []
    for field in dataclasses.fields(config_class):
        name, annotation = f"{prefix}{field.name}", hints[field.name]
        record = _nested_record(annotation)
        if record is not None:
            nested.append((name, record))
            continue
        default = field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        yield Setting(name, annotation, default, field.metadata.get("help", ""), panel)
    for name, record in nested:
        heading = name.replace(".", " ").replace("_", " ").capitalize()
        yield from _walk(record, prefix=f"{name}.", panel=heading)


def _nested_record(annotation: object) -> type | None:
    candidates = [annotation]
    if get_origin(annotation) in (Union, types.UnionType):
        candidates = [kind for kind in get_args(annotation) if kind is not types.NoneType]
    if len(candidates) == 1 and dataclasses.is_dataclass(candidates[0]):
        return typing.cast(type, candidates[0])
    return None
