"""Equal settings make equal batches, whatever threads and workers do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from lerobot_stream.train.config import ImageTransformsConfig, TrainConfig
from lerobot_stream.train.distributed import Ranks
from lerobot_stream.train.open_data import open_training_data, read_header
from lerobot_stream.train.policies.base import Batch
from tests.recordings import FPS, TOP, WRITERS, record
from tests.train import processes  # noqa: F401 - workers are forked from its server
from tests.train.tiny import tiny_config


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of two cameras kept as video."""
    return record(tmp_path_factory.mktemp("same") / "set", WRITERS["h264-g30-b-open"]).root


def taken(config: TrainConfig, count: int = 9) -> list[Batch]:
    windows = {TOP: [0.0, 1 / FPS], "action": [0.0, 1 / FPS]}
    header = read_header(config.dataset)
    batches = iter(open_training_data(config, header, windows, Ranks(0, 1, torch.device("cpu"))))
    found = [next(batches) for _ in range(count)]
    batches.close()
    return found


def assert_bit_equal(found: list[Batch], wanted: list[Batch]) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert one.keys() == other.keys()
        for key, value in one.items():
            if isinstance(value, torch.Tensor):
                assert value.dtype == other[key].dtype
                assert torch.equal(value, other[key]), key
            else:
                assert value == other[key]


def settings(data: Path, output: Path, *, enable: bool = True, **reading: Any) -> TrainConfig:
    changes = ImageTransformsConfig(enable=enable, max_num_transforms=2, random_order=True)
    small = {"image_transforms": changes, "streaming_decoded_pool_gb": 0.01}
    return tiny_config(
        data,
        output,
        dataset=small | reading,
        dataloader_multiprocessing_context="forkserver",
    )


@pytest.mark.filterwarnings("ignore:This DataLoader will create 3 worker processes")
@pytest.mark.parametrize(
    ("num_workers", "strategy"), [(0, "remaining"), (0, "clip"), (3, "remaining")]
)
def test_threads_change_no_bit_of_a_batch(
    data: Path, tmp_path: Path, num_workers: int, strategy: str
) -> None:
    config = settings(data, tmp_path, streaming_sampling_strategy=strategy)
    config = replace(config, num_workers=num_workers)
    threads = replace(config.dataset, streaming_decode_threads=4, streaming_decoded_queue_size=2)
    assert_bit_equal(taken(replace(config, dataset=threads)), taken(config))


def test_pictures_are_changed_where_asked(data: Path, tmp_path: Path) -> None:
    (changed,) = taken(settings(data, tmp_path), count=1)
    (plain,) = taken(settings(data, tmp_path, enable=False), count=1)
    assert torch.equal(changed["index"], plain["index"])
    assert not torch.equal(changed[TOP], plain[TOP])
