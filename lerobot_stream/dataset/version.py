"""The version of the format, and how to reach it from an older one."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lerobot_stream.errors import DatasetError, FormatError

INFO_PATH = "meta/info.json"
"""The file that says the version, and nothing else does."""
CONVERT_HINT = (
    "convert it with LeRobot: "
    "python -m lerobot.datasets.v30.convert_dataset_v21_to_v30 --repo-id=OWNER/NAME"
)


def check_version(info: Mapping[str, object]) -> str:
    """Check that info.json is of a version this package reads.

    Args:
        info: The parsed file.

    Returns:
        The version as written.

    Raises:
        FormatError: There is none.
        DatasetError: It is older or newer than v3.
    """
    version = info.get("codebase_version")
    match = re.fullmatch(r"v?(\d{1,4})(\.\d+)*", version) if isinstance(version, str) else None
    if match is None:
        message = f"wanted a version such as v3.0, found {version!r}"
        raise FormatError(message, path=INFO_PATH, where="codebase_version")
    found = int(match[1])
    if found != 3:
        hint = CONVERT_HINT if found < 3 else "update lerobot-stream"
        message = f"wanted a LeRobotDataset v3, found {version}"
        raise DatasetError(message, path=INFO_PATH, where="codebase_version", hint=hint)
    return match[0]
