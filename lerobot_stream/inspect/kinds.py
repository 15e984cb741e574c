"""Every kind of finding: how grave it is, what it is called, what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""The gravest first."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One sort of finding."""

    name: str
    """How JSON and tests call it."""
    severity: Severity
    """``error``: episodes cannot be read, or the dataset is not all there. ``warning``: it can
    be trained on, but somebody should look. ``info``: worth knowing, nothing to do."""
    title: str
    """Heads a group of findings, so that ``: 3 episodes`` may follow."""
    hint: str = ""
    """What to do, where a finding has no better advice."""


_EXCLUDE = "exclude the episodes"
_RECORD_AGAIN = "fetch the file again, or exclude its episodes"
_STATISTICS = "compute the statistics again; normalisation is wrong until then"

# the episode table
TABLE_ABSENT = Kind(
    "table-absent", "error", "there is no episode table", "fetch the folder meta/episodes"
)
TABLE_FILE = Kind(
    "table-file", "error", "a file of the episode table cannot be read", "fetch the file again"
)
TABLE_COLUMN = Kind(
    "table-column", "error", "a column of the episode table is missing", "repair meta/episodes"
)
EPISODE_TWICE = Kind(
    "episode-twice", "error", "episodes are listed twice", "remove one of the rows or files"
)
EPISODE_NEGATIVE = Kind(
    "episode-negative", "error", "episodes have a negative number", "repair meta/episodes"
)
EPISODE_MISSING = Kind(
    "episode-missing",
    "error",
    "episodes are missing from the table",
    "fetch meta/episodes again, or number the remaining episodes anew",
)
EPISODE_LENGTH = Kind(
    "episode-length", "error", "the length of an episode makes no sense", "repair meta/episodes"
)
EPISODES_SHORT = Kind(
    "episodes-short",
    "error",
    "the dataset is not complete",
    "fetch the rest of the dataset, or correct meta/info.json",
)
EPISODES_UNLISTED = Kind(
    "episodes-unlisted",
    "info",
    "rows of episodes that the table does not list",
    "the episode table can be written anew from them",
)
COUNTS = Kind("counts", "warning", "counts disagree", "correct meta/info.json")
TABLE_GAP = Kind(
    "table-gap",
    "warning",
    "the numbering of the episode table's files has gaps",
    "make sure that no file was lost",
)
COLUMN_TWICE = Kind(
    "column-twice",
    "warning",
    "a column is there twice",
    "write the file again; other readers refuse it",
)
COLUMN_ORDER = Kind("column-order", "info", "files have their columns in different order")
DATASET_INDEX = Kind(
    "dataset-index",
    "warning",
    "dataset_from_index or dataset_to_index contradicts the lengths",
    "nothing to do here, lengths are counted; other readers may pad or shift",
)
NO_EPISODES = Kind("no-episodes", "warning", "the dataset has no episodes", "record some first")
FEATURE_TYPE = Kind(
    "feature-type",
    "error",
    "a feature has a type that no tensor has",
    "correct dtype in meta/info.json; until then its values are not looked at, nor learnt",
)
SPLITS = Kind("splits", "info", "splits name episodes that are not there")

# layout and files
LAYOUT_MIXED = Kind(
    "layout-mixed",
    "warning",
    "files of the v2 layout lie beside those of v3",
    "remove them if they are left over from a conversion",
)
POINTER_NULL = Kind("pointer-null", "error", "the metadata names no file", _EXCLUDE)
FILE_MISSING = Kind("file-missing", "error", "a file is missing", _RECORD_AGAIN)
FILE_DAMAGED = Kind("file-damaged", "error", "a file cannot be read", _RECORD_AGAIN)
METADATA_FILE = Kind(
    "metadata-file", "error", "a metadata file cannot be read", "fetch the file again"
)
FILE_UNUSED = Kind("file-unused", "info", "no episode points to a file")
CARD = Kind("card", "info", "the dataset card contradicts meta/info.json")

