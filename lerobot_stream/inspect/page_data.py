"""What the page shows, as plain numbers and texts."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lerobot_stream.inspect.cameras import summarise_cameras
from lerobot_stream.inspect.finding import Finding, Group, group_findings
from lerobot_stream.inspect.json_report import gravest
from lerobot_stream.inspect.moments import Moments
from lerobot_stream.inspect.sketches import Sketches
from lerobot_stream.inspect.summary import Summary
from lerobot_stream.inspect.thumbnails import Thumbnails
from lerobot_stream.inspect.video_times import DRIFT_EDGES_S

_EXAMPLES = 20
"""Findings of a group that are written out."""
_LEVELS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""A character a value, the lowest first."""
_GAP = "-"
_BINS = 40


def describe_page(summary: Summary, thumbnails: list[Thumbnails]) -> dict[str, Any]:
    """Gather everything for the page's script.

    Episodes are numbered by their row in the episode table.
    """
    table, info = summary.table, summary.info
    groups = group_findings(summary.findings)
    values, times = summary.values, summary.times
    return {
        "identity": asdict(summary.identity),
        "version": info.codebase_version,
        "robot": info.robot_type,
        "fps": info.fps,
        "cost": summary.cost,
        "frames": summary.num_frames,
        "rowsBytes": summary.rows_bytes,
        "videoBytes": summary.video_bytes,
        "rowsRead": values and {"rows": values.num_rows, "complete": values.complete},
        "drift": times and {"edges": DRIFT_EDGES_S, "frames": times.drift_counts.tolist()},
        "cameras": [asdict(camera) for camera in summarise_cameras(summary)],
        "counts": Counter(finding.severity for finding in summary.findings),
        "groups": [_group(group, summary) for group in groups],
        "episodes": _episodes(summary),
        "files": {"rows": table.data_paths, **{k: table.video_paths[k] for k in info.video_keys}},
        "histograms": {
            "length": _histogram(table.length),
            "bytes": _histogram(summary.episode_bytes()),
        },
        "sketches": _sketches(values.sketches, values.moments) if values else {},
        "thumbnails": _thumbnails(thumbnails),
    }


def _episodes(summary: Summary) -> dict[str, Any]:
    """A column a list."""
    table, videos = summary.table, summary.videos
    drift = [round(1000 * d, 3) if np.isfinite(d) else None for d in summary.drift_s().tolist()]
    worst = gravest(summary.findings)
    texts = list(dict.fromkeys("; ".join(tasks) for tasks in table.tasks))
    places = {text: i for i, text in enumerate(texts)}
    return {
        "index": table.episode_index.tolist(),
        "length": table.length.tolist(),
        "bytes": summary.episode_bytes().tolist(),
        "driftMs": drift,
        "severity": [worst.get(episode, "") for episode in table.episode_index.tolist()],
        "task": [places["; ".join(tasks)] for tasks in table.tasks],
        "tasks": texts,
        "file": {
            "rows": table.data_file.tolist(),
            **{key: table.video_file[key].tolist() for key in summary.info.video_keys},
        },
        "firstFrame": {
            key: videos.spans.first_frame[:, camera].tolist()
            for camera, key in enumerate(summary.info.video_keys)
        }
        if videos
        else {},
    }


def _group(group: Group, summary: Summary) -> dict[str, Any]:
    episodes = np.array(group.episodes, np.int64)
    known = np.searchsorted(summary.table.episode_index, episodes)
    known = known[np.isin(episodes, summary.table.episode_index)]
    return {
        "kind": group.kind.name,
        "severity": group.kind.severity,
        "summary": group.describe(len(summary.table)),
        "count": len(group.findings),
        "hints": group.hints,
        "episodes": known.tolist(),
        "examples": [_example(finding) for finding in group.findings[:_EXAMPLES]],
    }


def _example(finding: Finding) -> dict[str, Any]:
    return {
        "episode": finding.episode,
        "camera": finding.video_key,
        "path": finding.path,
        "message": finding.message,
        "expected": finding.expected,
        "found": finding.found,
    }


def _histogram(values: NDArray[np.int64]) -> dict[str, Any] | None:
    """Counts in bins of whole numbers; None where there is nothing to see."""
    if not len(values) or not values.max():
        return None
    low, high = int(values.min()), int(values.max())
    width = -(-(high - low + 1) // _BINS)
    counts = np.bincount((values - low) // width)
    return {"low": low, "width": width, "counts": counts.tolist()}


def _sketches(sketches: Sketches, moments: Mapping[str, Moments]) -> dict[str, Any]:
    """Lines of every column, each dimension in its own range over all episodes drawn."""
    drawn = {}
    for key in sketches.keys:
        lines = sketches.lines(key)
        if not lines:
            continue
        every = np.concatenate(list(lines.values()))
        finite = np.isfinite(every)
        low = np.where(finite, every, np.inf).min(axis=0)
        high = np.where(finite, every, -np.inf).max(axis=0)
        known = np.isfinite(low)
        low, high = np.where(known, low, 0.0), np.where(known, high, 0.0)
        drawn[key] = {
            "low": low.tolist(),
            "high": high.tolist(),
            "size": len(moments[key].low),
            "lines": {number: _line(rows, low, high) for number, rows in lines.items()},
        }
    return drawn


def _line(rows: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> str:
    """Values as characters, a dimension after another, with commas between."""
    reach = np.where(high > low, high - low, 1.0)
    finite = np.isfinite(rows)
    share = np.where(finite, (rows - low) / reach, 0.0)
    level = np.rint(share * (len(_LEVELS) - 1)).astype(np.int64)
    letters = np.where(finite, np.array(list(_LEVELS))[level], _GAP)
    return ",".join("".join(column) for column in letters.T)


def _thumbnails(thumbnails: list[Thumbnails]) -> dict[str, Any]:
    """Pictures by row of the episode table and camera."""
    shown: dict[str, Any] = {}
    for one in thumbnails:
        jpegs = [base64.b64encode(jpeg).decode("ascii") for jpeg in one.jpegs]
        cell = {"frames": one.frames, "jpegs": jpegs, "fault": one.fault}
        shown.setdefault(str(one.number), {})[one.video_key] = cell
    return shown
