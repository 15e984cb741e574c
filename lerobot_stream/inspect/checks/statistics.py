"""Whether stats.json can be the statistics of this dataset, by the metadata alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.counted import counted
from lerobot_stream.dataset.holders import format_numbers
from lerobot_stream.dataset.info import Feature
from lerobot_stream.dataset.stats import PATH
from lerobot_stream.inspect.facts import Facts
from lerobot_stream.inspect.finding import Finding
from lerobot_stream.inspect.kinds import (
    CONSTANT,
    QUANTILES_ABSENT,
    STATS_ABSENT,
    STATS_COUNT,
    STATS_NAN,
    STATS_PICTURES,
    STATS_SHAPE,
)
from lerobot_stream.inspect.row_files import is_number

BOOKKEEPING = ("timestamp", "frame_index", "episode_index", "index", "task_index")
"""Columns that say which row it is, and may well be constant."""
_OUTCOME = "next."
"""Starts the names of rewards and the like, which no policy takes in."""
_NORMALISING = ("min", "max", "mean", "std")
_PER_VALUE = (*_NORMALISING, "q01", "q10", "q50", "q90", "q99")
_EDGE = 1e-3
"""What statistics of pictures may exceed [0, 1] by."""

Statistic = Mapping[str, NDArray[np.float64]]


def check_statistics(facts: Facts) -> Iterator[Finding]:
    """Check what needs no row."""
    stats, features = facts.stats, facts.info.features
    if stats is None or not len(facts.table):
        return
    if not stats:
        yield Finding(STATS_ABSENT, "there is no such file", "file", PATH)
        return
    wanted = [key for key, feature in features.items() if is_number(feature) or is_picture(feature)]
    absent = [key for key in wanted if not set(_NORMALISING) <= set(stats.get(key, {}))]
    if absent:
        message = f"{', '.join(absent)}: not all of {', '.join(_NORMALISING)} are there"
        yield Finding(STATS_ABSENT, message, path=PATH)
    frames = int(facts.table.length.sum())
    yield from _counts(stats, features, frames)
    for key, values in stats.items():
        if key in features:
            yield from _values(key, values, features[key])
    yield from _extent(stats, facts)
    numeric = [key for key in wanted if key not in BOOKKEEPING and key in stats]
    without = [key for key in numeric if not {"q01", "q99"} <= set(stats[key])]
    if without:
        message = f"{', '.join(without)}: no q01 and q99"
        yield Finding(QUANTILES_ABSENT, message, path=PATH)


def is_picture(feature: Feature) -> bool:
    """True for a camera."""
    return feature.dtype in ("video", "image")


def _counts(
    stats: Mapping[str, Statistic], features: Mapping[str, Feature], frames: int
) -> Iterator[Finding]:
    """Rows are all counted; of pictures a sample is enough, but not more than there are."""
    by_count: dict[int, list[str]] = {}
    for key, values in stats.items():
        feature = features.get(key)
        if "count" not in values or feature is None or not values["count"].size:
            continue
        number = values["count"].flat[0]
        fits = 0 < number <= frames if is_picture(feature) else number == frames
        if not fits and math.isfinite(number):
            by_count.setdefault(int(number), []).append(key)
    for count, keys in by_count.items():
        yield Finding(
            STATS_COUNT,
            f"{_names(keys)}: counted over {counted(count, 'row')}, the dataset has {frames}",
            path=PATH,
            expected=str(frames),
            found=str(count),
        )


def _values(key: str, values: Statistic, feature: Feature) -> Iterator[Finding]:
    numbers = {name: values[name] for name in _PER_VALUE if name in values}
    bad = [name for name, array in numbers.items() if not np.isfinite(array).all()]
    if bad:
        yield Finding(STATS_NAN, f"{key}: {', '.join(bad)} are not all numbers", path=PATH)
    if is_picture(feature):
        yield from _picture_values(key, numbers)
        return
    size = math.prod(feature.shape)
    odd = {array.size for name, array in numbers.items() if array.size != size}
    if odd:
        yield Finding(
            STATS_SHAPE,
            f"{key}: {counted(odd.pop(), 'value')} for shape {list(feature.shape)}",
            path=PATH,
            expected=counted(size, "value"),
        )
    elif key not in BOOKKEEPING and feature.dtype != "bool" and not key.startswith(_OUTCOME):
        yield from _constant(key, numbers, feature)


def _picture_values(key: str, numbers: Statistic) -> Iterator[Finding]:
    outside = [
        f"{name} is {np.nanmin(array):.4g} to {np.nanmax(array):.4g}"
        for name, array in numbers.items()
        if name != "std" and ((array < -_EDGE) | (array > 1 + _EDGE)).any()
    ]
    if outside:
        message = f"{', '.join(outside)}; pictures are in [0, 1]"
        yield Finding(STATS_PICTURES, message, path=PATH, video_key=key)


def _constant(key: str, numbers: Statistic, feature: Feature) -> Iterator[Finding]:
    """Dimensions without a range: in all rows, or between the quantiles."""
    for low, high in (("min", "max"), ("q01", "q99")):
        if low in numbers and high in numbers:
            flat = numbers[low].ravel() == numbers[high].ravel()
            if flat.any():
                which = np.flatnonzero(flat).tolist()
                verb = "changes" if len(which) == 1 else "change"
                same = "" if low == "min" else f" between {low} and {high}"
                message = f"{key}: {_dimensions(which, feature)} never {verb}{same}"
                yield Finding(CONSTANT, message, path=PATH, found=format_numbers(which))
                return


def _dimensions(which: list[int], feature: Feature) -> str:
    """Name dimensions, where they have names."""
    names = feature.names
    if isinstance(names, list) and len(names) == 1 and isinstance(names[0], list):
        names = names[0]
    total = math.prod(feature.shape)
    place = f"dimension{'s' if len(which) > 1 else ''} {format_numbers(which)} of {total}"
    if isinstance(names, list) and len(names) == total:
        shown = ", ".join(str(names[i]) for i in which[:6])
        place += f" ({shown}{', …' if which[6:] else ''})"
    return place


def _extent(stats: Mapping[str, Statistic], facts: Facts) -> Iterator[Finding]:
    """The largest index and episode are known without a row."""
    frames = int(facts.table.length.sum())
    highest = {"index": frames - 1, "episode_index": int(facts.table.episode_index[-1])}
    for key, wanted in highest.items():
        found = stats.get(key, {}).get("max")
        if found is not None and found.size == 1 and found.flat[0] != wanted:
            yield Finding(
                STATS_COUNT,
                f"{key}: max is {found.flat[0]:g}, the last one is {wanted}",
                path=PATH,
                expected=str(wanted),
                found=f"{found.flat[0]:g}",
            )


def _names(keys: list[str]) -> str:
    return ", ".join(keys[:3]) + (f" and {len(keys) - 3} more" if keys[3:] else "")
