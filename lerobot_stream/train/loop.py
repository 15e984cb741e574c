"""The training loop."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from rich.console import Console

from lerobot_stream.train.checkpoint import CHECKPOINTS, step_name
from lerobot_stream.train.config import TrainConfig
from lerobot_stream.train.distributed import Ranks, join_ranks
from lerobot_stream.train.logs import RunLog, open_log
from lerobot_stream.train.meter import Meter
from lerobot_stream.train.resolve import resolve
from lerobot_stream.train.start import Run, start_run
from lerobot_stream.train.step import (
    check_finite,
    count_valid,
    evaluate,
    gradients_shared,
    save,
    update,
)
from lerobot_stream.train.stop import StopRequest


def train(config: TrainConfig, *, console: Console, explicit: frozenset[str] = frozenset()) -> Path:
    """Train a policy.

    Started by ``torchrun``, every rank calls this and rank 0 writes.

    Args:
        config: The run.
        console: Where people read what goes on.
        explicit: Dotted names of settings that were asked for, rather than taken from the
            file of ``config_path`` or left at their defaults.

    Returns:
        The folder of the last checkpoint; the output folder where none was written.

    Raises:
        StreamError: The data, policy or checkpoint cannot be used, or training fails.
        ValueError: Settings that make no sense together.
    """
    timeout_s = config.dataset.streaming_sidecar_lock_timeout_s + 600
    with join_ranks(config.policy.device, timeout_s=timeout_s) as ranks, StopRequest() as stop:
        run = start_run(resolve(config, explicit=explicit), ranks, explicit=explicit)
        with open_log(run, ranks, console) as log:
            return _loop(run, ranks, log, stop)


def _loop(run: Run, ranks: Ranks, log: RunLog, stop: StopRequest) -> Path:
    config, accumulated = run.config, run.config.gradient_accumulation_steps
    saved = run.folder / CHECKPOINTS / step_name(run.step, config.steps)
    meter = Meter(
        step=run.step,
        items=run.data.num_items,
        items_per_step=config.batch_size * accumulated * ranks.world_size,
        num_frames=run.data.num_frames,
        ranks=ranks,
    )
    with closing(iter(run.data)) as batches:
        while run.step < config.steps:
            with meter.waiting():
                parts = [next(batches) for _ in range(accumulated)]
            num_valid = count_valid(run.setup.action, parts, ranks)
            for number, batch in enumerate(parts, start=1):
                with gradients_shared(run.model, now=number == accumulated):
                    with run.precision.autocast():
                        loss, metrics = run.model(run.setup.preprocess(batch), num_valid)
                    run.precision.scaler.scale(loss / accumulated).backward()
                meter.add(loss=loss, **metrics)
            meter.add(grad_norm=update(run))
            run.step += 1
            log.advance(run.step)

            stops = ranks.any(stop.signal is not None)
            last = stops or run.step == config.steps
            if last or run.step % config.log_freq == 0:
                numbers = meter.take(step=run.step, steps=config.steps)
                log.log(run.step, check_finite(numbers, run.step))
            with meter.paused():
                if run.held_out is not None and (last or run.step % config.eval_steps == 0):
                    log.log(run.step, evaluate(run, run.held_out, ranks))
                if config.save_checkpoint and (last or run.step % config.save_freq == 0):
                    saved = save(run, ranks)
                    log.say(f"checkpoint {saved}")
            if stops:
                log.say(f"stopped after step {run.step}, as a signal asked")
                break
    return saved if config.save_checkpoint else run.folder
