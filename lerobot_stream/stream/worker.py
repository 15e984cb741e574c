"""The batches of one worker: its plan, cache, decoders and pipeline put together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torch.utils.data import get_worker_info

from lerobot_stream.plan.layers import Layers
from lerobot_stream.stream.batch import Batch
from lerobot_stream.stream.cache import EpisodeByteCache
from lerobot_stream.stream.config import StreamConfig
from lerobot_stream.stream.decode_pool import DecodePool
from lerobot_stream.stream.episode import EpisodeReader
from lerobot_stream.stream.fetch import VisitFetcher
from lerobot_stream.stream.memory import (
    BatchMemory,
    FreshMemory,
    RecycledMemory,
    pinned_tensor,
    return_free_memory,
    shared_tensor,
)
from lerobot_stream.stream.opened import OpenedDataset
from lerobot_stream.stream.pipeline import Pipeline
from lerobot_stream.stream.schedule import Schedule
from lerobot_stream.stream.stats import StreamStats

_SPARE_BATCHES = 4
"""Batches that a consumer may hold beside the open ones before new memory is taken."""


class WorkerStream:
    """One pass over what a worker delivers, from any item on. Close it when done."""

    def __init__(
        self,
        opened: OpenedDataset,
        config: StreamConfig,
        layers: Layers,
        *,
        epoch: int,
        item: int,
        batch_size: int,
        as_uint8: bool,
        pinned: bool = False,
    ) -> None:
        """Start fetching.

        Args:
            opened: The open dataset.
            config: Settings of the stream.
            layers: What this worker delivers.
            epoch: First epoch.
            item: First item of that epoch.
            batch_size: Items a batch.
            as_uint8: Pictures as uint8 instead of float32 in [0, 1].
            pinned: Batches in page-locked memory.
        """
        self._count = opened.source.count
        self._count_before = replace(self._count)
        reader = EpisodeReader(opened)
        schedule = Schedule(
            layers,
            opened.numbers,
            epoch=epoch,
            item=item,
            num_epochs=None if config.repeat else 1,
            batch_size=batch_size,
            visit_bytes=reader.visit_bytes,
        )
        pool = layers.pool()
        at_once = max(1, min(config.max_num_shards, pool + config.prefetch_episodes))
        # An episode takes a request for its rows and one for each camera.
        self._fetcher = VisitFetcher(reader, threads=at_once * (1 + reader.num_cameras))
        self.cache = EpisodeByteCache(
            schedule.visits(),
            self._fetcher.fetch,
            budget_bytes=layers.whole.config.worker_byte_budget,
            # An endless stream goes round: more than all its episodes are never needed ahead.
            ahead=max(1, min(config.prefetch_episodes, len(layers.whole.episodes))),
        )
        self.decoders = DecodePool(
            opened.windows,
            threads=config.decode_threads,
            open_decoders=config.video_decoder_cache_size,
            keep_tail=config.sampling_strategy == "clip",
        )
        self._pipeline = Pipeline(
            schedule.tasks(),
            self.cache,
            self.decoders,
            opened.layout,
            _batch_memory(schedule.open_items // batch_size + _SPARE_BATCHES, pinned=pinned),
            batch_size=batch_size,
            num_items=schedule.num_items,
            open_items=schedule.open_items,
            ready_batches=max(config.decoded_queue_size, schedule.block_batches),
            as_uint8=as_uint8,
        )

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches in order; ends and errors close the stream."""
        try:
            yield from self._pipeline
        finally:
            self.close()

    def stats(self) -> StreamStats:
        """What has been done so far; may be asked for from any thread."""
        waited = self._pipeline.waited
        return StreamStats(
            items=self._pipeline.delivered_items,
            pictures=self.decoders.pictures,
            decoded=self.decoders.decoded,
            network_s=waited.network_s,
            decode_s=waited.decode_s,
            assembly_s=waited.assembly_s,
            requests=self._count.requests - self._count_before.requests,
            fetched_bytes=self._count.bytes - self._count_before.bytes,
            wanted_bytes=self._fetcher.wanted_bytes,
            reserved_bytes=self.cache.reserved_bytes,
            resident_bytes=self.cache.resident_bytes,
            open_bytes=self._pipeline.open_bytes,
        )

    def close(self) -> None:
        """Stop every thread and give back what is held; may be repeated."""
        self._pipeline.close()
        self._fetcher.close()
        return_free_memory()


def _batch_memory(keep: int, *, pinned: bool) -> BatchMemory:
    if get_worker_info() is not None:
        return FreshMemory(shared_tensor)
    if pinned:
        return FreshMemory(pinned_tensor)
    return RecycledMemory(keep)


def loader_worker() -> tuple[int, int]:
    """This process's number among a loader's workers, and how many there are; (0, 1) without."""
    info = get_worker_info()
    return (info.id, info.num_workers) if info else (0, 1)
