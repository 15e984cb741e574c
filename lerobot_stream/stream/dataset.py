"""A LeRobotDataset v3 as a stream of shuffled items or batches, each frame once an epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset

from lerobot_stream.dataset.holders import data_paths, video_paths
from lerobot_stream.errors import CheckpointError
from lerobot_stream.plan.elastic import Base, Bitmap
from lerobot_stream.plan.epoch import plan_epoch
from lerobot_stream.plan.key import order_digest, plan_key
from lerobot_stream.plan.layers import Layers
from lerobot_stream.plan.share import Share
from lerobot_stream.plan.strategy import Strategy
from lerobot_stream.sidecar.choices import FramesBy
from lerobot_stream.stream.batch import Batch, single_items
from lerobot_stream.stream.config import ReadConfig, StreamConfig
from lerobot_stream.stream.described import DescribedDataset
from lerobot_stream.stream.device import moved
from lerobot_stream.stream.opened import open_dataset
from lerobot_stream.stream.position import Place, StreamPosition, whole_number
from lerobot_stream.stream.shares import plan_shares, plan_stream
from lerobot_stream.stream.state import NEW_RUN, StreamState, next_base
from lerobot_stream.stream.transform import transformed
from lerobot_stream.stream.worker import WorkerStream, loader_worker


class StreamingLeRobotDataset(DescribedDataset, IterableDataset[dict[str, Any]]):
    """Shuffled items of a dataset that stays where it is.

    :meth:`batches` is the fast way: everything in this process, with threads inside. Iterating
    yields single items, for any ``DataLoader``.

    An item has each column of the dataset, ``task`` as text, each camera as ``(C, H, W)``, and
    for each key of ``delta_timestamps`` a step axis in front and ``<key>_is_pad (T,)``.
    """

    def __init__(
        self,
        repo_id: str,
        *,
        root: str | Path | None = ReadConfig.root,
        revision: str | None = ReadConfig.revision,
        repo_type: str = ReadConfig.repo_type,
        episodes: Sequence[int] | None = ReadConfig.episodes,
        exclude_episodes: Sequence[int] | None = ReadConfig.exclude_episodes,
        delta_timestamps: Mapping[str, Sequence[float]] | None = ReadConfig.delta_timestamps,
        image_transforms: Callable[[torch.Tensor], torch.Tensor] | None = None,
        tolerance_s: float = ReadConfig.tolerance_s,
        frames_by: FramesBy | None = ReadConfig.frames_by,
        find_rows: bool = ReadConfig.find_rows,
        seed: int | None = StreamConfig.seed,
        return_uint8: bool = False,
        sampling_strategy: Strategy = StreamConfig.sampling_strategy,
        episode_pool_size: int | None = StreamConfig.episode_pool_size,
        prefetch_episodes: int = StreamConfig.prefetch_episodes,
        byte_budget_gb: float = StreamConfig.byte_budget_gb,
        decoded_pool_gb: float = StreamConfig.decoded_pool_gb,
        decode_threads: int = StreamConfig.decode_threads,
        decoded_queue_size: int = StreamConfig.decoded_queue_size,
        video_decoder_cache_size: int | None = StreamConfig.video_decoder_cache_size,
        max_num_shards: int = StreamConfig.max_num_shards,
        native_http_connections: int | None = ReadConfig.native_http_connections,
        native_http_subranges: int = ReadConfig.native_http_subranges,
        sidecar_lock_timeout_s: float = ReadConfig.sidecar_lock_timeout_s,
        repeat: bool = StreamConfig.repeat,
        rank: int = StreamConfig.rank,
        world_size: int = StreamConfig.world_size,
    ) -> None:
        """Open a dataset: metadata, and the index of its videos.

        The names and defaults are those of :class:`ReadConfig` and :class:`StreamConfig`, where
        each is described.

        Args:
            repo_id: The dataset's name.
            root: Folder, bucket or URL; None for the Hub.
            revision: Branch, tag or commit.
            repo_type: ``dataset`` or ``bucket``.
            episodes: Episodes to read; None for all.
            exclude_episodes: Episodes to leave out.
            delta_timestamps: Seconds relative to the current frame, per feature.
            image_transforms: Called on each camera of each item, in item order.
            tolerance_s: Seconds that a timestamp may be off.
            frames_by: ``count`` or ``time``, where they disagree.
            find_rows: Read rows where they are, if the metadata names another file.
            seed: Decides the order.
            return_uint8: Pictures as uint8 instead of float32 in [0, 1].
            sampling_strategy: How episodes are mixed.
            episode_pool_size: Most episodes mixed by a worker.
            prefetch_episodes: Episodes fetched ahead of the pool.
            byte_budget_gb: Most coded video held by this rank.
            decoded_pool_gb: Most decoded pictures held by this rank.
            decode_threads: Decode threads a worker.
            decoded_queue_size: Most finished batches waiting.
            video_decoder_cache_size: Most open decoders of a worker.
            max_num_shards: Episodes fetched at once by a worker.
            native_http_connections: HTTP connections.
            native_http_subranges: Parts of a large span.
            sidecar_lock_timeout_s: Seconds to wait for another build.
            repeat: Go on for ever, in full batches.
            rank: This process.
            world_size: Processes that share the epoch.

        Raises:
            StreamError: The dataset cannot be read.
            ValueError: An argument means nothing.
        """
        super().__init__()
        self.config = StreamConfig(
            seed=seed,
            sampling_strategy=sampling_strategy,
            episode_pool_size=episode_pool_size,
            prefetch_episodes=prefetch_episodes,
            byte_budget_gb=byte_budget_gb,
            decoded_pool_gb=decoded_pool_gb,
            decode_threads=decode_threads,
            decoded_queue_size=decoded_queue_size,
            video_decoder_cache_size=video_decoder_cache_size,
            max_num_shards=max_num_shards,
            repeat=repeat,
            rank=rank,
            world_size=world_size,
        )
        self.opened = open_dataset(
            ReadConfig(
                repo_id=repo_id,
                root=root,
                revision=revision,
                repo_type=repo_type,
                episodes=episodes,
                exclude_episodes=exclude_episodes,
                delta_timestamps=delta_timestamps,
                tolerance_s=tolerance_s,
                frames_by=frames_by,
                find_rows=find_rows,
                native_http_connections=native_http_connections,
                native_http_subranges=native_http_subranges,
                sidecar_lock_timeout_s=sidecar_lock_timeout_s,
            )
        )
        self.image_transforms = image_transforms
        self.return_uint8 = return_uint8
        self._position = StreamPosition()
        self._digests: dict[tuple[int, int], str] = {}
        # Fails now, not at the first batch, where the episodes do not fit ranks and budget.
        self.plan(worker=0, num_workers=1)

    @property
    def base(self) -> Base:
        """What all ranks had seen before the first of the batches that are counted now."""
        return self._position.base()

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that the next iteration starts with, also in persistent workers.

        Without ``repeat`` an iteration is one epoch; call this before each, or every one has
        the same order.

        Raises:
            TypeError: It is no whole number.
            ValueError: It is negative, or no number of 31 bits.
        """
        self._position.move(epoch=whole_number("epoch", epoch, least=0))

    def batches(
        self, batch_size: int, *, device: torch.device | str | None = None
    ) -> Iterator[Batch]:
        """Iterate batches in this process; fetching and decoding run in threads.

        A batch belongs to whoever holds it: its memory is used again only after its last tensor
        is gone.

        Args:
            batch_size: Items a batch. Without ``repeat`` the last batch may be short.
            device: Where tensors are handed out; None for the CPU.

        Returns:
            Batches: pictures ``(B, [T,] C, H, W)``, columns ``(B, [T,] ...)``, ``task`` as a
            list. The next one may raise a StreamError where data cannot be read; the batches
            come before it that show nothing of that, nor of what was decoded together with it.

        Raises:
            TypeError: ``batch_size`` is no whole number.
            ValueError: It is below 1, or no number of 31 bits.
        """
        batch_size = whole_number("batch_size", batch_size, least=1)
        delivered = self._transformed(batch_size, worker=0, num_workers=1, device=device)
        return self._position.counting(delivered, batch_size)

    def worker_batches(self, batch_size: int) -> WorkerBatches:
        """The same batches for ``DataLoader(dataset.worker_batches(B), batch_size=None)``.

        The addresses of this rank's files are looked up here, once for all workers.

        Raises:
            TypeError: ``batch_size`` is no whole number.
            ValueError: It is below 1, or no number of 31 bits.
            StreamError: The addresses cannot be looked up.
        """
        batch_size = whole_number("batch_size", batch_size, least=1)
        layers = self._layers(worker=0, num_workers=1)
        shares = [layers.whole, *layers.unfinished.values()]
        positions = np.unique(np.concatenate([share.positions for share in shares]))
        numbers = self.opened.numbers[positions]
        episodes, keys = self.meta.episodes, self.meta.info.video_keys
        paths = [*data_paths(episodes, numbers), *video_paths(episodes, keys, numbers)]
        self.opened.source.resolve(paths)
        return WorkerBatches(self, batch_size)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield single items of this process's, or this loader worker's, share."""
        worker, num_workers = loader_worker()
        batches = self._transformed(1, worker=worker, num_workers=num_workers)
        for batch in self._position.counting(batches, 1):
            yield from single_items(batch)

    def state_dict(
        self, batches: int | None = None, batch_size: int | None = None, *, num_workers: int = 0
    ) -> dict[str, Any]:
        """What :meth:`load_state_dict` needs to go on behind the batches delivered so far.

        Args:
            batches: Batches taken from a loader with workers since epoch 0 or
                :meth:`set_epoch`; None for what this process itself has iterated (items count
                as batches of one).
            batch_size: Items of each of those batches.
            num_workers: Workers of that loader.

        Returns:
            Values that JSON can hold.
        """
        if (batches is None) != (batch_size is None):
            raise ValueError("batches and batch_size belong together")
        place = self._position.place()
        if batches is not None and batch_size is not None:
            place = replace(
                place,
                batches=whole_number("batches", batches, least=0),
                batch_size=whole_number("batch_size", batch_size, least=1),
            )
        workers = max(1, num_workers)
        return StreamState(
            place=place,
            num_workers=workers,
            key=plan_key(self.plan(worker=0, num_workers=workers), epoch=place.epoch),
            digest=self._digest(workers, place.epoch),
            unfinished=self.base.unfinished,
        ).to_json()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Let the next iteration go on where a state was taken.

        Args:
            state: From :meth:`state_dict` of a dataset with the same settings.

        Raises:
            CheckpointError: The order would not be the one that was interrupted; every
                difference is named.
        """
        saved = StreamState.from_json(state)
        workers = saved.num_workers
        if workers > len(self.opened.numbers):
            raise CheckpointError(
                f"saved with {workers} workers, {len(self.opened.numbers)} episodes are selected"
            )
        share = self.plan(worker=0, num_workers=workers)
        if differences := saved.key.difference(plan_key(share, epoch=saved.place.epoch)):
            raise CheckpointError(
                "the order differs from the interrupted run's: " + "; ".join(differences),
                hint="resume with the same data and settings, plan what is left of the epoch anew "
                f"with --resume_elastic=true, or {NEW_RUN}",
            )
        if saved.digest not in (None, self._digest(workers, saved.place.epoch)):
            raise CheckpointError(
                "equal data and settings give another order here than where the run was saved",
                hint=f"resume with the release that saved it, or {NEW_RUN}",
            )
        self._go_on(saved.place, saved.unfinished)

    def load_job_state(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Let the next iteration go on with what a job has left of its epochs.

        The job may have had other ranks, workers, batches and settings: what any of its ranks
        has seen of an epoch does not come again in it, all else does.

        Args:
            states: From :meth:`state_dict` of every rank, in order, after equally many batches.

        Raises:
            CheckpointError: They are not of one job, or of other episodes.
            ValueError: This stream ends with its epoch.
        """
        now = self.plan(worker=0, num_workers=1)
        saved = [StreamState.from_json(state) for state in states]
        base = next_base(saved, now.selected, now=plan_key(now))
        self._go_on(Place(base.next_epoch, 0, 0), base.unfinished)

    def _go_on(self, place: Place, unfinished: Mapping[int, Bitmap]) -> None:
        if unfinished and not self.config.repeat:
            raise ValueError("epochs that others began can only be finished with repeat=True")
        self._position.move(**asdict(place), unfinished=unfinished)

    def plan(self, *, worker: int, num_workers: int) -> Share:
        """What one worker of this rank delivers of a whole epoch.

        Raises:
            PlanError: There are more ranks than episodes, or an episode exceeds the budget.
            ValueError: There are more workers than episodes of this rank.
        """
        return plan_shares(self.opened, self.config, num_workers=num_workers, worker=worker)

    def _digest(self, num_workers: int, epoch: int) -> str:
        """How an epoch begins; planned once, however often the stream is saved."""
        known = self._digests.get((num_workers, epoch))
        if known is None:
            share = self.plan(worker=0, num_workers=num_workers)
            known = order_digest(plan_epoch(share, epoch=epoch))
            self._digests = {(num_workers, epoch): known}
        return known

    def _layers(self, *, worker: int, num_workers: int) -> Layers:
        return plan_stream(
            self.opened, self.config, self.base, num_workers=num_workers, worker=worker
        )

    def _transformed(
        self,
        batch_size: int,
        *,
        worker: int,
        num_workers: int,
        device: torch.device | str | None = None,
    ) -> Iterator[Batch]:
        """A worker's batches from the current position on, as they are handed out."""
        start = self._position.start(
            lambda number: self._layers(worker=number, num_workers=num_workers),
            worker=worker,
            num_workers=num_workers,
            batch_size=batch_size,
            repeat=self.config.repeat,
        )
        if start is None:
            return
        target = None if device is None else torch.device(device)
        stream = WorkerStream(
            self.opened,
            self.config,
            start.layers,
            epoch=start.epoch,
            item=start.item,
            batch_size=batch_size,
            as_uint8=self.return_uint8,
            pinned=target is not None and target.type == "cuda",
        )
        batches: Iterator[Batch] = iter(stream)
        if self.image_transforms is not None:
            batches = transformed(
                batches,
                self.image_transforms,
                cameras=tuple(self.opened.layout.cameras),
                seed=start.layers.whole.config.seed,
                epochs=start.epochs(batch_size),
            )
        yield from batches if target is None else moved(batches, target)


class WorkerBatches(IterableDataset[Batch]):
    """Whole batches for a ``DataLoader`` with ``batch_size=None``, one stream a worker."""

    def __init__(self, dataset: StreamingLeRobotDataset, batch_size: int) -> None:
        """Deliver batches of ``batch_size`` items of ``dataset``."""
        super().__init__()
        self._dataset = dataset
        self._batch_size = batch_size

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches of this loader worker's share."""
        worker, num_workers = loader_worker()
        yield from self._dataset._transformed(
            self._batch_size, worker=worker, num_workers=num_workers
        )
