"""``meta/stats.json``: what the values of each feature look like over the dataset."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.dataset.json_file import parse_json
from lerobot_stream.errors import FormatError
from lerobot_stream.source.base import Source
from lerobot_stream.source.ranges import read_file

PATH = "meta/stats.json"


def read_stats(source: Source) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Read the statistics of each feature.

    Args:
        source: Where the dataset is read from.

    Returns:
        Arrays by feature and statistic (``mean``, ``std``, …), of at least one axis; nothing
        where the dataset has no such file.

    Raises:
        FormatError: The file is torn, or a statistic is no array of numbers.
    """
    if PATH not in source.list_files():
        return {}
    return parse_stats(read_file(source, PATH))


def parse_stats(data: bytes) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Parse ``meta/stats.json``; see :func:`read_stats`."""
    stats: dict[str, dict[str, NDArray[np.float64]]] = {}
    for key, values in parse_json(data, PATH).items():
        if not isinstance(values, dict):
            message = f"wanted an object of statistics, found {type(values).__name__}"
            raise FormatError(message, path=PATH, where=key)
        stats[key] = {name: _array(value, f"{key}/{name}") for name, value in values.items()}
    return stats


def _array(value: object, where: str) -> NDArray[np.float64]:
    try:
        return np.atleast_1d(np.asarray(value, np.float64))
    except (TypeError, ValueError, OverflowError) as error:
        raise FormatError("wanted an array of numbers", path=PATH, where=where) from error
