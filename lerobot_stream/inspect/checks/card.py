"""Whether the dataset card repeats what info.json says."""

from __future__ import annotations

from collections.abc import Iterator

from lerobot_stream.inspect.facts import CARD_PATH, Facts
from lerobot_stream.inspect.finding import Finding
from lerobot_stream.inspect.kinds import CARD

_REPEATED = (
    "codebase_version",
    "robot_type",
    "total_episodes",
    "total_frames",
    "total_tasks",
    "fps",
    "data_path",
    "video_path",
)


def check_card(facts: Facts) -> Iterator[Finding]:
    """Compare the values that the card repeats; info.json is what is read."""
    for name in _REPEATED:
        said, true = facts.card.get(name), facts.info.raw.get(name)
        if name in facts.card and said != true:
            yield Finding(
                CARD,
                f"{name} is {said!r} in the card, {true!r} in info.json",
                path=CARD_PATH,
                expected=repr(true),
                found=repr(said),
            )