# rows
ROWS_ELSEWHERE = Kind(
    "rows-elsewhere",
    "error",
    "rows are in another file than the metadata says",
    "correct data/chunk_index and data/file_index in meta/episodes, exclude the episodes, "
    "or train with --dataset.find_rows=true",
)
ROWS_MISSING = Kind(
    "rows-missing", "error", "rows are missing", "exclude the episodes, or fetch the file again"
)
ROWS_EXTRA = Kind("rows-extra", "error", "there are more rows than frames", _EXCLUDE)
ROWS_DISORDER = Kind(
    "rows-disorder", "error", "frame_index does not count from 0 without a gap", _EXCLUDE
)
ROWS_DAMAGED = Kind("rows-damaged", "error", "rows cannot be decoded", _RECORD_AGAIN)
GROUPS_SILENT = Kind(
    "groups-silent",
    "info",
    "row groups without statistics: finding an episode costs a read of its column",
)
GROUPS_SHARED = Kind("groups-shared", "info", "episodes share row groups")
GROUPS_LARGE = Kind(
    "groups-large",
    "warning",
    "reading an episode fetches many times its rows",
    "write the data files again with one row group an episode",
)
TIMES_STILL = Kind(
    "times-still", "warning", "timestamps do not rise", "look at the recording of these episodes"
)
ROW_TIMES = Kind(
    "row-times",
    "warning",
    "timestamps are not frame_index / fps",
    "rows are matched by counting; windows in seconds assume an even rate",
)
VALUES_NAN = Kind(
    "values-nan", "warning", "values are not numbers", "exclude the episodes, or repair the rows"
)
TASK_UNKNOWN = Kind(
    "task-unknown", "error", "task_index has no text in meta/tasks.parquet", "repair meta/tasks"
)
TASK_TEXT = Kind("task-text", "warning", "a task of the episode table is not in meta/tasks.parquet")
TASK_COUNT = Kind("task-count", "info", "counts of tasks disagree")

# statistics
STATS_ABSENT = Kind(
    "stats-absent", "warning", "statistics are missing", "compute them; training normalises by them"
)
STATS_COUNT = Kind("stats-count", "warning", "statistics are of other data", _STATISTICS)
STATS_VALUES = Kind("stats-values", "warning", "statistics do not describe the rows", _STATISTICS)
STATS_QUANTILES = Kind(
    "stats-quantiles",
    "warning",
    "quantiles do not describe the rows",
    "compute them again before normalising by quantiles",
)
STATS_NAN = Kind("stats-nan", "warning", "statistics are not numbers", _STATISTICS)
STATS_SHAPE = Kind(
    "stats-shape", "warning", "statistics have another shape than the feature", _STATISTICS
)
STATS_PICTURES = Kind(
    "stats-pictures", "warning", "statistics of pictures make no sense", _STATISTICS
)
CONSTANT = Kind(
    "constant",
    "warning",
    "dimensions never change",
    "normalising divides by their range or deviation, which is zero",
)
QUANTILES_ABSENT = Kind(
    "quantiles-absent",
    "info",
    "statistics have no quantiles",
    "they are needed only by policies that normalise by quantiles",
)

# videos
SPAN_LENGTH = Kind(
    "span-length",
    "warning",
    "from_timestamp to to_timestamp is not the episode's length",
    "length decides; look at the first and last frames",
)
SPAN_SHORT = Kind("to-timestamp-short", "info", "to_timestamp one frame short")
SPAN_OVERLAP = Kind(
    "span-overlap",
    "warning",
    "episodes overlap in their video file",
    "look at the last frames of the first and the first of the second",
)
FRAMES_MISSING = Kind(
    "frames-missing", "error", "a video does not hold an episode's frames", _EXCLUDE
)
FRAMES_DOUBTFUL = Kind("frames-doubtful", "warning", "an episode's place in its video is odd")
VIDEO_LONGER = Kind("video-longer", "info", "videos have frames that no episode uses")
DRIFT = Kind(
    "drift",
    "warning",
    "timestamps drift from the video",
    "frames are matched by counting, so pictures stay right",
)
VIDEO_TIMES = Kind(
    "video-times", "warning", "frames of a video share a time", "other readers may mix them up"
)
CODEC = Kind("codec", "warning", "the codec is not the one declared", "correct meta/info.json")
RESOLUTION = Kind(
    "resolution",
    "warning",
    "pictures have not the size declared",
    "correct meta/info.json; a batch needs one size",
)
RESOLUTION_MIXED = Kind(
    "resolution-mixed", "error", "pictures of one camera differ in size", _EXCLUDE
)
RATE = Kind(
    "rate", "warning", "a video's frame rate is not the one declared", "check the recording"
)
DEPTH = Kind(
    "depth",
    "warning",
    "pictures have more than 8 bits or hold depth",
    "they are decoded to 8 bits; depth loses its unit and range",
)
GOP_START = Kind("gop-start", "info", "episodes start inside a GOP")
GOP_LONG = Kind("gop-long", "info", "long GOPs make single frames dear")
PICTURES_DAMAGED = Kind("pictures-damaged", "error", "pictures cannot be decoded", _EXCLUDE)
PICTURES_FROZEN = Kind(
    "pictures-frozen", "warning", "a camera is frozen", "look at the episodes, exclude them"
)
PICTURES_BLACK = Kind(
    "pictures-black", "warning", "a camera is black", "look at the episodes, exclude them"
)
