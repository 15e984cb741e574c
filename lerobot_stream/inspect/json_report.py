"""A summary as JSON, in a form that stays.

The object has these members; members may be added, none is taken away or changes its meaning
while ``schema`` is 1:

- ``schema``: 1.
- ``repo_id``, ``revision``, ``data_root``, ``codebase_version``, ``robot_type``, ``fps``.
- ``cost``: ``metadata``, ``probe`` or ``deep``; what was read.
- ``num_episodes``, ``num_frames``, ``num_tasks``, ``rows_bytes``, ``video_bytes``.
- ``rows_read``: ``rows`` and whether these are ``complete``; null without any.
- ``drift``: frames counted by their drift, ``edges_s`` the borders of the bins; null if unknown.
- ``cameras``: ``video_key``, ``stored`` (``video``, ``image``), ``codec``, ``height``, ``width``,
  ``num_files``, ``bytes``, ``fps``, ``gop``, ``longest_gop``; null where unknown.
- ``episodes``: ``episode_index``, ``length``, ``tasks``, ``rows_path``, ``rows_bytes``,
  ``severity`` (the gravest finding, or null) and ``cameras``: ``video_key``, ``path``,
  ``first_frame``, ``bytes``, ``drift_s``, ``worst_frame``; null where unknown.
- ``groups``: the findings by ``kind``: ``severity``, ``title``, ``summary``, ``count`` of
  findings, ``num_episodes``, ``video_keys``, ``hints``.
- ``findings``: ``kind``, ``severity``, ``scope`` (``dataset``, ``file``, ``episode``),
  ``message``, ``path``, ``episodes``, ``video_key``, ``expected``, ``found``, ``hint``.
- ``exclude_episodes``: what ``--dataset.exclude_episodes`` should leave out.

Where info.json cannot be used, ``error`` (``message``, ``path``, ``hint``) stands beside
``schema``, ``repo_id``, ``revision`` and ``data_root``, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from lerobot_stream.errors import StreamError
from lerobot_stream.inspect.cameras import summarise_cameras
from lerobot_stream.inspect.finding import Finding, group_findings, lost_episodes
from lerobot_stream.inspect.kinds import SEVERITIES, Severity
from lerobot_stream.inspect.summary import Summary
from lerobot_stream.inspect.video_times import DRIFT_EDGES_S
from lerobot_stream.source.base import Identity

SCHEMA = 1


def write_json(summary: Summary) -> Iterator[str]:
    """Write the object line by line, one episode or finding a line.

    Args:
        summary: What was found.

    Yields:
        Pieces of the text.
    """
    yield "{"
    for name, value in _head(summary).items():
        yield f'"{name}": {_text(value)},\n'
    yield from _list("episodes", describe_episodes(summary))
    yield from _list("groups", _groups(summary))
    yield from _list("findings", map(_finding, summary.findings))
    lost = lost_episodes(summary.findings, summary.table.episode_index.tolist())
    yield f'"exclude_episodes": {_text(lost)}}}\n'


def describe_failure(identity: Identity, error: StreamError) -> dict[str, Any]:
    """What is said where info.json cannot be used."""
    fault = {"message": error.message, "path": error.path, "hint": error.hint}
    return {"schema": SCHEMA, **asdict(identity), "error": fault}


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _list(name: str, values: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    separator = f'"{name}": [\n'
    for value in values:
        yield f"{separator}{_text(value)}"
        separator = ",\n"
    yield "],\n" if separator == ",\n" else f'"{name}": [],\n'


def _head(summary: Summary) -> dict[str, Any]:
    info, values, times = summary.info, summary.values, summary.times
    return {
        "schema": SCHEMA,
        **asdict(summary.identity),
        "codebase_version": info.codebase_version,
        "robot_type": info.robot_type,
        "fps": info.fps,
        "cost": summary.cost,
        "num_episodes": len(summary.table),
        "num_frames": summary.num_frames,
        "num_tasks": len(set(summary.table.tasks)),
        "rows_bytes": summary.rows_bytes,
        "video_bytes": summary.video_bytes,
        "rows_read": values and {"rows": values.num_rows, "complete": values.complete},
        "drift": times and {"edges_s": list(DRIFT_EDGES_S), "frames": times.drift_counts.tolist()},
        "cameras": [asdict(camera) for camera in summarise_cameras(summary)],
    }


def describe_episodes(summary: Summary) -> Iterator[dict[str, Any]]:
    """Describe each episode; see the module."""
    table = summary.table
    worst = gravest(summary.findings)
    rows = summary.rows.episode_bytes.tolist() if summary.rows else [-1] * len(table)
    for number, episode in enumerate(table.episode_index.tolist()):
        file = int(table.data_file[number])
        yield {
            "episode_index": episode,
            "length": int(table.length[number]),
            "tasks": table.tasks[number],
            "rows_path": table.data_paths[file] if file >= 0 else None,
            "rows_bytes": rows[number] if rows[number] >= 0 else None,
            "severity": worst.get(episode),
            "cameras": [
                _view(summary, number, camera, key)
                for camera, key in enumerate(summary.info.video_keys)
            ],
        }


def gravest(findings: Iterable[Finding]) -> dict[int, Severity]:
    """The gravest severity by episode, of those that are touched at all."""
    worst: dict[int, Severity] = {}
    for severity in reversed(SEVERITIES):
        for finding in findings:
            if finding.severity == severity:
                worst.update(dict.fromkeys(finding.episodes, severity))
    return worst


def _view(summary: Summary, number: int, camera: int, key: str) -> dict[str, Any]:
    table, videos, times = summary.table, summary.videos, summary.times
    file = int(table.video_file[key][number])
    view: dict[str, Any] = {
        "video_key": key,
        "path": table.video_paths[key][file] if file >= 0 else None,
        "first_frame": None,
        "bytes": None,
        "drift_s": None,
        "worst_frame": None,
    }
    if videos is not None and times is not None and videos.spans.placed[number, camera]:
        drift = float(times.drift_s[number, camera])
        view |= {
            "first_frame": int(videos.spans.first_frame[number, camera]),
            "bytes": int(videos.spans.mini_bytes[number, camera]),
            "drift_s": drift if np.isfinite(drift) else None,
            "worst_frame": int(times.worst_frame[number, camera]),
        }
    return view


def _groups(summary: Summary) -> Iterator[dict[str, Any]]:
    for group in group_findings(summary.findings):
        yield {
            "kind": group.kind.name,
            "severity": group.kind.severity,
            "title": group.kind.title,
            "summary": group.describe(len(summary.table)),
            "count": len(group.findings),
            "num_episodes": len(group.episodes),
            "video_keys": group.video_keys,
            "hints": group.hints,
        }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind.name,
        "severity": finding.severity,
        "scope": finding.scope,
        "message": finding.message,
        "path": finding.path or None,
        "episodes": finding.episodes,
        "video_key": finding.video_key,
        "expected": finding.expected or None,
        "found": finding.found or None,
        "hint": finding.hint,
    }
