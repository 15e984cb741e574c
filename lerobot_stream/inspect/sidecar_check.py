"""Everything that is wrong with a sidecar, seen beside its dataset."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lerobot_stream.dataset.holders import video_paths
from lerobot_stream.dataset.metadata import read_metadata
from lerobot_stream.errors import FormatError, SidecarError
from lerobot_stream.sidecar.schema import Sidecar
from lerobot_stream.sidecar.validate import Problem, Undecided, validate_sidecar
from lerobot_stream.source.base import Source


def check_sidecar(file: Path, source: Source, *, deep: bool) -> list[Problem]:
    """Compare a sidecar with its dataset as it is now.

    Args:
        file: The ``.npz`` file.
        source: The dataset.
        deep: Also read every movie box again and compare all arrays, and decode sampled frames
            through mini-MP4s and straight from the files.

    Returns:
        Every problem; none where the sidecar is right.

    Raises:
        StreamError: The dataset's metadata cannot be read, or frames cannot be decoded on this
            machine, so that nothing was decided.
    """
    meta = read_metadata(source)
    paths = video_paths(meta.episodes, meta.info.video_keys, np.arange(len(meta.episodes)))
    problems = validate_sidecar(file, source, paths=paths, recheck=deep)
    if not deep or any(isinstance(problem, Undecided) for problem in problems):
        return problems
    try:
        sidecar = Sidecar(file)
    except (FormatError, SidecarError):
        return problems  # told already
    # only this imports torch
    from lerobot_stream.inspect.decode_check import check_decoding

    try:
        return problems + check_decoding(source, meta, sidecar)
    finally:
        sidecar.close()
