"""A batch belongs to whoever holds it; an iterator that is dropped leaves nothing behind."""

from __future__ import annotations

import gc
import json
import threading
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from lerobot_stream.stream.dataset import StreamingLeRobotDataset
from tests.lerobot import Written
from tests.recordings import TOP, WRITERS, record


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return record(tmp_path_factory.mktemp("batches") / "set", WRITERS["h264-g2"])


def opened(written: Written, **settings: Any) -> StreamingLeRobotDataset:
    return StreamingLeRobotDataset(
        "a/b", root=written.root, return_uint8=True, decoded_pool_gb=0.001, **settings
    )


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(
        torch.equal(value, other[key]) if isinstance(value, torch.Tensor) else value == other[key]
        for key, value in one.items()
    )


def copied(batch: dict[str, Any]) -> dict[str, Any]:
    return {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in batch.items()}


@pytest.mark.parametrize("num_workers", [0, 2])
def test_held_batches_stay_as_they_were_handed_out(written: Written, num_workers: int) -> None:
    dataset = opened(written, repeat=True)
    batches: Iterable[Any] = dataset.batches(4)
    if num_workers:
        batches = DataLoader(
            dataset.worker_batches(4),
            batch_size=None,
            num_workers=num_workers,
            multiprocessing_context="fork",
        )
    held = [(batch, copied(batch)) for batch in islice(batches, 20)]
    assert all(same(batch, copy) for batch, copy in held)
    assert len({tuple(batch["index"].tolist()) for batch, _ in held}) == 20


def test_a_dropped_iterator_stops_its_threads_and_closes_its_files(written: Written) -> None:
    for _ in range(3):
        next(opened(written, repeat=True).batches(4))
    gc.collect()
    threads, files = threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        batches = opened(written, repeat=True).batches(4)
        next(batches)
        del batches
    gc.collect()
    assert threading.active_count() <= threads
    assert len(list(Path("/proc/self/fd").iterdir())) <= files


def test_the_last_batch_is_short_and_nothing_is_dropped(written: Written) -> None:
    sizes = [len(batch["task"]) for batch in opened(written).batches(50)]
    assert sizes == [50, 50, 50, written.num_frames - 150]


def test_repeated_batches_are_full_and_straddle_epochs(written: Written) -> None:
    batches = list(islice(opened(written, repeat=True).batches(50), 7))
    index = torch.cat([torch.as_tensor(batch["index"]) for batch in batches])
    assert len(index) == 350
    first, second = index[: written.num_frames], index[written.num_frames : 2 * written.num_frames]
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(written.num_frames))
    assert first.tolist() != second.tolist()


def test_pictures_lie_in_channels_last_memory(written: Written) -> None:
    batch = next(opened(written).batches(4))
    pictures = batch[TOP]
    assert isinstance(pictures, torch.Tensor)
    assert pictures.shape == (4, 3, 64, 96)
    assert pictures.is_contiguous(memory_format=torch.channels_last)


def test_threads_and_prefetch_do_not_change_the_order(written: Written) -> None:
    orders = [
        [batch["index"].tolist() for batch in opened(written, **settings).batches(8)]  # type: ignore[union-attr]
        for settings in (
            {},
            {"decode_threads": 4, "prefetch_episodes": 1, "max_num_shards": 1},
            {"video_decoder_cache_size": 1, "decoded_queue_size": 1},
        )
    ]
    assert orders[0] == orders[1] == orders[2]


@pytest.mark.parametrize("strategy", ["remaining", "round_robin", "clip"])
@pytest.mark.parametrize("decoded_pool_gb", [0.0004, 0.001, 0.01])
def test_a_slow_consumer_and_a_tight_pool_never_stand_still(
    written: Written, strategy: Any, decoded_pool_gb: float
) -> None:
    dataset = StreamingLeRobotDataset(
        "a/b",
        root=written.root,
        return_uint8=True,
        sampling_strategy=strategy,
        decoded_pool_gb=decoded_pool_gb,
        decoded_queue_size=1,
        repeat=True,
    )
    sizes = [len(batch["task"]) for batch in islice(dataset.batches(3), 120)]
    assert sizes == [3] * 120


