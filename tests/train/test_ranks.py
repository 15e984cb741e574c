"""Ranks that train together make the run of one process that gets all their batches."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from lerobot_stream.train.checkpoint import find_checkpoint
from lerobot_stream.train.config import TrainConfig
from lerobot_stream.train.data import StreamedData
from lerobot_stream.train.distributed import Ranks
from lerobot_stream.train.loop import train
from lerobot_stream.train.open_data import open_training_data, read_header
from lerobot_stream.train.policies.base import Batch
from lerobot_stream.train.training_state import read_state
from tests.train.jobs import NO_NOISE, train_and_record
from tests.train.processes import run_ranks
from tests.train.tiny import tiny_config, write_tiny_dataset

LENGTHS = (9, 3, 14, 6, 1, 11, 5, 7)
NUM_FRAMES = sum(LENGTHS)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of uneven episodes."""
    root = tmp_path_factory.mktemp("uneven") / "data"
    write_tiny_dataset(root, camera=False, lengths=LENGTHS)
    return root


class Recorded:
    """Batches that were taken before, as the data of a run."""

    num_frames = NUM_FRAMES
    num_episodes = len(LENGTHS)
    num_items = 0

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches

    def __iter__(self) -> Generator[Batch]:
        yield from self._batches

    def restore(self, state: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def restore_job(self, states: Sequence[Mapping[str, Any]]) -> None:
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        return {}


def record(config: TrainConfig, *, ranks: int, folder: Path) -> list[list[Batch]]:
    """Train on several ranks; the batches that each has taken."""
    folder.mkdir()
    ended = run_ranks(train_and_record, config, folder, count=ranks, folder=folder)
    assert [one.code for one in ended] == [0] * ranks, ended
    files = [sorted(folder.glob(f"rank{rank}-*.pt")) for rank in range(ranks)]
    return [[torch.load(file) for file in of_rank] for of_rank in files]


def joined(parts: Sequence[Batch]) -> Batch:
    """One batch of several."""
    return {
        key: torch.cat([part[key] for part in parts])
        if isinstance(value, torch.Tensor)
        else [text for part in parts for text in part[key]]
        for key, value in parts[0].items()
    }


def indices(batches: Sequence[Batch]) -> list[int]:
    return [index for batch in batches for index in batch["index"].tolist()]


def losses(output: Path) -> list[dict[str, float]]:
    lines = map(json.loads, (output / "metrics.jsonl").read_text().splitlines())
    return [{name: line[name] for name in ("step", "loss", "grad_norm")} for line in lines]


@pytest.mark.parametrize("count", [2, 4])
def test_ranks_learn_what_one_process_does_from_all_their_batches(
    data: Path, tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes: dict[str, Any] = {"policy": NO_NOISE, "batch_size": 3, "log_freq": 1, "save_freq": 99}
    steps = NUM_FRAMES // (3 * count) + 3  # past the end of the epoch
    config = tiny_config(data, tmp_path / "ranks", **changes, steps=steps)
    batches = record(config, ranks=count, folder=tmp_path / "taken")
    assert [len(of_rank) for of_rank in batches] == [steps] * count
    seen = Counter(index for of_rank in batches for index in indices(of_rank))
    assert seen.keys() == set(range(NUM_FRAMES))
    assert set(seen.values()) == {1, 2}

    together = Recorded([joined(parts) for parts in zip(*batches, strict=True)])
    monkeypatch.setattr("lerobot_stream.train.start.open_training_data", lambda *_: together)
    alone = replace(config, output_dir=str(tmp_path / "alone"), batch_size=3 * count)
    train(alone, console=Console(quiet=True))
    for found, wanted in zip(losses(tmp_path / "ranks"), losses(tmp_path / "alone"), strict=True):
        assert found == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("count", [2, 4])
def test_each_rank_sees_its_frames_once_an_epoch(data: Path, tmp_path: Path, count: int) -> None:
    config = tiny_config(data, tmp_path)
    header = read_header(config.dataset)
    seen = []
    for rank in range(count):
        own = open_training_data(config, header, {}, Ranks(rank, count, torch.device("cpu")))
        assert isinstance(own, StreamedData)
        share = own.dataset.plan(worker=0, num_workers=1).num_items
        batches = iter(own)
        items = indices([next(batches) for _ in range(-(-3 * share // 4))])
        batches.close()
        for epoch in range(3):
            part = items[epoch * share : (epoch + 1) * share]
            assert set(part) == set(items[:share])
            assert len(set(part)) == share
        seen += items[:share]
    assert sorted(seen) == list(range(NUM_FRAMES))


def elastic(config: TrainConfig, **changes: Any) -> TrainConfig:
    """The settings that continue a run with other ranks or batches."""
    path = Path(str(config.output_dir)) / "checkpoints/last/pretrained_model/train_config.json"
    return replace(config, resume=True, resume_elastic=True, config_path=str(path), **changes)


def test_a_run_goes_on_with_fewer_and_more_ranks_and_sees_each_frame_once(
    data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    config = tiny_config(data, out, steps=2, log_freq=1, save_freq=1, batch_size=4)
    taken = record(config, ranks=4, folder=tmp_path / "four")
    config = elastic(config, steps=4, batch_size=3)
    taken += record(config, ranks=2, folder=tmp_path / "two")
    config = elastic(config, steps=5, batch_size=1)
    taken += record(config, ranks=3, folder=tmp_path / "three")
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5]
    assert [line["items"] for line in lines] == [16, 32, 38, 44, 47]

    state = read_state(find_checkpoint(Path(str(config.config_path))) / "training_state")
    assert state.base is not None
    rest = open_training_data(
        config, read_header(config.dataset), {}, Ranks(0, 1, torch.device("cpu"))
    )
    rest.restore_job([{**stream, "base": state.base} for stream in state.stream])
    assert isinstance(rest, StreamedData)
    assert rest.num_items == 47
    left = rest.dataset.base.next_epoch * NUM_FRAMES - 47
    batches = iter(rest)
    taken.append([next(batches) for _ in range(left)])
    batches.close()
    seen = Counter(index for of_rank in taken for index in indices(of_rank))
    epochs = rest.dataset.base.next_epoch
    assert seen == Counter(dict.fromkeys(range(NUM_FRAMES), epochs))
