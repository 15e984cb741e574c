"""``meta/info.json``: version, rate, features and where files lie."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lerobot_stream.dataset.json_file import parse_json
from lerobot_stream.dataset.template import check_template, fill_template, template_pattern
from lerobot_stream.dataset.version import INFO_PATH, check_version
from lerobot_stream.errors import DatasetError, FormatError, MissingFileError
from lerobot_stream.source.base import Source
from lerobot_stream.source.ranges import read_file

_MAX_FPS = 100_000
_MAX_VALUES = 1 << 30  # one frame of one feature
_CHANNELS = (1, 3, 4)
_AXES = {"channel": "channels", "channels": "channels", "height": "height", "width": "width"}


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature of an item, as info.json describes it."""

    dtype: str
    """``video``, ``image``, ``string`` or a NumPy name such as ``float32``."""
    shape: tuple[int, ...]
    """Shape of one frame's value, in whichever order the writer chose."""
    names: object
    """Names of the axes or of the values; writers differ."""

    def __getitem__(self, name: str) -> object:
        """Read a field by name, as in LeRobot, where a feature is a dictionary.

        Raises:
            KeyError: There is no such field.
        """
        if name not in ("dtype", "shape", "names"):
            raise KeyError(name)
        value: object = getattr(self, name)
        return value

    @property
    def height(self) -> int:
        """Pixels of a camera's picture, top to bottom."""
        return self._picture_size()["height"]

    @property
    def width(self) -> int:
        """Pixels of a camera's picture, left to right."""
        return self._picture_size()["width"]

    @property
    def channels(self) -> int:
        """Values a pixel of a camera's picture."""
        return self._picture_size()["channels"]

    def _picture_size(self) -> dict[str, int]:
        """Read the shape by the names where they make sense, else by its likely order."""
        if len(self.shape) == 2:
            return {"height": self.shape[0], "width": self.shape[1], "channels": 1}
        if len(self.shape) != 3:
            raise DatasetError(
                f"a picture has 2 or 3 axes, found shape {list(self.shape)}", path=INFO_PATH
            )
        if isinstance(self.names, list | tuple):
            axes = [_AXES.get(str(name).lower(), "") for name in self.names]
            named = dict(zip(axes, self.shape, strict=False))
            if named.keys() == set(_AXES.values()) and named["channels"] in _CHANNELS:
                return named
        first, middle, last = self.shape
        if first in _CHANNELS and last not in _CHANNELS:
            return {"channels": first, "height": middle, "width": last}
        return {"height": first, "width": middle, "channels": last}


@dataclass(frozen=True, slots=True, eq=False)
class Info:
    """What ``meta/info.json`` says."""

    codebase_version: str
    """Format version, ``v3.N``."""
    fps: float
    """Frames a second."""
    total_episodes: int
    """Episodes promised."""
    total_frames: int
    """Frames promised."""
    robot_type: str | None
    """What was recorded, where the writer said it."""
    features: Mapping[str, Feature]
    """Every feature, in the order of the file."""
    data_path: str
    """Template of the data files."""
    video_path: str | None
    """Template of the video files; None without cameras stored as video."""
    raw: Mapping[str, object]
    """The whole file."""

    @property
    def video_keys(self) -> tuple[str, ...]:
        """Cameras stored as video."""
        return self._keys("video")

    @property
    def image_keys(self) -> tuple[str, ...]:
        """Cameras stored as images inside Parquet."""
        return self._keys("image")

    @property
    def camera_keys(self) -> tuple[str, ...]:
        """Cameras stored either way."""
        return self._keys("video", "image")

    @property
    def column_keys(self) -> tuple[str, ...]:
        """Features stored as plain columns: all but the cameras."""
        return tuple(key for key in self.features if key not in self.camera_keys)

    def data_file(self, chunk: int, file: int) -> str:
        """Return the path of a data file."""
        return fill_template(self.data_path, name="data_path", chunk_index=chunk, file_index=file)

    def is_data_file(self, path: str) -> bool:
        """Tell whether a path is that of a data file, whichever."""
        return template_pattern(self.data_path).fullmatch(path) is not None

    def video_file(self, key: str, chunk: int, file: int) -> str:
        """Return the path of a video file of one camera.

        Raises:
            KeyError: No such camera is stored as video.
        """
        if self.video_path is None or key not in self.video_keys:
            raise KeyError(key)
        place = {"chunk_index": chunk, "file_index": file}
        return fill_template(self.video_path, name="video_path", video_key=key, **place)

    def _keys(self, *dtypes: str) -> tuple[str, ...]:
        return tuple(key for key, feature in self.features.items() if feature.dtype in dtypes)


