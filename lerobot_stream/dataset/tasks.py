"""``meta/tasks.parquet``: the text of each task."""

from __future__ import annotations

from lerobot_stream.dataset.columns import column_values, placed, whole_array
from lerobot_stream.dataset.parquet import read_columns, read_footer
from lerobot_stream.errors import DatasetError, FormatError
from lerobot_stream.source.base import Source
from lerobot_stream.source.ranges import SourceFile

PATH = "meta/tasks.parquet"
_MAX_BYTES = 1 << 30  # they are all held in memory
_TEXT_COLUMNS = ("task", "__index_level_0__")  # the latter is a pandas index without a name


def read_tasks(source: Source) -> dict[int, str]:
    """Read the text of each task.

    Args:
        source: Where the dataset is read from.

    Returns:
        Text by ``task_index``; nothing where the dataset has no such file.

    Raises:
        FormatError: The file is torn, larger than 1 GiB, or has no column of texts.
        DatasetError: A task has two texts.
    """
    if PATH not in source.list_files():
        return {}
    with SourceFile(source, PATH) as file:
        if file.size() > _MAX_BYTES:
            message = f"wanted at most {_MAX_BYTES} bytes, found {file.size()}"
            raise FormatError(message, path=PATH)
        footer = read_footer(file)
        text = next((name for name in _TEXT_COLUMNS if name in footer.leaves), None)
        if text is None:
            found = ", ".join(footer.leaves)
            message = f"wanted a column {' or '.join(_TEXT_COLUMNS)}, found {found}"
            raise FormatError(message, path=PATH)
        table = read_columns(file, footer, range(footer.num_groups), ["task_index", text])
    with placed(PATH, "task_index"):
        numbers = whole_array(table.column("task_index")).tolist()
    with placed(PATH, text):
        texts = column_values(table.column(text))
    tasks: dict[int, str] = {}
    for number, words in zip(numbers, texts, strict=True):
        if not isinstance(words, str):
            raise FormatError(f"wanted a text, found {words!r}", path=PATH, where=f"task {number}")
        if tasks.setdefault(int(number), words) != words:
            message = f"has two texts, {tasks[int(number)]!r} and {words!r}"
            raise DatasetError(message, path=PATH, where=f"task {int(number)}")
    return tasks
