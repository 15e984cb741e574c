"""Whether info.json gives every feature a type that can be read."""

from __future__ import annotations

from collections.abc import Iterator

from lerobot_stream.dataset.columns import column_dtype
from lerobot_stream.dataset.info import Info
from lerobot_stream.dataset.version import INFO_PATH
from lerobot_stream.inspect.finding import Finding
from lerobot_stream.inspect.kinds import FEATURE_TYPE

_NOT_NUMBERS = ("str", "large_", "binary", "object", "language", "list", "time", "date", "duration")
"""How types start of columns that are not meant to become tensors."""


def check_features(info: Info) -> Iterator[Finding]:
    """Look for columns of numbers of a type that is misspelt, or that torch does not have."""
    for key in info.column_keys:
        dtype = info.features[key].dtype
        if column_dtype(dtype).kind == "O" and not dtype.startswith(_NOT_NUMBERS):
            message = f"feature {key} has dtype {dtype}, which is no type of a tensor"
            yield Finding(FEATURE_TYPE, message, path=INFO_PATH, found=dtype)
