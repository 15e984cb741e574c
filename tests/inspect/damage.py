"""Datasets with faults of the kinds that users meet, each a function that writes one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.lerobot import Camera, edit_episodes, edit_info, write_dataset
from tests.media import encode, ffmpeg

TOP, WRIST = "observation.images.top", "observation.images.wrist"
LENGTHS = (5, 3, 4, 6)
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"
DATA = "data/chunk-000/file-{:03d}.parquet"
TABLE = "meta/episodes/chunk-000/file-{:03d}.parquet"
TOP_FILE = f"videos/{TOP}/chunk-000/file-{{:03d}}.mp4"


def film(path: Path, numbers: Sequence[int], **options: Any) -> None:
    """Write a small clip that knows its frames."""
    encode(path, numbers, **options)


def base(root: Path, *, lengths: Sequence[int] = LENGTHS, **options: Any) -> Path:
    """Two cameras that roll over at different episodes, and two data files."""
    cameras = options.pop("cameras", None) or {
        TOP: Camera(film, episodes_per_file=2, width=96),
        WRIST: Camera(film, episodes_per_file=3, width=96),
    }
    write_dataset(root, lengths=lengths, cameras=cameras, **options)
    return root


def tables(root: Path, **options: Any) -> Path:
    """Rows only."""
    write_dataset(root, lengths=options.pop("lengths", LENGTHS), **options)
    return root


def edited(
    root: Path, change: Callable[[dict[str, Any]], object], *, episodes: Sequence[int] = range(99)
) -> Path:
    """Change the rows of some episodes in the episode table."""
    chosen = set(episodes)
    edit_episodes(root, lambda row: change(row) if row["episode_index"] in chosen else None)
    return root


def mistyped(root: Path, key: str, dtype: str) -> Path:
    """Let info.json name another type of a feature."""
    edit_info(root, lambda info: info["features"][key].update(dtype=dtype))
    return root


def cut(root: Path, path: str, keep: float) -> Path:
    """Keep the first part of a file."""
    data = (root / path).read_bytes()
    (root / path).write_bytes(data[: int(len(data) * keep)])
    return root


def restated(root: Path, key: str, **values: Any) -> Path:
    """Change the statistics of a feature; None takes one away."""
    path = root / "meta/stats.json"
    stats = json.loads(path.read_text())
    for name, value in values.items():
        stats[key][name] = value
        if value is None:
            del stats[key][name]
    path.write_text(json.dumps(stats))
    return root


def point(**places: Any) -> Callable[[dict[str, Any]], object]:
    """Change columns of the episode table; ``__`` stands for a slash."""
    return lambda row: row.update({key.replace("__", "/"): v for key, v in places.items()})


def stale_files(root: Path, *episodes: int) -> Path:
    """The converter's fault: episodes of the second data file that point at the first."""
    return edited(base(root), point(data__file_index=0), episodes=episodes)


def moved_and_lost(root: Path) -> Path:
    """One episode points at the wrong file, another has lost rows."""
    stale_files(root, 2)
    path = root / DATA.format(1)
    table = pq.read_table(path)
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table.slice(0, 4))
        writer.write_table(table.slice(4, 5))
    return root


def saw_tooth(root: Path) -> Path:
    """Places in the dataset that start anew with each data file; images inside Parquet."""
    tables(root, image_cameras={"observation.images.left": (16, 16)})

    def restart(row: dict[str, Any]) -> None:
        first = {2: 0, 3: 4}[row["episode_index"]]
        row |= {"dataset_from_index": first, "dataset_to_index": first + row["length"]}

    return edited(root, restart, episodes=(2, 3))


def merged(root: Path) -> Path:
    """All episodes of the first file point at the last one, behind its end."""

    def shift(row: dict[str, Any]) -> None:
        row |= {f"videos/{TOP}/file_index": 1}
        for side in ("from", "to"):
            row[f"videos/{TOP}/{side}_timestamp"] += 460.0

    return edited(base(root), shift, episodes=(0, 1))


def lost_table_file(root: Path) -> Path:
    """A file of the episode table is missing among others."""
    base(root, episodes_per_meta_file=1, files_per_chunk=2)
    (root / "meta/episodes/chunk-000/file-000.parquet").unlink()
    (root / "meta/episodes/chunk-001/file-000.parquet").unlink()
    return root


def reordered_tasks(root: Path) -> Path:
    """Tasks in another order than their numbers, the text in a column."""
    base(root, task_column="task")
    path = root / "meta/tasks.parquet"
    pq.write_table(pq.read_table(path).take([1, 0]), path)
    return root


