from __future__ import annotations

import dataclasses

from lerobot_stream.errors import FormatError
from lerobot_stream.inspect import kinds
from lerobot_stream.inspect.finding import Finding, file_fault, group_findings, lost_episodes
from lerobot_stream.inspect.kinds import Kind
from tests.inspect.reports import OTHERS, REPORTS

ALL = [value for value in vars(kinds).values() if isinstance(value, Kind)]
SHORT = Kind("short", "info", "one frame short", "nothing")
TORN = Kind("torn", "error", "a file cannot be read")


def of_episode(episode: int, key: str | None = None, kind: Kind = SHORT) -> Finding:
    return Finding(kind, "off", "episode", "videos/a.mp4", (episode,), key)


def test_kinds_have_names_of_their_own() -> None:
    assert len({kind.name for kind in ALL}) == len(ALL) > 50


def test_an_error_says_what_to_do() -> None:
    assert [kind.name for kind in ALL if kind.severity == "error" and not kind.hint] == []


def test_every_error_and_warning_is_found_in_some_dataset() -> None:
    found = {name for r in [*REPORTS, *OTHERS] for name in (*r.errors, *r.warnings)}
    pictures = {"pictures-damaged", "pictures-frozen", "pictures-black"}  # by decoding
    alone = {"no-episodes", "span-overlap", "video-times"}
    assert {kind.name for kind in ALL if kind.severity != "info"} == found | pictures | alone


def test_a_group_counts_its_episodes_and_names_its_cameras() -> None:
    findings = [of_episode(episode, key) for key in ("top", "wrist") for episode in (4, 2, 0)]
    [group] = group_findings(findings)
    assert group.describe(50) == "one frame short: 3 of 50 episodes (top, wrist)"
    assert group.episodes == (0, 2, 4)
    assert group.hints == ("nothing",)


def test_files_are_counted_once() -> None:
    findings = [Finding(TORN, "gone", "file", path, (1, 2)) for path in ("a", "b", "a")]
    [group] = group_findings(findings)
    assert group.describe(9) == "a file cannot be read: 2 files"


def test_the_gravest_group_comes_first() -> None:
    groups = group_findings([of_episode(1), of_episode(2, kind=TORN), of_episode(3)])
    assert [group.kind.name for group in groups] == ["torn", "short"]


def test_only_errors_of_known_episodes_are_lost() -> None:
    findings = [
        of_episode(1),
        of_episode(7, kind=TORN),
        Finding(TORN, "gone", "file", "a", (3, 5, 99)),
    ]
    assert lost_episodes(findings, range(10)) == [3, 5, 7]


def test_a_place_comes_before_what_is_wrong() -> None:
    assert str(of_episode(3, "top")) == "episode 3, top, videos/a.mp4: off"
    assert str(Finding(TORN, "gone", "file", "a.mp4", (3,))) == "a.mp4: gone"
    assert str(dataclasses.replace(of_episode(3), scope="dataset", path="")) == "off"


def test_a_fault_of_a_file_keeps_its_place_and_advice() -> None:
    error = FormatError("size 9 does not fit", path="a.mp4", where="box at 8", hint="fetch it")
    finding = file_fault(TORN, error, "a.mp4", episodes=[1], holds="it holds the rows of episode 1")
    assert str(finding) == "a.mp4: box at 8: size 9 does not fit (it holds the rows of episode 1)"
    assert (finding.hint, finding.episode) == ("fetch it", None)
