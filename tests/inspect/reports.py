"""What should be found in datasets like those of public bug reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.inspect.damage import (
    AT_ONCE,
    DATA,
    LFS,
    TABLE,
    TOP,
    TOP_FILE,
    WRIST,
    accumulated,
    bad_page,
    base,
    between_frames,
    cut,
    depth,
    edited,
    exporter,
    fast_film,
    film,
    hiccup,
    lagging,
    long_film,
    long_gop,
    longer_promise,
    lost_table_file,
    merged,
    mistyped,
    moved_and_lost,
    no_numbers,
    odd_size,
    one_camera,
    one_short,
    other_order,
    partial,
    point,
    removed,
    reordered_tasks,
    restated,
    saw_tooth,
    short_film,
    short_order,
    stale_files,
    still_times,
    swapped_files,
    tables,
    tall_groups,
    twice,
    unlisted,
    unplugged,
    wall_clock,
    weighted_quantiles,
    written_over,
)
from tests.recordings import WRITERS, record


@dataclass(frozen=True, slots=True)
class Report:
    """One input and what is found in it."""

    rows: str
    """Numbers of the reports."""
    name: str
    """What it is about."""
    make: Callable[[Path], object]
    """Writes the dataset."""
    errors: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Kinds of errors, and the episodes that each touches."""
    warnings: frozenset[str] = frozenset()
    """Kinds of warnings."""
    infos: frozenset[str] = frozenset()
    """Kinds of information that must be among those found."""
    says: str = ""
    """A pattern of one of the errors or warnings, or of the information without any."""