def short_film(path: Path, numbers: Sequence[int]) -> None:
    """Hold back the last two frames."""
    encode(path, numbers[:-2])


def long_film(path: Path, numbers: Sequence[int]) -> None:
    """Go on for three frames that nobody wants."""
    encode(path, [*numbers, 900, 901, 902])


def one_camera(
    write: Callable[[Path, Sequence[int]], None], files: int = 2, width: int = 96
) -> dict[str, Camera]:
    """A single camera."""
    return {TOP: Camera(write, files, width=width)}


def swapped_files(root: Path) -> Path:
    """The first episodes lie in the second data file."""
    base(root)
    first, second = root / DATA.format(0), root / DATA.format(1)
    aside = first.with_name("aside")
    first.rename(aside)
    second.rename(first)
    aside.rename(second)
    return edited(root, lambda row: row.update({"data/file_index": 1 - row["data/file_index"]}))


def accumulated(root: Path) -> Path:
    """Many episodes at 30 a second; starts summed up in 32 bits."""
    write_dataset(root, lengths=[3] * 120, fps=30, cameras=one_camera(_film_30, 999))
    start = np.cumsum(np.full(120, np.float32(3 / 30)), dtype=np.float32) - np.float32(3 / 30)

    def sum_up(row: dict[str, Any]) -> None:
        seconds = float(start[row["episode_index"]])
        row[f"videos/{TOP}/from_timestamp"] = seconds
        row[f"videos/{TOP}/to_timestamp"] = seconds + 0.1

    return edited(root, sum_up, episodes=range(120))


def _film_30(path: Path, numbers: Sequence[int]) -> None:
    encode(path, numbers, fps=30)


def longer_promise(root: Path) -> Path:
    """to_timestamp promises more video than there are rows."""

    def more(row: dict[str, Any]) -> None:
        row[f"videos/{TOP}/to_timestamp"] += 0.3

    return edited(base(root), more, episodes=(1,))


def exporter(root: Path) -> Path:
    """Another program's habits: short spans, another codec, another folder for a camera."""
    cameras = {
        TOP: Camera(lambda path, numbers: encode(path, numbers, codec="mpeg4"), 4, width=96),
        WRIST: Camera(film, 4, width=96),
    }
    base(root, cameras=cameras)
    folder = root / "video"
    folder.mkdir()
    shutil.move(root / f"videos/{WRIST}", folder / WRIST)

    def declare(info: dict[str, Any]) -> None:
        info["features"][TOP]["info"] = {"video.codec": "h264"}

    edit_info(root, declare)

    def shorten(row: dict[str, Any]) -> None:
        for key in (TOP, WRIST):
            row[f"videos/{key}/to_timestamp"] -= 0.1

    return edited(root, shorten)


def partial(root: Path) -> Path:
    """Metadata of a whole of which a part was uploaded."""
    base(root)
    promised = {"total_episodes": 105, "total_frames": 27623, "splits": {"train": "0:105"}}
    edit_info(root, lambda info: info.update(promised))
    restated(root, "action", count=[27623])
    return root


def twice(root: Path) -> Path:
    """The episode table in two files, and the lists of v2 beside it."""
    base(root)
    shutil.copy(root / TABLE.format(0), root / "meta/episodes/episodes.parquet")
    (root / "meta/episodes.jsonl").write_text("{}\n")
    return root


def unplugged(root: Path) -> Path:
    """Recording stopped with every writer open."""
    base(root, episodes_per_meta_file=2)
    for path in (DATA.format(1), TABLE.format(1), TOP_FILE.format(1)):
        cut(root, path, 0.9)
    return root


def written_over(root: Path, path: str, data: bytes) -> Path:
    """Put other bytes in the place of a file."""
    (root / path).write_bytes(data)
    return root


def removed(root: Path, path: str) -> Path:
    """Take a file or folder away."""
    target = root / path
    if target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink()
    return root


def unlisted(root: Path) -> Path:
    """The last episodes are in the data files, not in the table."""
    base(root, episodes_per_meta_file=3)
    return removed(root, TABLE.format(1))


def other_order(root: Path) -> Path:
    """Files of the episode table with columns in another order, one of them twice."""
    base(root, episodes_per_meta_file=2)
    table = pq.read_table(root / TABLE.format(1))
    names = [*reversed(table.column_names), "length"]
    columns = [table.column(name) for name in names]
    pq.write_table(pa.Table.from_arrays(columns, names=names), root / TABLE.format(1))
    return root