def fetch_info(source: Source) -> bytes:
    """Read ``meta/info.json`` whole.

    Raises:
        MissingFileError: There is no dataset here.
        FormatError: It is absurdly large.
    """
    try:
        return read_file(source, INFO_PATH)
    except MissingFileError as error:
        error.hint = error.hint or f"name the folder or repository that holds {INFO_PATH}"
        raise


def parse_info(data: bytes) -> Info:
    """Parse ``meta/info.json``.

    Args:
        data: The whole file.

    Raises:
        FormatError: It is torn, or something needed is missing or of another type.
        DatasetError: It is of another version than v3, or says what can't be.
    """
    raw = parse_json(data, INFO_PATH)
    version = check_version(raw)
    features = _features(raw)
    number = {"chunk_index": int, "file_index": int}
    video_path = raw.get("video_path")
    video_keys = [key for key, feature in features.items() if feature.dtype == "video"]
    if video_keys:
        check_template(video_path, name="video_path", fields={"video_key": str, **number})
        if len(video_keys) > 1 and "{video_key}" not in str(video_path):
            message = f"{video_path!r} puts {len(video_keys)} cameras into the same files"
            raise DatasetError(message, path=INFO_PATH, where="video_path")
    robot_type = raw.get("robot_type")
    info = Info(
        codebase_version=version,
        fps=_fps(raw),
        total_episodes=_count(raw, "total_episodes"),
        total_frames=_count(raw, "total_frames"),
        robot_type=None if robot_type is None else str(robot_type),
        features=features,
        data_path=check_template(raw.get("data_path"), name="data_path", fields=number),
        video_path=str(video_path) if video_keys else None,
        raw=raw,
    )
    info.data_file(0, 0)
    for key in video_keys:
        info.video_file(key, 0, 0)
    return info


def _fps(raw: Mapping[str, object]) -> float:
    fps = raw.get("fps")
    if isinstance(fps, bool) or not isinstance(fps, int | float):
        raise FormatError(f"wanted a number, found {fps!r}", path=INFO_PATH, where="fps")
    if not (math.isfinite(fps) and 0 < fps <= _MAX_FPS):
        message = f"wanted frames a second above 0 and up to {_MAX_FPS}, found {fps}"
        raise DatasetError(message, path=INFO_PATH, where="fps")
    return float(fps)


def _count(raw: Mapping[str, object], name: str) -> int:
    value = raw.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 62:
        raise FormatError(f"wanted a count, found {value!r}", path=INFO_PATH, where=name)
    return value


def _features(raw: Mapping[str, object]) -> dict[str, Feature]:
    features = raw.get("features")
    if not isinstance(features, dict):
        message = f"wanted an object, found {type(features).__name__}"
        raise FormatError(message, path=INFO_PATH, where="features")
    return {key: _feature(key, value) for key, value in features.items()}


def _feature(key: str, value: object) -> Feature:
    where = f"features/{key}"
    dtype = value.get("dtype") if isinstance(value, dict) else None
    shape = value.get("shape") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(dtype, str) or not isinstance(shape, list):
        raise FormatError("wanted dtype and shape", path=INFO_PATH, where=where)
    if not all(type(size) is int and size >= 0 for size in shape):
        raise FormatError(f"{shape} is no shape", path=INFO_PATH, where=where)
    if math.prod(shape) > _MAX_VALUES:
        message = f"shape {shape} has {math.prod(shape)} values, more than {_MAX_VALUES}"
        raise DatasetError(message, path=INFO_PATH, where=where)
    return Feature(dtype, tuple(shape), value.get("names"))
