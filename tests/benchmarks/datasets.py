"""The datasets that are read: the same footage in several encodings, on one or two cameras."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.video.frame import PictureType

from tests.benchmarks.footage import FPS, HEIGHT, LENGTHS, WIDTH, Footage, episode_starts
from tests.lerobot import Camera, write_dataset

FILES = (0, 1, 2) * 25
"""Which file of the footage each file of a dataset repeats: 200 episodes."""
CAMERAS = ("observation.images.cam_high", "observation.images.cam_low")
_GENERATION = 3
"""Part of the folder's name; a change of what is written here needs another."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """A way to encode, as LeRobot or the wild have it."""

    title: str
    """For the table."""
    encoder: str
    """FFmpeg's name."""
    gop: int
    """Frames from one key frame to the next; episodes start with one."""
    options: Mapping[str, str]
    """Of the encoder."""


def _x264(gop: int, bframes: int) -> Encoding:
    params = f"keyint={gop}:min-keyint={gop}:scenecut=0:bframes={bframes}:forced-idr=1"
    note = ", B-frames" if bframes else ""
    options = {"preset": "fast", "crf": "18", "x264-params": params, "forced-idr": "1"}
    return Encoding(f"H.264 g={gop}{note}", "libx264", gop, options)


_SVT = {"preset": "10", "crf": "30", "svtav1-params": "keyint=2:scd=0"}
ENCODINGS: Mapping[str, Encoding] = {
    "av1-g2": Encoding("AV1 g=2", "libsvtav1", 2, _SVT),
    "h264-g2": _x264(2, 0),
    "h264-g30": _x264(30, 3),
    "h264-g250": _x264(250, 0),
}
"""The encodings by name."""


def lengths() -> tuple[int, ...]:
    """Frames of each episode of a dataset."""
    return tuple(length for file in FILES for length in LENGTHS[file])


def make_dataset(work_dir: Path, name: str, footage: Footage, *, cameras: int) -> Path:
    """Write a dataset, or find it as it was written before.

    Args:
        work_dir: Where datasets are kept.
        name: Of its encoding.
        footage: What it shows.
        cameras: How many cameras show it.

    Returns:
        The dataset's folder.
    """
    kind = "real" if footage.folder is not None else "drawn"
    root = work_dir / f"{kind}-{_GENERATION}" / f"{name}-{cameras}"
    if (root / "meta/info.json").exists():
        return root
    shutil.rmtree(root, ignore_errors=True)

    def write(path: Path, numbers: Sequence[int]) -> None:
        file = FILES[int(path.stem.removeprefix("file-"))]
        encoded = _encoded(root.parent, name, footage, file)
        try:
            os.link(encoded, path)
        except OSError:
            shutil.copyfile(encoded, path)

    per_file = [len(LENGTHS[file]) for file in FILES]
    camera = Camera(write, episodes_per_file=per_file, height=HEIGHT, width=WIDTH)
    num_frames = sum(lengths())
    rng = np.random.default_rng(0)
    write_dataset(
        root,
        lengths=lengths(),
        fps=FPS,
        cameras=dict.fromkeys(CAMERAS[:cameras], camera),
        features={
            key: rng.random((num_frames, 26), np.float32) for key in ("action", "observation.state")
        },
        episodes_per_data_file=1000,
    )
    return root


def _encoded(folder: Path, name: str, footage: Footage, file: int) -> Path:
    """One file of the footage in an encoding, made once."""
    encoding = ENCODINGS[name]
    recorded = footage.path(file)
    if recorded is not None and name == "av1-g2":
        return recorded
    path = folder / f"encoded/{name}-{file}.mp4"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part.mp4")
        _encode(unfinished, encoding, footage, file)
        unfinished.replace(path)
    return path


def _encode(path: Path, encoding: Encoding, footage: Footage, file: int) -> None:
    starts = episode_starts(file)
    with av.open(str(path), "w", format="mp4") as container:
        stream: Any = container.add_stream(
            encoding.encoder, rate=FPS, options=dict(encoding.options)
        )
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.gop_size = encoding.gop
        stream.codec_context.time_base = Fraction(1, FPS)
        for number, frame in enumerate(footage.frames(file)):
            picture = frame.reformat(format="yuv420p")
            picture.pts, picture.time_base = number, Fraction(1, FPS)
            picture.pict_type = PictureType.I if number in starts else PictureType.NONE
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