REPORTS = [
    Report("1,2,3,4,5,18", "cameras roll over where they like", base),
    Report(
        "6",
        "a stale file index",
        lambda root: stale_files(root, 2),
        {"rows-elsewhere": [2]},
        says=r"episode 2, data/.*file-000.parquet: .* are in data/chunk-000/file-001.parquet",
    ),
    Report(
        "7",
        "a whole file's pointers are stale",
        lambda root: stale_files(root, 2, 3),
        {"rows-elsewhere": [2, 3]},
    ),
    Report(
        "8",
        "a wrong pointer beside missing rows",
        moved_and_lost,
        {"rows-elsewhere": [2], "rows-missing": [3]},
        frozenset({"counts"}),
        says="episode 3, .*: 1 of 6 rows missing",
    ),
    Report(
        "9",
        "places saw-tooth across data files",
        saw_tooth,
        warnings=frozenset({"dataset-index"}),
        says="episode 2, .*dataset_from_index is 0, wanted 8",
    ),
    Report(
        "10,11,12",
        "merged episodes point behind the last video",
        merged,
        {"frames-missing": [0, 1]},
        says=rf"episode 0, {TOP}, videos/{TOP}/.*file-001.mp4: .*460 s",
    ),
    Report(
        "13",
        "the episode table in several folders",
        lambda root: base(root, episodes_per_meta_file=1, files_per_chunk=2),
    ),
    Report(
        "14",
        "files of the episode table are lost",
        lost_table_file,
        {"episode-missing": [0, 2], "episodes-short": []},
        frozenset({"table-gap", "counts", "stats-count"}),
        frozenset({"episodes-unlisted"}),
    ),
    Report("15", "tasks in another order", reordered_tasks),
    Report(
        "16",
        "episodes start inside a long GOP",
        lambda root: base(root, lengths=(8, 9, 7), cameras=one_camera(long_gop, 99)),
        infos=frozenset({"gop-start"}),
        says="episode 1, .*: its decoding starts 8 frames earlier, inside the one before",
    ),
    Report(
        "17",
        "to_timestamp is one frame short",
        lambda root: edited(base(root), one_short),
        infos=frozenset({"to-timestamp-short"}),
        says="are 4 frames, its length is 5",
    ),
    Report("19a", "file numbers that are not in order of index", swapped_files),
    Report("19b", "no video", tables),
    Report(
        "20",
        "wall-clock timestamps",
        lambda root: base(root, timestamps=wall_clock),
        warnings=frozenset({"drift"}),
        says="episode 3, .*: frame 5 is shown 0.0685 s away",
    ),
    Report(
        "21",
        "B-frames, open GOPs and an edit list",
        lambda root: record(root, WRITERS["h264-g30-b-open"]),
    ),
    Report(
        "22,23",
        "a hiccup inside one episode, none at its border",
        lambda root: base(root, timestamps=hiccup),
        warnings=frozenset({"drift"}),
        says=r"episode 2, .*: frame \d is shown 0.4 s away",
    ),
    Report(
        "24",
        "two equal times in an episode of two frames",
        lambda root: tables(root, lengths=(4, 2, 1), timestamps=still_times),
        warnings=frozenset({"times-still", "row-times"}),
        says="episode 1, .*: frame 1 is at 0 s, the one before it at 0 s",
    ),
    Report("25,26", "starts summed up in 32 bits", accumulated),
    Report(
        "27",
        "a drift of exactly the tolerance",
        lambda root: tables(root, timestamps=lambda _, frame: frame / 10 + 1e-4),
    ),
    Report(
        "28,29,30,31,32",
        "a video is shorter than its rows",
        lambda root: base(root, cameras=one_camera(short_film)),
        {"frames-missing": [1, 3]},
        says=r"episode 3, .*: 2 frames missing \(4 of 6\)",
    ),
    Report(
        "29b",
        "a video is longer than its rows",
        lambda root: base(root, cameras=one_camera(long_film)),
        infos=frozenset({"video-longer"}),
        says="3 of 11 frames",
    ),
    Report(
        "29c",
        "metadata promise more video than rows",
        longer_promise,
        warnings=frozenset({"span-length"}),
        says=r"episode 1, .*6 frames, its length is 3 \(\+3\)",
    ),
    Report(
        "33",
        "a length of 0",
        lambda root: edited(base(root), point(length=0), episodes=(1,)),
        {"episode-length": [1], "rows-extra": [1]},
        frozenset({"counts", "dataset-index", "stats-count"}),
        says="episode 1, .*says 0 frames, found 3 rows",
    ),
    Report(
        "34",
        "the habits of another exporter",
        exporter,
        {"file-missing": [0, 1, 2, 3]},
        frozenset({"codec"}),
        frozenset({"to-timestamp-short", "file-unused"}),
        says=f"videos/{WRIST}/chunk-000/file-000.mp4: .*; there is video/{WRIST}/",
    ),
    Report(
        "35",
        "a part of a dataset",
        partial,
        {"episodes-short": []},
        frozenset({"counts", "stats-count"}),
        frozenset({"splits"}),
        says="promises 105 episodes, the episode table has 4",
    ),
    Report(
        "36",
        "the episode table is there twice",
        twice,
        {"episode-twice": [0, 1, 2, 3]},
        frozenset({"layout-mixed"}),
        says=r"episode 0 is listed twice, and so are 3 others \(episodes 0-3\)",
    ),
    Report(
        "37",
        "a data file without a footer",
        lambda root: cut(base(root), DATA.format(1), 0.9),
        {"file-damaged": [2, 3]},
        says="file-001.parquet: has no Parquet footer: .* the rows of episodes 2-3",
    ),
    Report(
        "38",
        "an episode table without a footer",
        lambda root: cut(base(root), TABLE.format(0), 0.9),
        {"table-file": [], "episodes-short": []},
        frozenset({"counts"}),
        frozenset({"episodes-unlisted"}),
        says="file-000.parquet: has no Parquet footer",
    ),
    Report(
        "39,40,41",
        "recording stopped with every writer open",
        unplugged,
        {"table-file": [], "episodes-short": [], "file-damaged": []},
        frozenset({"counts", "stats-count", "stats-values"}),
    ),
    Report(
        "42",
        "episodes that the table does not list",
        unlisted,
        {"episodes-short": []},
        frozenset({"counts", "stats-count"}),
        frozenset({"episodes-unlisted"}),
        says="promises 4 episodes, the episode table has 3",
    ),
    Report(
        "43",
        "no episode table",
        lambda root: removed(base(root), "meta/episodes"),
        {"table-absent": [], "episodes-short": []},
        frozenset({"counts"}),
        says="there is no episode table in",
    ),
    Report(
        "44",
        "a Git-LFS pointer instead of rows",
        lambda root: written_over(base(root), DATA.format(0), LFS),
        {"file-damaged": [0, 1]},
        says="is a git-lfs pointer",
    ),
    Report(
        "45",
        "a Git-LFS pointer instead of statistics",
        lambda root: written_over(base(root), "meta/stats.json", LFS),
        {"metadata-file": []},
        says="meta/stats.json: is a git-lfs pointer",
    ),
    Report(
        "46",
        "null pointers",
        lambda root: edited(
            base(root), point(data__chunk_index=None, data__file_index=None), episodes=(1,)
        ),
        {"pointer-null": [1]},
        says="episode 1, meta/episodes/: one of chunk_index, file_index",
    ),
    Report(
        "47",
        "a file cut off in a cache",
        lambda root: cut(base(root), TOP_FILE.format(0), 0.5),
        {"file-damaged": [0, 1]},
        says="does not fit, the file has .* bytes left",
    ),
    Report(
        "49",
        "statistics of one of the merged sets",
        lambda root: restated(base(root), "episode_index", max=[1.0], mean=[0.4]),
        warnings=frozenset({"stats-count", "stats-values"}),
        says="episode_index: max is 1, the last one is 3",
    ),
    Report(
        "50",
        "quantiles that are means of quantiles",
        weighted_quantiles,
        warnings=frozenset({"stats-quantiles"}),
        says="force, dimension 0: q99 is 5, which 75 % of the rows lie below",
    ),
    Report(
        "51",
        "no quantiles",
        tables,
        infos=frozenset({"quantiles-absent"}),
        says="action, observation.state: no q01 and q99",
    ),
    Report(
        "52",
        "a dimension that never changes",
        lambda root: tables(
            root, features={"grip": np.stack([np.arange(18), np.ones(18)], 1).astype(np.float32)}
        ),
        warnings=frozenset({"constant"}),
        says="grip: dimension 1 of 2 never changes",
    ),
    Report(
        "53",
        "statistics of pictures that ran over",
        lambda root: restated(base(root), TOP, max=[[[255.0]]] * 3),
        warnings=frozenset({"stats-pictures"}),
        says="max is 255 to 255; pictures are in",
    ),
    Report(
        "54",
        "nested arrays",
        lambda root: tables(
            root, features={"pose": np.arange(108, dtype=np.float32).reshape(18, 2, 3)}
        ),
    ),
    Report(
        "55",
        "images inside the rows",
        lambda root: tables(root, image_cameras={"observation.images.left": (16, 16)}),
    ),
    Report(
        "56",
        "columns in another order",
        other_order,
        warnings=frozenset({"column-twice"}),
        infos=frozenset({"column-order"}),
        says="length is there twice",
    ),
    Report(
        "57",
        "one row group for all episodes",
        lambda root: base(root, **AT_ONCE, statistics=False),
        infos=frozenset({"groups-shared", "groups-silent"}),
        says="1 of 1 row group; reading an episode fetches .* 4 times its rows",
    ),
    Report(
        "58",
        "row groups far larger than an episode",
        tall_groups,
        warnings=frozenset({"groups-large"}),
        says="times its rows",
    ),
    Report("59", "depth", depth, warnings=frozenset({"depth"}), says="a value has 12 bits"),
    Report(
        "60",
        "the layout of v2 under a label of v3",
        lambda root: written_over(removed(base(root), "meta/episodes"), "meta/episodes.jsonl", b""),
        {"table-absent": [], "episodes-short": []},
        frozenset({"counts"}),
        says="info.json says v3, but the episodes are listed in the file of v2",
    ),
    Report(
        "61",
        "a tag that lags behind",
        lagging,
        {"task-unknown": [1, 3], "rows-missing": [3]},
        frozenset({"counts", "task-text"}),
        frozenset({"task-count"}),
        says="task_index 1 is not among its 1 task$",
    ),
    Report(
        "66",
        "a video that was never fetched",
        lambda root: removed(base(root), TOP_FILE.format(1)),
        {"file-missing": [2, 3]},
        says="file-001.mp4: there is no such file",
    ),
]
"""Reports whose dataset can be looked at; the others are tests of their own."""


