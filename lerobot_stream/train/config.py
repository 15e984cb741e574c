"""Everything a training run can be told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from lerobot_stream.plan.strategy import Strategy
from lerobot_stream.sidecar.choices import FramesBy
from lerobot_stream.source.root import without_credentials
from lerobot_stream.stream.config import MAX_GB, ReadConfig, StreamConfig, order_seed
from lerobot_stream.train.image_transforms import DEFAULT_TRANSFORMS, parse_transforms
from lerobot_stream.train.policies.act_config import ActConfig, check_policy
from lerobot_stream.train.records import record_to_json
from lerobot_stream.train.settings import check_settings, setting

_MAX_SEED = 1 << 62  # generators take 63 bits, and ranks and steps are added
_MAX_BATCH = 1 << 31


@dataclass(frozen=True, slots=True)
class ImageTransformsConfig:
    """Random changes of pictures, drawn anew for each item."""

    enable: bool = setting(False, help="Change pictures at random while training.")
    max_num_transforms: int = setting(3, least=1, help="Most changes made to one item.")
    random_order: bool = setting(False, help="Make them in random order, else in the order given.")
    tfs: Mapping[str, Any] = field(
        default_factory=lambda: dict(DEFAULT_TRANSFORMS),
        metadata={
            "help": "The changes there are: weight, type (ColorJitter, SharpnessJitter, "
            "RandomAffine) and kwargs (ranges) of each, as a JSON object."
        },
    )


@dataclass(frozen=True, slots=True)
class DatasetConfig:
    """Which data, and how it is read."""

    repo_id: str = setting(help="Dataset on the Hub, OWNER/NAME; any such name with a folder.")
    repo_type: Literal["dataset", "bucket"] = setting(
        ReadConfig.repo_type, help="Kind of Hub repository."
    )
    root: str | None = setting(ReadConfig.root, help="Folder or URL where the dataset lies.")
    revision: str | None = setting(ReadConfig.revision, help="Commit, tag or branch on the Hub.")
    episodes: tuple[int, ...] | None = setting(
        ReadConfig.episodes, help="Episodes to train on; all if not given."
    )
    exclude_episodes: tuple[int, ...] | None = setting(
        ReadConfig.exclude_episodes, help="Episodes to leave out."
    )
    eval_split: float = setting(
        0.0, least=0, below=1, help="Share of the episodes, the last ones, held out to evaluate on."
    )
    frames_by: FramesBy | None = setting(
        ReadConfig.frames_by,
        help="Which reading decides where an episode starts in its video if two are plausible.",
    )
    find_rows: bool = setting(
        ReadConfig.find_rows, help="Read rows where they are if the metadata names another file."
    )
    use_imagenet_stats: bool = setting(
        True, help="Normalise pictures by ImageNet's mean and deviation, not by the dataset's."
    )
    image_transforms: ImageTransformsConfig = field(
        default_factory=ImageTransformsConfig, metadata={"help": "Random changes of pictures."}
    )
    streaming: bool = setting(False, help="Read episodes as they are needed; false: map-style.")
    streaming_sampling_strategy: Strategy = setting(
        StreamConfig.sampling_strategy, help="How the frames of the pool are mixed."
    )
    streaming_episode_pool_size: int | None = setting(
        StreamConfig.episode_pool_size,
        least=1,
        help="Most episodes mixed, per worker; 32 shared by all workers if not given.",
    )
    streaming_prefetch_episodes: int = setting(
        StreamConfig.prefetch_episodes, least=0, help="Episodes fetched ahead of the pool."
    )
    streaming_byte_budget_gb: float = setting(
        StreamConfig.byte_budget_gb,
        above=0,
        most=MAX_GB,
        help="GB of compressed video held, per rank.",
    )
    streaming_decoded_pool_gb: float = setting(
        StreamConfig.decoded_pool_gb,
        above=0,
        most=MAX_GB,
        help="GB of decoded frames held, per rank.",
    )
    streaming_decode_threads: int = setting(
        StreamConfig.decode_threads, least=1, help="Decoding threads per worker."
    )
    streaming_decoded_queue_size: int = setting(
        StreamConfig.decoded_queue_size, least=1, help="Most batches ready."
    )
    video_decoder_cache_size: int | None = setting(
        StreamConfig.video_decoder_cache_size,
        least=1,
        help="Most open decoders; one for each episode being read and camera if not given.",
    )
    streaming_native_http_connections: int | None = setting(
        ReadConfig.native_http_connections, least=1, help="HTTP connections per rank."
    )
    streaming_native_http_subranges: int = setting(
        ReadConfig.native_http_subranges, least=1, help="Parts a large request is split into."
    )
    streaming_sidecar_lock_timeout_s: float = setting(
        ReadConfig.sidecar_lock_timeout_s,
        above=0,
        help="Seconds to wait while another process builds the sidecar.",
    )


@dataclass(frozen=True, slots=True)
class OptimizerConfig:
    """How gradients become updates; rates and decay are the policy's own settings."""

    grad_clip_norm: float | None = setting(
        None, least=0, help="Largest norm of the gradient; 0 leaves any, ACT's own is 10."
    )
    betas: tuple[float, float] = setting((0.9, 0.999), help="Decay rates of AdamW's moments.")
    eps: float = setting(1e-8, above=0, help="AdamW's term against division by zero.")


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """How learning rates change with the steps."""

    type: Literal["constant", "cosine_decay_with_warmup"] = setting(
        "constant", help="Shape of the schedule; ACT's own is constant."
    )
    num_warmup_steps: int = setting(0, least=0, help="Steps of a linear rise from zero.")
    num_decay_steps: int | None = setting(
        None, least=1, help="Step at which the decay ends; --steps if not given."
    )
    decay_lr: float = setting(0.0, least=0, help="Learning rate at the end of the decay.")


