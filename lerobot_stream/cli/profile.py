"""``profile``: see how fast a dataset streams here, what it waits for, and how well it mixes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from lerobot_stream.cli.address import AsJson, RepoId, RepoType, Revision, Root
from lerobot_stream.cli.chart import bar, histogram, sparkline
from lerobot_stream.cli.episode_list import parse_episodes
from lerobot_stream.cli.progress import format_bytes
from lerobot_stream.cli.values import parse_value
from lerobot_stream.counted import counted
from lerobot_stream.plan.strategy import Strategy
from lerobot_stream.stream.config import ReadConfig, StreamConfig

if TYPE_CHECKING:
    from lerobot_stream.profile.measure import Profile
    from lerobot_stream.profile.timeline import Spread

_PLOT_WIDTH = 60


def command(
    repo_id: RepoId,
    repo_type: RepoType = "dataset",
    revision: Revision = None,
    root: Root = None,
    episodes: Annotated[
        str | None, typer.Option("--episodes", help="Only the first N, or 0,4,7-9.")
    ] = None,
    strategy: Annotated[
        str, typer.Option("--strategy", help="remaining, round_robin or clip.")
    ] = StreamConfig.sampling_strategy,
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="Items a batch.")] = 8,
    batches: Annotated[int, typer.Option("--batches", min=2, help="Batches to take.")] = 200,
    num_workers: Annotated[
        int, typer.Option("--num-workers", min=0, help="Worker processes; 0: threads alone.")
    ] = 0,
    decode_threads: Annotated[
        int, typer.Option("--decode-threads", min=1, help="Decode threads a worker.")
    ] = StreamConfig.decode_threads,
    episode_pool_size: Annotated[
        int | None,
        typer.Option("--episode-pool-size", min=1, help="Most episodes mixed by a worker."),
    ] = StreamConfig.episode_pool_size,
    prefetch_episodes: Annotated[
        int, typer.Option("--prefetch-episodes", min=0, help="Fetched ahead of the pool.")
    ] = StreamConfig.prefetch_episodes,
    byte_budget_gb: Annotated[
        float, typer.Option("--byte-budget-gb", help="Most coded video held.")
    ] = StreamConfig.byte_budget_gb,
    decoded_pool_gb: Annotated[
        float, typer.Option("--decoded-pool-gb", help="Most decoded pictures held.")
    ] = StreamConfig.decoded_pool_gb,
    delta_timestamps: Annotated[
        str | None,
        typer.Option("--delta-timestamps", help='{"KEY": [-0.1, 0]} in seconds, or @file.json.'),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Decides the order.")] = 1000,
    limit: Annotated[
        bool, typer.Option("--limit", help="Measure the sequential decode limit too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Stream a dataset for some batches and say what that was like.

    Nothing is trained: the numbers are the most that training could get. With --limit they stand
    beside the speed at which this machine decodes every picture once, in order.
    """
    read = ReadConfig(
        repo_id,
        root=root,
        revision=revision,
        repo_type=repo_type,
        episodes=None if episodes is None else parse_episodes(episodes),
        delta_timestamps=_windows(delta_timestamps),
    )
    with _flags_named():
        stream = StreamConfig(
            seed=seed,
            sampling_strategy=cast(Strategy, strategy),
            episode_pool_size=episode_pool_size,
            prefetch_episodes=prefetch_episodes,
            byte_budget_gb=byte_budget_gb,
            decoded_pool_gb=decoded_pool_gb,
            decode_threads=decode_threads,
            repeat=True,
        )
    from lerobot_stream.profile.measure import ProfileConfig, profile_stream
    from lerobot_stream.stream.opened import open_dataset

    what = ProfileConfig(
        batch_size=batch_size, batches=batches, num_workers=num_workers, limit=limit
    )
    profile = profile_stream(open_dataset(read), stream, what)
    if as_json:
        typer.echo(json.dumps(profile.to_json(), indent=2))
    else:
        _show(profile, Console(highlight=False))


