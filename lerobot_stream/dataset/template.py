"""Path templates of info.json, filled without giving them any other power."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping

from lerobot_stream.dataset.version import CONVERT_HINT, INFO_PATH
from lerobot_stream.errors import DatasetError, FormatError
from lerobot_stream.source.paths import leads_outside

_NUMBER = re.compile(r"(0?[1-9]?[0-9])?d?")
_V2_FIELDS = {"episode_index", "episode_chunk"}


def check_template(template: object, *, name: str, fields: Mapping[str, type]) -> str:
    """Check that a template names its fields and nothing else.

    Args:
        template: The value in info.json.
        name: Its key there.
        fields: The fields that may occur, and the type of each.

    Returns:
        The template.

    Raises:
        FormatError: It is no text, or has a field or format of its own.
        DatasetError: It names one file an episode, as v2 did.
    """
    if not isinstance(template, str):
        raise FormatError(f"wanted a path template, found {template!r}", path=INFO_PATH, where=name)
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        message = f"{template!r} is no template: {error}"
        raise FormatError(message, path=INFO_PATH, where=name) from error
    for _, field, form, conversion in parts:
        if field is None:
            continue
        if field in _V2_FIELDS:
            raise DatasetError(
                f"{template!r} names one file an episode, the layout of v2",
                path=INFO_PATH,
                where=name,
                hint=CONVERT_HINT,
            )
        is_plain = not form if fields.get(field) is str else _NUMBER.fullmatch(form or "")
        if field not in fields or conversion or not is_plain:
            message = f"{template!r} may hold {', '.join(fields)}, found {field!r}:{form!r}"
            raise FormatError(message, path=INFO_PATH, where=name)
    return template


def fill_template(template: str, *, name: str, **values: int | str) -> str:
    """Fill a checked template.

    Args:
        template: What :func:`check_template` let pass.
        name: Its key in info.json.
        values: A value for each field.

    Returns:
        A path below the dataset's root.

    Raises:
        DatasetError: The path leads outside the root.
    """
    path = template.format(**values)
    if leads_outside(path):
        message = f"{path!r} leads outside the dataset"
        raise DatasetError(message, path=INFO_PATH, where=name)
    return path


def template_pattern(template: str) -> re.Pattern[str]:
    """Return a pattern of the paths that a checked template of numbers can give."""
    parts = string.Formatter().parse(template)
    return re.compile(
        "".join(re.escape(text) + (r"\d+" if field else "") for text, field, *_ in parts)
    )