def weighted_quantiles(root: Path) -> Path:
    """Quantiles of a merged set are the means of those of its unequal halves."""
    values = np.concatenate([np.zeros(60), np.linspace(10, 20, 20)]).astype(np.float32)
    tables(root, lengths=[40, 20, 20], features={"force": np.stack([values, values], axis=1)})
    true = {"q01": [0.0, 0.0], "q99": [19.8, 19.8]}
    low = {"q01": [2.5, 2.5], "q99": [5.0, 5.0]}
    restated(root, "force", **(true | low))
    return root


AT_ONCE: dict[str, Any] = {"row_group": 10**6, "episodes_per_data_file": 99}
"""One row group for all episodes."""


def tall_groups(root: Path) -> Path:
    """One row group for all episodes, of wide rows."""
    wide = np.random.default_rng(0).random((500, 5000), np.float32)
    return tables(root, lengths=[50] * 10, features={"tactile": wide}, **AT_ONCE)


def depth(root: Path) -> Path:
    """Depth as 12 bits of grey."""

    def film_depth(path: Path, numbers: Sequence[int]) -> None:
        clip = path.with_suffix(".8bit.mp4")
        encode(clip, numbers)
        ffmpeg("-i", clip, "-pix_fmt", "gray12le", "-c:v", "libx265", "-tag:v", "hvc1", path)
        clip.unlink()

    return base(root, cameras=one_camera(film_depth, 99), lengths=[3, 3])


def lagging(root: Path) -> Path:
    """A tag that lags behind: one task of several, and rows cut off."""
    base(root)
    path = root / "meta/tasks.parquet"
    pq.write_table(pq.read_table(path).slice(0, 1), path)
    table = pq.read_table(root / DATA.format(1))
    pq.write_table(table.slice(0, 8), root / DATA.format(1))
    return root


def still_times(episode: int, frame: int) -> float:
    """Two equal times in an episode of two frames."""
    return 0.0 if episode == 1 else frame / 10


def wall_clock(episode: int, frame: int) -> float:
    """A camera that ran slower than info.json says."""
    return 0.05 + frame * 0.1037


def hiccup(episode: int, frame: int) -> float:
    """A pause in one episode."""
    return frame / 10 + (0.4 if episode == 2 and frame > 1 else 0)


def short_order(root: Path) -> Path:
    """The frames of an episode count from 1."""
    base(root)
    path = root / DATA.format(1)
    table = pq.read_table(path)
    frame = np.array(table["frame_index"])
    frame[4:] += 1
    number = table.column_names.index("frame_index")
    table = table.set_column(number, "frame_index", pa.array(frame))
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table.slice(0, 4))
        writer.write_table(table.slice(4))
    return root


def bad_page(root: Path) -> Path:
    """A data file with a whole footer and a damaged page."""
    base(root)
    path = root / DATA.format(1)
    data = bytearray(path.read_bytes())
    chunk = pq.ParquetFile(path).metadata.row_group(1).column(0)
    data[chunk.data_page_offset : chunk.data_page_offset + 20] = b"\xff" * 20
    path.write_bytes(data)
    return root


def no_numbers(root: Path) -> Path:
    """A sensor that gave nothing in one episode."""
    values = np.arange(18, dtype=np.float32)
    values[6:8] = np.nan
    return tables(root, features={"force": values})


def between_frames(root: Path) -> Path:
    """Episodes start a third of a frame late in a file with frames to spare."""

    def shift(row: dict[str, Any]) -> None:
        for side in ("from", "to"):
            row[f"videos/{TOP}/{side}_timestamp"] += 0.03

    return edited(base(root, cameras=one_camera(long_film)), shift)


def odd_size(path: Path, numbers: Sequence[int]) -> None:
    """Write one file with pictures of another size."""
    encode(path, numbers, size=(64, 64) if path.name == "file-001.mp4" else (96, 64))


def fast_film(path: Path, numbers: Sequence[int]) -> None:
    """Write twice as many frames a second."""
    encode(path, numbers, fps=20)


def long_gop(path: Path, numbers: Sequence[int]) -> None:
    """Write one GOP."""
    encode(path, numbers, gop=250)


def one_short(row: dict[str, Any]) -> None:
    """End every video a frame early."""
    for key in (TOP, WRIST):
        row[f"videos/{key}/to_timestamp"] -= 0.1