@contextmanager
def _flags_named() -> Iterator[None]:
    """Name the flag where a setting is refused that has another name in Python."""
    try:
        yield
    except ValueError as error:
        name, _, said = str(error).partition(" ")
        flag = name.removeprefix("sampling_").replace("_", "-")
        raise ValueError(f"--{flag} {said}") from None


def _windows(text: str | None) -> Mapping[str, Sequence[float]] | None:
    if text is None:
        return None
    try:
        value = parse_value(text, Mapping[str, Sequence[float]])
    except ValueError as error:
        raise ValueError(f"--delta-timestamps: {error}") from None
    return cast(Mapping[str, Sequence[float]], value)


def _show(profile: Profile, console: Console) -> None:
    timeline, stats = profile.timeline, profile.stats
    table = Table(box=SIMPLE, show_header=False, pad_edge=False)
    table.add_row("items", f"{_rate(timeline.items_per_s())}, {stats.items} in all")
    table.add_row("pictures", _rate(timeline.pictures_per_s()))
    if profile.limit is not None and profile.of_limit is not None:
        limit = profile.limit
        share = f"{profile.of_limit:.2f} of it"
        table.add_row(
            "decode limit",
            f"{limit.pictures_per_s:.0f}/s with {counted(limit.threads, 'thread')}; {share}",
        )
    table.add_row("first batch", f"after {profile.first_batch_s:.2f} s")
    waits = timeline.waits()
    table.add_row(
        "batch wait",
        f"p50 {_ms(waits.p50)}, p95 {_ms(waits.p95)}, p99 {_ms(waits.p99)}",
    )
    for cause, share_of_run in profile.waiting_shares.items():
        table.add_row(f"  for {cause}", f"{share_of_run:4.0%} {bar(share_of_run, width=20)}")
    decoded = stats.decoded / max(1, stats.pictures)
    table.add_row(
        "decoded", f"{counted(stats.decoded, 'picture')} for {stats.pictures}, {decoded:.2f} each"
    )
    fetched, wanted = format_bytes(stats.fetched_bytes), format_bytes(stats.wanted_bytes)
    table.add_row(
        "fetched",
        f"{fetched} in {counted(stats.requests, 'request')}; the pictures' own bytes are {wanted}",
    )
    held = (
        f"at most {format_bytes(stats.reserved_bytes)} reserved, "
        f"{format_bytes(stats.resident_bytes)} resident, {format_bytes(stats.open_bytes)} decoded"
    )
    table.add_row("held", held)
    kind = (
        "PSS at most"
        if profile.memory.kind == "pss"
        else "RSS at most (this system does not tell PSS)"
    )
    table.add_row("memory", f"{format_bytes(profile.memory.size)} {kind}")
    _add_mixing(table, profile.mixing)
    console.print(table)
    rates = timeline.rates(timeline.items)
    console.print(f"items/s over time  {sparkline(rates.tolist(), width=_PLOT_WIDTH)}")
    console.print("batch waits")
    for label, line in histogram(timeline.wait_s[1:].tolist(), width=_PLOT_WIDTH // 2):
        console.print(f"  {label:>16}  {line}")


def _add_mixing(table: Table, mixing: Mapping[str, float] | None) -> None:
    if mixing is None:
        table.add_row("mixing", "no whole batch in an epoch")
        return
    table.add_row(
        "mixing",
        f"{mixing['effective_episodes']:.1f} effective episodes a batch, "
        f"{mixing['worst_effective_episodes']:.1f} in the worst",
    )
    correlation = f"correlation with the index {mixing['index_correlation']:+.3f}"
    table.add_row("", f"{mixing['near_neighbours']:.1%} near neighbours, {correlation}")
    table.add_row("", f"mean phase of the first tenth {mixing['first_tenth_phase']:.2f}")


def _rate(spread: Spread) -> str:
    return f"{spread.median:.0f}/s ({spread.low:.0f} to {spread.high:.0f})"


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms"
