"""What was found wrong or odd about a dataset, by place, and grouped by kind."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from lerobot_stream.counted import counted
from lerobot_stream.errors import StreamError
from lerobot_stream.inspect.kinds import FRAMES_DOUBTFUL, FRAMES_MISSING, SEVERITIES, Kind, Severity
from lerobot_stream.sidecar.spans import SpanProblem

Scope = Literal["dataset", "file", "episode"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault or oddity."""

    kind: Kind
    """What sort it is."""
    message: str
    """What is wrong, with numbers."""
    scope: Scope = "dataset"
    """What it is about as a whole."""
    path: str = ""
    """The file; empty where none is to blame."""
    episodes: tuple[int, ...] = ()
    """``episode_index`` of each episode that it touches, rising."""
    video_key: str | None = None
    """The camera; None where rows or metadata are meant."""
    expected: str = ""
    """What was promised."""
    found: str = ""
    """What is there."""
    advice: str | None = None
    """What to do about it, if better known than by its kind."""

    @property
    def severity(self) -> Severity:
        """How grave it is."""
        return self.kind.severity

    @property
    def hint(self) -> str | None:
        """What to do about it."""
        return self.advice or self.kind.hint or None

    @property
    def episode(self) -> int | None:
        """``episode_index`` where it is about one episode."""
        return self.episodes[0] if self.scope == "episode" else None

    def __str__(self) -> str:
        """Place first, then the message."""
        episode = None if self.episode is None else f"episode {self.episode}"
        place = ", ".join(part for part in (episode, self.video_key, self.path) if part)
        return f"{place}: {self.message}" if place else self.message


@dataclass(frozen=True, slots=True)
class Group:
    """Findings of one kind."""

    kind: Kind
    """What sort they are."""
    findings: tuple[Finding, ...]
    """At least one, in the order in which they were found."""

    @property
    def episodes(self) -> tuple[int, ...]:
        """Episodes that they touch, rising."""
        return tuple(sorted({episode for finding in self.findings for episode in finding.episodes}))

    @property
    def video_keys(self) -> tuple[str, ...]:
        """Cameras that they are about."""
        return tuple(dict.fromkeys(f.video_key for f in self.findings if f.video_key))

    @property
    def hints(self) -> tuple[str, ...]:
        """Every piece of advice once."""
        return tuple(dict.fromkeys(f.hint for f in self.findings if f.hint))

    def describe(self, num_episodes: int) -> str:
        """Say what they have in common, for example ``… one frame short: 50 of 50 episodes``.

        Args:
            num_episodes: Episodes of the dataset.
        """
        count = ""
        if self.findings[0].scope == "episode":
            count = f": {len(self.episodes)} of {counted(num_episodes, 'episode')}"
        elif self.findings[0].scope == "file":
            files = len({finding.path for finding in self.findings})
            count = f": {counted(files, 'file')}"
        elif len(self.findings) > 1:
            count = f": {len(self.findings)} times"
        cameras = f" ({', '.join(self.video_keys)})" if self.video_keys else ""
        return f"{self.kind.title}{count}{cameras}"


def group_findings(findings: Iterable[Finding]) -> list[Group]:
    """Put findings of one kind together, the gravest groups first."""
    groups: dict[Kind, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.kind, []).append(finding)
    made = [Group(kind, tuple(members)) for kind, members in groups.items()]
    return sorted(made, key=lambda group: SEVERITIES.index(group.kind.severity))


def lost_episodes(findings: Iterable[Finding], known: Collection[int]) -> list[int]:
    """List the episodes that errors touch, rising.

    Args:
        findings: Everything that was found.
        known: ``episode_index`` of the episodes in the table; no other can be left out.
    """
    errors = (finding for finding in findings if finding.severity == "error")
    return sorted({e for finding in errors for e in finding.episodes} & set(known))


def file_fault(
    kind: Kind, error: StreamError, path: str, *, episodes: Iterable[int] = (), holds: str = ""
) -> Finding:
    """Turn the fault of a whole file into a finding.

    Args:
        kind: What sort it is.
        error: The fault.
        path: The file.
        episodes: The episodes that are lost with it.
        holds: The same as text; may be empty.
    """
    parts = (error.path if error.path != path else None, error.where, error.message)
    reason = ": ".join(part for part in parts if part)
    message = f"{reason} ({holds})" if holds else reason
    return Finding(kind, message, "file", path, tuple(episodes), advice=error.hint)


def span_finding(problem: SpanProblem) -> Finding:
    """Turn a problem of one episode's place in its video into a finding."""
    return Finding(
        FRAMES_MISSING if problem.severity == "error" else FRAMES_DOUBTFUL,
        problem.message,
        "episode",
        problem.path,
        (problem.episode,),
        problem.video_key,
        problem.expected,
        problem.found,
        problem.hint,
    )
