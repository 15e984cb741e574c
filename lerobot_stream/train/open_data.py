"""From the settings of a run to its data: which episodes, read how, changed how."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lerobot_stream.counted import counted
from lerobot_stream.dataset.info import Info, fetch_info, parse_info
from lerobot_stream.dataset.metadata import read_metadata, select_episodes
from lerobot_stream.dataset.stats import read_stats
from lerobot_stream.errors import PlanError
from lerobot_stream.source.base import Identity, Source
from lerobot_stream.source.open import open_source
from lerobot_stream.stream.augment import Augment
from lerobot_stream.stream.dataset import StreamingLeRobotDataset
from lerobot_stream.stream.map_style import LeRobotDataset
from lerobot_stream.train.config import DatasetConfig, TrainConfig
from lerobot_stream.train.data import Data, MapData, NumberedItems, StreamedData
from lerobot_stream.train.distributed import Ranks
from lerobot_stream.train.image_transforms import parse_transforms
from lerobot_stream.train.loader import LoaderSettings, make_loader
from lerobot_stream.train.map_order import one_epoch
from lerobot_stream.train.normalize import Stats
from lerobot_stream.train.policies.base import Batch

logger = logging.getLogger(__name__)

_AT_A_COMMIT = "hf://datasets/"
"""How the address of a dataset starts that was opened at one commit."""


@dataclass(frozen=True, slots=True)
class Header:
    """What is known of a dataset before it is opened for reading."""

    identity: Identity
    """Which dataset it is, and where it lies."""
    info: Info
    """Features and rate."""
    stats: Stats
    """Statistics by feature and name."""
    train_episodes: Sequence[int] | None
    """``episode_index`` of those to train on; None for what the settings select."""
    eval_episodes: Sequence[int]
    """Those held out."""


def read_header(config: DatasetConfig) -> Header:
    """Read features and statistics, and hold episodes out.

    Args:
        config: Which data.

    Raises:
        StreamError: The dataset cannot be read.
        ValueError: Too few episodes are left to train on.
    """
    source = open_source(
        config.repo_id, root=config.root, revision=config.revision, repo_type=config.repo_type
    )
    try:
        if not config.eval_split:
            info = parse_info(fetch_info(source))
            return Header(source.identity, info, read_stats(source), None, ())
        return _read_split(config, source)
    finally:
        source.close()


def _read_split(config: DatasetConfig, source: Source) -> Header:
    meta = read_metadata(source)
    chosen = select_episodes(meta.episodes, config.episodes, config.exclude_episodes)
    episodes = [int(index) for index in meta.episodes.episode_index[chosen]]
    kept, held_out = split_episodes(episodes, share=config.eval_split)
    return Header(source.identity, meta.info, meta.stats, kept, held_out)


def split_episodes(episodes: Sequence[int], *, share: float) -> tuple[list[int], list[int]]:
    """Hold out the last episodes.

    Args:
        episodes: All of them, in order.
        share: Share to hold out, above 0; rounded up to whole episodes.

    Returns:
        Those to train on, those to evaluate on; at least one each.

    Raises:
        ValueError: There are too few.
    """
    count = math.ceil(share * len(episodes))
    if len(episodes) - count < 1:
        raise ValueError(
            f"--dataset.eval_split={share} holds out {count} of "
            f"{counted(len(episodes), 'episode')} and leaves none to train on"
        )
    return list(episodes[:-count]), list(episodes[-count:])


def open_training_data(
    config: TrainConfig, header: Header, delta_timestamps: Mapping[str, list[float]], ranks: Ranks
) -> Data:
    """Open what a rank trains on.

    Args:
        config: The run.
        header: From :func:`read_header`.
        delta_timestamps: Frames that the policy wants, per feature.
        ranks: This process among the others.

    Raises:
        StreamError: The data cannot be read, or do not fit ranks and budget.
    """
    transform = _make_transform(config)
    dataset: StreamingLeRobotDataset | LeRobotDataset
    if config.dataset.streaming:
        dataset = StreamingLeRobotDataset(
            **_reading(config, header, delta_timestamps),
            **_streaming(config),
            episodes=header.train_episodes or config.dataset.episodes,
            exclude_episodes=config.dataset.exclude_episodes,
            image_transforms=transform,
            repeat=True,
            rank=ranks.rank,
            world_size=ranks.world_size,
        )
        workers = fitting_workers(dataset, config.loader_workers)
        loader = _loader_settings(config, num_workers=workers)
        return StreamedData(
            dataset, batch_size=config.batch_size, device=ranks.device, loader=loader
        )
    dataset = LeRobotDataset(
        **_reading(config, header, delta_timestamps),
        episodes=header.train_episodes or config.dataset.episodes,
        exclude_episodes=config.dataset.exclude_episodes,
    )
    return MapData(
        dataset,
        seed=config.order_seed,
        rank=ranks.rank,
        world_size=ranks.world_size,
        batch_size=config.batch_size,
        transform=transform,
        device=ranks.device,
        loader=_loader_settings(config, num_workers=config.loader_workers),
    )


class HeldOutData:
    """The held-out episodes, in the same shuffled order each time they are iterated."""

    def __init__(
        self,
        config: TrainConfig,
        header: Header,
        delta_timestamps: Mapping[str, list[float]],
        ranks: Ranks,
    ) -> None:
        """Open this rank's part of them.

        Args:
            config: The run.
            header: From :func:`read_header`.
            delta_timestamps: Frames that the policy wants, per feature.
            ranks: This process among the others; ranks without an episode get no batches.
        """
        self._config = config
        self._ranks = ranks
        self._dataset: StreamingLeRobotDataset | LeRobotDataset | None = None
        readers = min(ranks.world_size, len(header.eval_episodes))
        reading = _reading(config, header, delta_timestamps)
        if not config.dataset.streaming:
            self._dataset = LeRobotDataset(**reading, episodes=header.eval_episodes)
        elif ranks.rank < readers:
            self._dataset = StreamingLeRobotDataset(
                **reading,
                **_streaming(config),
                episodes=header.eval_episodes,
                rank=ranks.rank,
                world_size=readers,
            )

    def __iter__(self) -> Iterator[Batch]:
        """Hand out batches; the last one may be short."""
        if isinstance(self._dataset, StreamingLeRobotDataset):
            self._dataset.set_epoch(0)
            yield from self._dataset.batches(self._config.batch_size)
        elif self._dataset is not None:
            numbers = one_epoch(
                len(self._dataset),
                seed=self._config.order_seed,
                rank=self._ranks.rank,
                world_size=self._ranks.world_size,
                batch_size=self._config.batch_size,
            )
            yield from make_loader(
                NumberedItems(self._dataset, None, seed=0),
                _loader_settings(self._config, num_workers=0),
                device=self._ranks.device,
                numbers=numbers,
            )


def fitting_workers(dataset: StreamingLeRobotDataset, wanted: int) -> int:
    """Find the most loader workers that have an episode, and a budget for it, each.

    Args:
        dataset: The stream of this rank.
        wanted: Workers asked for.

    Returns:
        At most ``wanted``; fewer are logged.
    """
    if wanted < 2:
        return wanted
    for workers in range(wanted, 0, -1):
        try:
            for worker in range(workers):
                dataset.plan(worker=worker, num_workers=workers)
        except (PlanError, ValueError) as error:
            reason = f"{workers} do not fit ({error})"
            continue
        if workers < wanted:
            if workers == len(dataset.plan(worker=0, num_workers=1).positions):
                reason = f"each needs an episode of its own and this rank has {workers}"
            logger.warning("--num_workers=%d: using %d, as %s", wanted, workers, reason)
        return workers
    return 1  # reading says why there is no plan at all


def _make_transform(config: TrainConfig) -> Augment | None:
    changes = config.dataset.image_transforms
    if not changes.enable:
        return None
    return Augment(
        [(change.weight, change.ranges) for change in parse_transforms(changes.tfs)],
        max_num_transforms=changes.max_num_transforms,
        random_order=changes.random_order,
    )


def _loader_settings(config: TrainConfig, *, num_workers: int) -> LoaderSettings:
    return LoaderSettings(
        num_workers=num_workers,
        context=config.dataloader_multiprocessing_context,
        prefetch_factor=config.prefetch_factor,
        persistent_workers=config.persistent_workers,
    )


def _reading(
    config: TrainConfig, header: Header, delta_timestamps: Mapping[str, list[float]]
) -> dict[str, Any]:
    """What streaming and map-style datasets are told alike."""
    data, root, revision = config.dataset, config.dataset.root, config.dataset.revision
    if header.identity.data_root.startswith(_AT_A_COMMIT):
        root, revision = header.identity.data_root, None  # a branch may have moved on since
    return {
        "repo_id": data.repo_id,
        "root": root,
        "revision": revision,
        "repo_type": data.repo_type,
        "delta_timestamps": delta_timestamps,
        "tolerance_s": config.tolerance_s,
        "frames_by": data.frames_by,
        "find_rows": data.find_rows,
        "return_uint8": True,
        "sidecar_lock_timeout_s": data.streaming_sidecar_lock_timeout_s,
    }


def _streaming(config: TrainConfig) -> dict[str, Any]:
    data = config.dataset
    return {
        "seed": config.seed,
        "sampling_strategy": data.streaming_sampling_strategy,
        "episode_pool_size": data.streaming_episode_pool_size,
        "prefetch_episodes": data.streaming_prefetch_episodes,
        "byte_budget_gb": data.streaming_byte_budget_gb,
        "decoded_pool_gb": data.streaming_decoded_pool_gb,
        "decode_threads": data.streaming_decode_threads,
        "decoded_queue_size": data.streaming_decoded_queue_size,
        "video_decoder_cache_size": data.video_decoder_cache_size,
        "max_num_shards": max(1, config.loader_workers),
        "native_http_connections": data.streaming_native_http_connections,
        "native_http_subranges": data.streaming_native_http_subranges,
    }
