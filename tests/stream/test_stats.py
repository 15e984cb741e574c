"""A stream can say what it has done and what it was waited for."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from lerobot_stream.plan.elastic import new_base
from lerobot_stream.stream.dataset import StreamingLeRobotDataset
from lerobot_stream.stream.shares import plan_stream
from lerobot_stream.stream.stats import StreamStats, WaitClock
from lerobot_stream.stream.worker import WorkerStream
from tests.lerobot import Written, number_of, write_dataset
from tests.recordings import FPS, LENGTHS, TOP, WRIST, WRITERS, record


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("lerobot_stream.stream.stats.time.perf_counter", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_only_time_in_which_a_batch_is_waited_for_counts(clock: Clock) -> None:
    waited = WaitClock(threads=2)
    waited.run(2)
    clock.now = 5.0
    waited.ask()
    clock.now = 6.0
    waited.finish()
    clock.now = 6.25
    waited.hand_out()
    clock.now = 9.0
    waited.run(0)
    assert (waited.network_s, waited.decode_s, waited.assembly_s) == (0.0, 1.0, 0.25)


@pytest.mark.parametrize(
    ("fetching", "jobs", "waited_for"),
    [
        (True, 0, "network_s"),
        (True, 1, "network_s"),
        (True, 2, "decode_s"),
        (False, 1, "decode_s"),
        (False, 0, "assembly_s"),
    ],
)
def test_a_wait_counts_for_what_the_decoders_lack(
    clock: Clock, fetching: bool, jobs: int, waited_for: str
) -> None:
    waited = WaitClock(threads=2)
    waited.run(jobs)
    waited.fetch(fetching)
    waited.ask()
    clock.now = 3.0
    waited.hand_out()
    assert getattr(waited, waited_for) == 3.0
    assert waited.network_s + waited.decode_s + waited.assembly_s == 3.0


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return record(tmp_path_factory.mktemp("stats") / "set", WRITERS["h264-g2"])


def stream(written: Written, **settings: Any) -> WorkerStream:
    dataset = StreamingLeRobotDataset("a/b", root=written.root, **settings)
    layers = plan_stream(dataset.opened, dataset.config, new_base(), num_workers=1, worker=0)
    return WorkerStream(
        dataset.opened, dataset.config, layers, epoch=0, item=0, batch_size=8, as_uint8=True
    )


@pytest.mark.parametrize("strategy", ["remaining", "clip"])
def test_after_an_epoch_each_picture_was_decoded_once_and_nothing_is_held(
    written: Written, strategy: str
) -> None:
    whole = stream(written, sampling_strategy=strategy)
    for _ in whole:
        pass
    after = whole.stats()
    assert after.items == sum(LENGTHS)
    assert after.pictures == 2 * sum(LENGTHS)
    # The first blocks of a stream are short: their pictures share fewer GOPs.
    most = 1.1 if strategy == "clip" else 1.4
    assert after.pictures <= after.decoded <= most * after.pictures
    assert (after.reserved_bytes, after.resident_bytes, after.open_bytes) == (0, 0, 0)


def test_windows_of_pictures_kept_in_parquet_decode_each_once_and_show_what_they_should(
    tmp_path: Path,
) -> None:
    written = write_dataset(tmp_path / "set", lengths=[70, 41], image_cameras={TOP: (4, 6)})
    whole = stream(
        written,
        sampling_strategy="clip",
        delta_timestamps={TOP: [-2 / FPS, 0.0]},
        return_uint8=True,
    )
    starts = torch.tensor([0, 70])
    for batch in whole:
        pictures, index = batch[TOP], batch["index"]
        assert isinstance(pictures, torch.Tensor)
        assert isinstance(index, torch.Tensor)
        shown = [[number_of(step) for step in item] for item in pictures.movedim(2, -1).numpy()]
        first = starts[torch.searchsorted(starts, index, right=True) - 1]
        assert shown == torch.stack([torch.maximum(index - 2, first), index], dim=1).tolist()
    # An episode that is begun in its middle shows two frames again where it was begun.
    assert 70 + 41 <= whole.stats().decoded <= 70 + 41 + 2 * 2


def test_bytes_are_counted_since_the_stream_was_started(written: Written) -> None:
    whole = stream(written)
    for _ in whole:
        pass
    after = whole.stats()
    videos = [size(written, set(written.video_paths[key])) for key in (TOP, WRIST)]
    assert 0.7 * sum(videos) < after.wanted_bytes < sum(videos)
    assert 0 < after.fetched_bytes - after.wanted_bytes < 2 * size(written, set(written.data_paths))
    assert 0 < after.requests <= 6 * len(LENGTHS)


def size(written: Written, paths: set[str]) -> int:
    return sum((written.root / path).stat().st_size for path in paths)


def test_what_is_held_shows_while_a_stream_runs(written: Written) -> None:
    running = stream(written, repeat=True)
    batches = iter(running)
    seen: list[StreamStats] = [running.stats() for _ in islice(batches, 30)]
    batches.close()  # type: ignore[attr-defined]
    now = seen[-1]
    assert now.items == 30 * 8
    assert all(0 <= one.resident_bytes <= one.reserved_bytes for one in seen)
    assert any(one.resident_bytes for one in seen)
    assert now.open_bytes % (2 * 64 * 96 * 3) == 0
    assert now.decode_s + now.network_s + now.assembly_s > 0