OTHERS = [
    Report(
        "-",
        "a negative episode",
        lambda root: edited(tables(root), point(episode_index=-1), episodes=(3,)),
        {"episode-negative": [-1], "episodes-short": []},
        frozenset({"counts", "stats-count"}),
        says="found an episode -1",
    ),
    Report(
        "-",
        "a column less in the episode table",
        lambda root: edited(tables(root), lambda row: row.pop("data/file_index")),
        {"table-column": [], "pointer-null": [0, 1, 2, 3]},
        says="no file of the episode table has a column data/file_index",
    ),
    Report(
        "-",
        "frames that count from 1",
        short_order,
        {"rows-disorder": [3]},
        frozenset({"stats-values", "drift"}),
        says="episode 3, .*: no row of 6 has frame_index 0",
    ),
    Report(
        "-",
        "a damaged page",
        bad_page,
        {"rows-damaged": [3]},
        says="can't be decoded.*they hold rows of episode 3",
    ),
    Report(
        "-",
        "values that are no numbers",
        no_numbers,
        warnings=frozenset({"values-nan", "stats-nan"}),
        says="force has NaN or infinite values in 1 episode$",
    ),
    Report(
        "-",
        "a type that no tensor has",
        lambda root: mistyped(tables(root), "action", "float128"),
        {"feature-type": []},
        says="feature action has dtype float128, which is no type of a tensor",
    ),
    Report(
        "-",
        "no statistics",
        lambda root: removed(tables(root), "meta/stats.json"),
        warnings=frozenset({"stats-absent"}),
    ),
    Report(
        "-",
        "statistics of another shape",
        lambda root: restated(tables(root), "action", min=[0.0]),
        warnings=frozenset({"stats-shape"}),
        says=r"action: 1 value for shape \[2\]",
    ),
    Report(
        "-",
        "episodes between two frames",
        between_frames,
        warnings=frozenset({"frames-doubtful", "drift"}),
        infos=frozenset({"video-longer"}),
        says="0.3 frames from the frame at",
    ),
    Report(
        "-",
        "pictures of another size than declared",
        lambda root: base(root, cameras=one_camera(film, width=128)),
        warnings=frozenset({"resolution"}),
        says="info.json says 128×64, the file has 96×64",
    ),
    Report(
        "-",
        "pictures of two sizes",
        lambda root: base(root, lengths=(5, 3, 4, 6, 2), cameras=one_camera(odd_size)),
        {"resolution-mixed": [2, 3]},
        frozenset({"resolution"}),
        says="pictures are 64×64, those of most other files 96×64",
    ),
    Report(
        "-",
        "another frame rate than declared",
        lambda root: base(root, cameras=one_camera(fast_film, 1)),
        warnings=frozenset({"rate", "drift"}),
        says="info.json says 10 frames a second, the file has 20",
    ),
    Report(
        "-",
        "a card of another day",
        lambda root: written_over(
            tables(root), "README.md", b'x\n```json\n{"total_episodes": 9, "fps": 10}\n```\n'
        ),
        infos=frozenset({"card"}),
        says="total_episodes is 9 in the card, 4 in info.json",
    ),
]
"""Further faults, nobody's report."""