def test_the_byte_budget_is_kept_at_all_times(written: Written, monkeypatch: Any) -> None:
    from lerobot_stream.stream.cache import EpisodeByteCache

    dataset = opened(written, episode_pool_size=2, repeat=True)
    sizes = sorted(dataset.opened.sizes.tolist())
    budget = sum(sizes[-3:])
    dataset = opened(written, episode_pool_size=8, byte_budget_gb=budget / 1e9, repeat=True)
    seen: list[tuple[int, int]] = []
    get = EpisodeByteCache.get

    def watched(cache: EpisodeByteCache, visit: Any) -> Any:
        data = get(cache, visit)
        seen.append((cache.resident_bytes, cache.reserved_bytes))
        return data

    monkeypatch.setattr(EpisodeByteCache, "get", watched)
    for _ in islice(dataset.batches(8), 60):
        pass
    assert all(0 < resident <= reserved <= budget for resident, reserved in seen)
    assert max(reserved for _, reserved in seen) > budget // 2


def test_an_episode_above_the_budget_is_named_before_anything_is_fetched(written: Written) -> None:
    from lerobot_stream.errors import PlanError

    with pytest.raises(PlanError, match=r"episode \d+ takes [\d,]+ bytes.*byte budget is 100"):
        opened(written, byte_budget_gb=1e-7)


def test_a_fault_arrives_after_the_batches_before_it(written: Written, tmp_path: Path) -> None:
    from lerobot_stream.errors import StreamError

    dataset = opened(written, seed=3)
    wanted = [batch["index"].tolist() for batch in opened(written, seed=3).batches(4)]  # type: ignore[union-attr]
    bad = written.rows(7)["index"].tolist()
    broken = next(n for n, index in enumerate(wanted) if set(index) & set(bad))
    reads = dataset.opened.source.read

    def read(path: str, span: Any) -> bytes:
        data = reads(path, span)
        if path.endswith(".mp4") and path == written.video_paths[TOP][7]:
            raise StreamError("the disk is gone", path=path)
        return data

    dataset.opened.source.read = read  # type: ignore[method-assign]
    got: list[list[int]] = []
    with pytest.raises(StreamError, match="the disk is gone") as caught:
        got.extend(batch["index"].tolist() for batch in dataset.batches(4))  # type: ignore[union-attr]
    assert got == wanted[: len(got)]
    assert len(got) <= broken
    assert "observation.images.top" in caught.value.__notes__[0]


@pytest.mark.parametrize("size", [0, -3, 1 << 31, 10**20, 2.0, "8", None])
def test_a_batch_that_cannot_be_is_refused_at_once(written: Written, size: Any) -> None:
    dataset = opened(written)
    kind = ValueError if isinstance(size, int) else TypeError
    for start in (dataset.batches, dataset.worker_batches):
        with pytest.raises(kind, match=rf"^batch_size must be .*, got {size!r}$"):
            start(size)


@pytest.mark.parametrize("epoch", [-1, 1 << 31, 10**20, 1.5, "2", None])
def test_an_epoch_that_cannot_be_is_refused_and_changes_nothing(
    written: Written, epoch: Any
) -> None:
    dataset = opened(written)
    dataset.set_epoch(3)
    before = dataset.state_dict()
    kind = ValueError if isinstance(epoch, int) else TypeError
    with pytest.raises(kind, match=rf"^epoch must be .*, got {epoch!r}$"):
        dataset.set_epoch(epoch)
    assert dataset.state_dict() == before


def test_numbers_of_numpy_are_whole_numbers(written: Written) -> None:
    dataset = opened(written)
    dataset.set_epoch(np.int64(1))  # type: ignore[arg-type]
    assert len(next(dataset.batches(np.int32(7)))["task"]) == 7  # type: ignore[arg-type]
    assert json.loads(json.dumps(dataset.state_dict())) == dataset.state_dict()


@pytest.mark.parametrize(("batches", "size"), [(-1, 8), (1.5, 8), (2, 0), (2, 0.5)])
def test_a_state_counts_in_whole_numbers(written: Written, batches: Any, size: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^batch(es|_size) must be"):
        opened(written).state_dict(batches, size)
