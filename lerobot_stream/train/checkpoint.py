"""Checkpoint folders that appear whole or not at all, and ``last``, which points to the newest.

<output_dir>/checkpoints/
├── 000020/
│   ├── pretrained_model/   the policy: what LeRobot loads
│   └── training_state/     what resuming needs
└── last -> 000020
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from safetensors import SafetensorError

from lerobot_stream.errors import CheckpointError

CHECKPOINTS = "checkpoints"
LAST = "last"
PRETRAINED_MODEL = "pretrained_model"
TRAINING_STATE = "training_state"
TRAIN_CONFIG = "train_config.json"
STREAM_STATE = "stream_state.json"
_UNFINISHED = ".unfinished-"
_DISCARDED = ".discarded-"


def step_name(step: int, steps: int) -> str:
    """Name of the folder of a step in a run of ``steps``."""
    return f"{step:0{max(6, len(str(steps)))}d}"


def save_checkpoint(
    checkpoints: Path, name: str, write: Callable[[Path], None], *, keep: int | None
) -> Path:
    """Write a checkpoint, then let ``last`` point to it.

    A kill at any moment leaves ``last`` at a whole checkpoint: the former, or this one.

    Args:
        checkpoints: Folder of all checkpoints of the run; one process writes there.
        name: Name of this one. A checkpoint of that name is replaced.
        write: Fills a folder; it finds ``pretrained_model`` and ``training_state`` in it.
        keep: Newest checkpoints to keep, this one included; None keeps all.

    Returns:
        The checkpoint's folder.

    Raises:
        CheckpointError: The disk does not take it; the former checkpoint stays, and what was
            written of this one is gone.
    """
    folder = checkpoints / name
    with disk_faults(folder, hint="the checkpoint before it is untouched"):
        checkpoints.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(checkpoints)
        try:
            _write_whole(folder, write)
            _point(checkpoints / LAST, name)
            if keep is not None:
                _prune(checkpoints, keep)
        except BaseException:
            with suppress(OSError):  # the error that is told is the first one
                _remove_leftovers(checkpoints)
            raise
        _remove_leftovers(checkpoints)
    return folder


def find_checkpoint(config_path: Path) -> Path:
    """Find the checkpoint that a ``train_config.json`` lies in.

    Args:
        config_path: ``…/<step>/pretrained_model/train_config.json``, ``last`` allowed.

    Returns:
        Its folder, with ``last`` resolved.

    Raises:
        CheckpointError: There is none, or another program wrote it.
    """
    if config_path.is_dir():
        raise CheckpointError(
            "is a folder, wanted the train_config.json in it",
            path=str(config_path),
            hint=f"--config_path=…/checkpoints/last/{PRETRAINED_MODEL}/{TRAIN_CONFIG}",
        )
    folder = config_path.resolve().parent.parent
    for part in (config_path, folder / PRETRAINED_MODEL, folder / TRAINING_STATE):
        if not part.exists():
            raise CheckpointError(
                f"wanted a checkpoint's {PRETRAINED_MODEL}/{TRAIN_CONFIG} with {TRAINING_STATE} "
                f"beside it, {part} is not there",
                path=str(config_path),
            )
    if not (folder / TRAINING_STATE / STREAM_STATE).is_file():
        raise CheckpointError(
            f"has no {STREAM_STATE}: another program wrote it",
            path=str(folder / TRAINING_STATE),
            hint=f"start a new run from its weights with --policy.path={folder / PRETRAINED_MODEL}",
        )
    return folder


def list_checkpoints(checkpoints: Path) -> list[Path]:
    """List the whole checkpoints of a run, oldest step first."""
    if not checkpoints.is_dir():
        return []
    steps = [entry for entry in checkpoints.iterdir() if entry.name.isdigit() and entry.is_dir()]
    return sorted(steps, key=lambda entry: int(entry.name))


def _write_whole(folder: Path, write: Callable[[Path], None]) -> None:
    unfinished = folder.parent / f"{_UNFINISHED}{folder.name}"
    for part in (PRETRAINED_MODEL, TRAINING_STATE):
        (unfinished / part).mkdir(parents=True)
    write(unfinished)
    _sync_tree(unfinished)
    _install(unfinished, folder)


def _install(unfinished: Path, folder: Path) -> None:
    """Rename a whole checkpoint to its name, never leaving ``last`` without one."""
    if folder.exists():
        last = folder.parent / LAST
        if last.exists() and last.resolve() == folder.resolve():
            # `last` must not dangle between the two renames below, so that it first points to
            # a copy made of hard links.
            spare = folder.parent / f"{_DISCARDED}spare-{folder.name}"
            shutil.copytree(unfinished, spare, copy_function=os.link)
            _point(last, spare.name)
        folder.rename(folder.parent / f"{_DISCARDED}{folder.name}")
    unfinished.rename(folder)
    _sync(folder.parent)


def _point(link: Path, name: str) -> None:
    temporary = link.parent / f"{_UNFINISHED}{LAST}"
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(name)
    temporary.replace(link)
    _sync(link.parent)


def _prune(checkpoints: Path, keep: int) -> None:
    last = (checkpoints / LAST).resolve()
    for folder in list_checkpoints(checkpoints)[:-keep]:
        if folder.resolve() != last:
            folder.rename(checkpoints / f"{_DISCARDED}{folder.name}")


def _remove_leftovers(checkpoints: Path) -> None:
    """Delete what is half-written or half-deleted, but never what ``last`` names."""
    last = (checkpoints / LAST).resolve()
    for entry in list(checkpoints.iterdir()):
        if entry.name.startswith((_UNFINISHED, _DISCARDED)) and entry.resolve() != last:
            if entry.is_symlink():
                entry.unlink()
            else:
                shutil.rmtree(entry)


def _sync_tree(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def disk_faults(path: Path, *, hint: str | None = None) -> Iterator[None]:
    """Say what the disk refuses as a CheckpointError.

    Args:
        path: What is being written.
        hint: What to do about it.
    """
    try:
        yield
    except (OSError, SafetensorError) as error:  # the latter has errors of the disk, too
        message = f"cannot be written ({getattr(error, 'strerror', None) or error})"
        raise CheckpointError(message, path=str(path), hint=hint) from error