@dataclass(frozen=True, slots=True)
class WandbConfig:
    """Metrics to Weights & Biases; needs the package wandb."""

    enable: bool = setting(False, help="Log metrics to Weights & Biases.")
    project: str = setting("lerobot", help="Its project.")
    entity: str | None = setting(None, help="Its team or user.")
    mode: Literal["online", "offline", "disabled"] = setting("online", help="Its mode.")
    run_id: str | None = setting(None, help="Run to continue; the resumed one's if not given.")


@dataclass(frozen=True, slots=True)
class TensorboardConfig:
    """Metrics to TensorBoard; needs the package tensorboard."""

    enable: bool = setting(False, help="Log metrics for TensorBoard, in the output folder.")


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """One training run."""

    dataset: DatasetConfig = field(metadata={"help": "Which data, and how it is read."})
    policy: ActConfig = field(default_factory=ActConfig, metadata={"help": "What is trained."})
    output_dir: str | None = setting(
        None, help="Folder for checkpoints and metrics; outputs/train/<time>_<job> if not given."
    )
    job_name: str | None = setting(None, help="Name of the run; the policy's type if not given.")
    resume: bool = setting(False, help="Continue the run of --config_path.")
    resume_elastic: bool = setting(
        False,
        help="Resume with other ranks, workers or batches: what is left of the epoch is planned "
        "anew, and each frame is still seen once.",
    )
    config_path: str | None = setting(
        None, help="A train_config.json whose settings are the defaults."
    )
    seed: int | None = setting(
        StreamConfig.seed,
        least=0,
        most=_MAX_SEED,
        help="Seed of everything random; null seeds the order of frames alone.",
    )
    num_workers: int | None = setting(
        None, least=0, help="Worker processes of the loader; 4, or 0 with streaming, if not given."
    )
    batch_size: int = setting(8, least=1, most=_MAX_BATCH, help="Items in a batch, per rank.")
    gradient_accumulation_steps: int = setting(
        1, least=1, help="Batches whose gradients make one step."
    )
    steps: int = setting(100_000, least=1, help="Steps of the whole run.")
    log_freq: int = setting(200, least=1, help="Steps between two log lines.")
    save_freq: int = setting(20_000, least=1, help="Steps between two checkpoints.")
    save_checkpoint: bool = setting(True, help="Write checkpoints.")
    keep_checkpoints: int | None = setting(
        None, least=1, help="Newest checkpoints to keep; all if not given."
    )
    eval_steps: int = setting(
        20_000, least=1, help="Steps between two evaluations on the held-out episodes."
    )
    eval_batches: int | None = setting(
        None, least=1, help="Most batches of one evaluation; all held-out frames if not given."
    )
    ema_decay: float | None = setting(
        None, above=0, below=1, help="Decay of a running mean of the weights, which is then saved."
    )
    tolerance_s: float = setting(
        ReadConfig.tolerance_s, least=0, help="Seconds that times may differ without a warning."
    )
    prefetch_factor: int | None = setting(
        None, least=1, help="Batches each worker process makes ahead."
    )
    persistent_workers: bool = setting(
        True, help="Keep worker processes from one pass over the data to the next."
    )
    dataloader_multiprocessing_context: Literal["spawn", "fork", "forkserver"] = setting(
        "spawn", help="How worker processes are started."
    )
    rename_map: Mapping[str, str] = field(
        default_factory=dict,
        metadata={"help": "Names of features as the policy knows them, by the dataset's, as JSON."},
    )
    optimizer: OptimizerConfig = field(
        default_factory=OptimizerConfig, metadata={"help": "How gradients become updates."}
    )
    scheduler: SchedulerConfig = field(
        default_factory=SchedulerConfig, metadata={"help": "How learning rates change."}
    )
    wandb: WandbConfig = field(
        default_factory=WandbConfig, metadata={"help": "Metrics to Weights & Biases."}
    )
    tensorboard: TensorboardConfig = field(
        default_factory=TensorboardConfig, metadata={"help": "Metrics to TensorBoard."}
    )

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            ValueError: A setting is out of bounds or excludes another; flags are named.
        """
        check_settings(self)
        check_policy(self.policy)
        if self.resume and self.config_path is None:
            raise ValueError("--resume=true needs --config_path=…/train_config.json")
        if self.resume_elastic and not self.resume:
            raise ValueError("--resume_elastic=true needs --resume=true")
        try:
            parse_transforms(self.dataset.image_transforms.tfs)
        except ValueError as error:
            raise ValueError(f"--dataset.image_transforms.tfs: {error}") from None

    @property
    def loader_workers(self) -> int:
        """Worker processes of the loader."""
        if self.num_workers is not None:
            return self.num_workers
        return 0 if self.dataset.streaming else 4

    @property
    def order_seed(self) -> int:
        """Seed of the order of frames."""
        return order_seed(self.seed)


def without_secrets(config: TrainConfig) -> TrainConfig:
    """Return the settings without credentials, as they may be stored and sent."""
    root = config.dataset.root
    if root is None or "://" not in root:
        return config
    return replace(config, dataset=replace(config.dataset, root=without_credentials(root)))


def write_config(config: TrainConfig, path: Path) -> None:
    """Write a run's settings as ``train_config.json``, without credentials in the address."""
    values = record_to_json(without_secrets(config))
    path.write_text(json.dumps(values, indent=4) + "\n", encoding="utf-8")
