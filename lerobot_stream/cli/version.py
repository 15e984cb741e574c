"""Which release of this package is installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

_DISTRIBUTION = "lerobot-stream"


def installed_version() -> str:
    """Look the version up; a source tree on the path that was never installed has none."""
    try:
        return version(_DISTRIBUTION)
    except PackageNotFoundError:
        return "(not installed)"
