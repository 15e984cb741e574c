"""Train robot policies straight from LeRobotDataset v3 data, wherever it lies.

Public names are looked up when they are first asked for, so that importing the package, or one
of its errors, does not wait for torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lerobot_stream.dataset.metadata import DatasetMetadata
    from lerobot_stream.errors import (
        AccessError,
        CheckpointError,
        DatasetError,
        DecodeError,
        FormatError,
        LockTimeoutError,
        MissingFileError,
        PlanError,
        SidecarError,
        SourceError,
        StreamError,
    )
    from lerobot_stream.stream.cache import EpisodeByteCache
    from lerobot_stream.stream.dataset import StreamingLeRobotDataset
    from lerobot_stream.stream.map_style import LeRobotDataset

    __version__: str

__all__ = [
    "AccessError",
    "CheckpointError",
    "DatasetError",
    "DatasetMetadata",
    "DecodeError",
    "EpisodeByteCache",
    "FormatError",
    "LeRobotDataset",
    "LockTimeoutError",
    "MissingFileError",
    "PlanError",
    "SidecarError",
    "SourceError",
    "StreamError",
    "StreamingLeRobotDataset",
    "__version__",
]

_HOMES = {
    "DatasetMetadata": "lerobot_stream.dataset.metadata",
    "EpisodeByteCache": "lerobot_stream.stream.cache",
    "LeRobotDataset": "lerobot_stream.stream.map_style",
    "StreamingLeRobotDataset": "lerobot_stream.stream.dataset",
}
_ERRORS = "lerobot_stream.errors"


def __getattr__(name: str) -> object:
    """Import a public name from where it lives."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "__version__":
        from importlib.metadata import version

        return version("lerobot-stream")
    from importlib import import_module

    return getattr(import_module(_HOMES.get(name, _ERRORS)), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
