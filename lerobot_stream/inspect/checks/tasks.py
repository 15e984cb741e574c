"""Whether tasks join: texts of the episode table, numbers of the rows, and tasks.parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lerobot_stream.counted import counted
from lerobot_stream.dataset.episode_faults import FOLDER
from lerobot_stream.dataset.tasks import PATH
from lerobot_stream.dataset.version import INFO_PATH
from lerobot_stream.inspect.facts import Facts
from lerobot_stream.inspect.finding import Finding
from lerobot_stream.inspect.kinds import TASK_COUNT, TASK_TEXT, TASK_UNKNOWN


def check_task_texts(facts: Facts) -> Iterator[Finding]:
    """Compare the episodes' texts with those of tasks.parquet."""
    if facts.tasks is None:
        return
    known = set(facts.tasks.values())
    unknown: dict[str, list[int]] = {}
    checked = {texts: [t for t in texts if t not in known] for texts in set(facts.table.tasks)}
    for episode, texts in zip(facts.table.episode_index.tolist(), facts.table.tasks, strict=True):
        for text in checked[texts]:
            unknown.setdefault(text, []).append(episode)
    for text, episodes in unknown.items():
        held, tasks = counted(len(episodes), "episode"), counted(len(known), "task")
        message = f"{text!r} of {held} is not among its {tasks}"
        yield Finding(TASK_TEXT, message, path=FOLDER, episodes=tuple(episodes), found=text)
    promised = facts.info.raw.get("total_tasks")
    if isinstance(promised, int) and promised != len(facts.tasks):
        yield Finding(
            TASK_COUNT,
            f"info.json promises {counted(promised, 'task')}, {PATH} has {len(facts.tasks)}",
            path=INFO_PATH,
            expected=str(promised),
            found=str(len(facts.tasks)),
        )


def check_task_numbers(
    unknown: Mapping[int, tuple[int, ...]], tasks: Mapping[int, str]
) -> Iterator[Finding]:
    """Report numbers of rows that have no text.

    Args:
        unknown: Episodes by ``task_index``, for each number without a text.
        tasks: The texts.
    """
    for number, episodes in sorted(unknown.items()):
        message = f"task_index {number} is not among its {counted(len(tasks), 'task')}"
        yield Finding(TASK_UNKNOWN, message, path=PATH, episodes=episodes, found=str(number))
