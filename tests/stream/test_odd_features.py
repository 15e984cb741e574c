"""Features that info.json describes in unusual ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from lerobot_stream.errors import DatasetError
from lerobot_stream.stream.dataset import StreamingLeRobotDataset
from tests.lerobot import edit_info, write_dataset


def test_columns_that_are_no_numbers_are_lists_of_what_they_hold(tmp_path: Path) -> None:
    written = write_dataset(tmp_path, lengths=[3], features={"note": np.array(["a"] * 3, object)})
    path = tmp_path / written.data_paths[0]
    said = [[{"role": "user", "content": str(i)}] for i in range(3)]
    table = pq.read_table(path).append_column("language_events", pa.array(said))
    pq.write_table(table, path)

    def describe(info: dict[str, Any]) -> None:
        info["features"]["language_events"] = {"dtype": "language", "shape": [1], "names": None}
        info["features"]["note"]["shape"] = [4]

    edit_info(tmp_path, describe)
    dataset = StreamingLeRobotDataset(
        "a/b", root=tmp_path, delta_timestamps={"language_events": [-0.1, 0.0]}
    )
    (batch,) = dataset.batches(3)
    numbers = batch["frame_index"]
    assert isinstance(numbers, torch.Tensor)
    assert [steps[1] for steps in batch["language_events"]] == [said[i] for i in numbers]
    assert batch["note"] == ["a"] * 3


@pytest.mark.parametrize("keep", [(), ("action", "index")])
def test_a_dataset_that_names_no_task_of_a_frame_is_refused(
    tmp_path: Path, keep: tuple[str, ...]
) -> None:
    write_dataset(tmp_path, lengths=[3])
    edit_info(
        tmp_path,
        lambda info: info.update(features={key: info["features"][key] for key in keep}),
    )
    with pytest.raises(DatasetError, match=f"wanted task_index .* found {len(keep)} others"):
        StreamingLeRobotDataset("a/b", root=tmp_path)
