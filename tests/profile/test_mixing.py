"""Mixing is measured over the batches of a rank as its loader hands them out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from torch.utils.data import DataLoader

from lerobot_stream.plan.mixing import measure_mixing
from lerobot_stream.profile.mixing import plan_mixing
from lerobot_stream.stream.dataset import StreamingLeRobotDataset
from tests.lerobot import Written, write_dataset

LENGTHS = (30, 20, 40, 10, 25, 35)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    root: Path = tmp_path_factory.mktemp("mixing") / "set"
    return write_dataset(root, lengths=LENGTHS, fps=5)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_the_plan_mixes_as_what_is_delivered(written: Written, num_workers: int) -> None:
    dataset = StreamingLeRobotDataset("a/b", root=written.root, episode_pool_size=2)
    batches = list(
        DataLoader(
            dataset.worker_batches(8),
            batch_size=None,
            num_workers=num_workers,
            multiprocessing_context="spawn" if num_workers else None,
        )
    )
    planned = plan_mixing(dataset.opened, dataset.config, batch_size=8, num_workers=num_workers)
    whole = [batch for batch in batches if len(batch["task"]) == 8]
    delivered = measure_mixing(
        np.concatenate([batch["episode_index"].numpy() for batch in whole]),
        np.concatenate([batch["frame_index"].numpy() for batch in whole]).astype(np.int32),
        np.array(LENGTHS),
        batch_size=8,
        second_frames=5,
    )
    assert planned is not None
    count = len(whole) - num_workers  # where short batches come, turns differ
    assert np.array_equal(planned.effective_episodes[:count], delivered.effective_episodes[:count])
    assert np.array_equal(planned.near_neighbours[:count], delivered.near_neighbours[:count])


def test_an_epoch_without_a_whole_batch_has_no_mixing(written: Written) -> None:
    dataset = StreamingLeRobotDataset("a/b", root=written.root)
    for batch_size in (1, 1000):
        assert (
            plan_mixing(dataset.opened, dataset.config, batch_size=batch_size, num_workers=0)
            is None
        )
