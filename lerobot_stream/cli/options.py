"""A nested configuration record as dotted flags: ``--dataset.streaming=true``."""

from __future__ import annotations

import copy
import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING
from typing import Annotated, Any

import typer

from lerobot_stream.cli.setting import Setting, list_settings
from lerobot_stream.cli.values import parse_value

RENAMED = {
    "buffer_size": "use --dataset.streaming_episode_pool_size, in episodes",
    "streaming_buffer_size": "use --dataset.streaming_episode_pool_size, in episodes",
    "streaming_data_root": "metadata and videos come from one place: use --dataset.root",
    "streaming_max_open_decoders": "use --dataset.video_decoder_cache_size",
    "streaming_encoding": "it belongs to recording; training takes videos as they are",
    "video_backend": "leave it out: torchcodec decodes every video",
    "policy.push_to_hub": "leave it out: training uploads nothing",
    "policy.repo_id": "leave it out: training uploads nothing",
    "env.type": "there is no simulation here: use --dataset.eval_split and --eval_steps",
    "eval_freq": "use --dataset.eval_split and --eval_steps",
    "optimizer.lr": "use --policy.optimizer_lr",
    "use_policy_training_preset": "leave it out: what --optimizer and --scheduler do not say is "
    "the policy's own",
}
"""A flag that is none today, whole or its last part, and what to do."""
_CLOSE = 0.8


def takes_settings(config_class: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command take every setting of a record as a flag.

    Args:
        config_class: The record.

    Returns:
        A decorator for ``command(flags: Mapping[str, str])``, which gets the flags that were
        given, by dotted name, as their text.
    """
    settings = list_settings(config_class)
    by_parameter = {setting.parameter: setting.name for setting in settings}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(**texts: str | None) -> None:
            command({by_parameter[key]: text for key, text in texts.items() if text is not None})

        run.__doc__ = command.__doc__
        run.__name__ = command.__name__
        parameters = [_parameter(setting) for setting in settings]
        annotations = {parameter.name: parameter.annotation for parameter in parameters}
        run.__annotations__ = {**annotations, "return": None}
        signature = inspect.Signature(parameters, return_annotation=None)
        run.__signature__ = signature  # type: ignore[attr-defined]
        return run

    return decorate


def _parameter(setting: Setting) -> inspect.Parameter:
    return inspect.Parameter(
        setting.parameter,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[str | None, typer.Option(f"--{setting.name}", help=setting.help)],
    )


def parse_flags(config_class: type, flags: Mapping[str, str]) -> dict[str, object]:
    """Read the text of the flags that were given.

    Args:
        config_class: The record whose settings they are.
        flags: Text by dotted name.

    Returns:
        Values by dotted name, in the settings' types.

    Raises:
        ValueError: A text is no value of its setting; the flag is named.
    """
    annotations = {setting.name: setting.annotation for setting in list_settings(config_class)}
    values: dict[str, object] = {}
    for name, text in flags.items():
        try:
            values[name] = parse_value(text, annotations[name])
        except ValueError as error:
            raise ValueError(f"--{name}: {error}") from None
    return values


def merge_values(
    config_class: type, explicit: Mapping[str, object], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Lay the flags that were given over a file's values.

    Args:
        config_class: The record that the values are for.
        explicit: Values of the flags, by dotted name.
        defaults: Values of a JSON file, nested as the record is; may be empty.

    Returns:
        Values nested as the record is; what neither says is not there.

    Raises:
        ValueError: A setting that must be given is missing.
    """
    merged = copy.deepcopy(dict(defaults))
    for name, value in explicit.items():
        *records, last = name.split(".")
        inside = merged
        for record in records:
            if not isinstance(inside.get(record), dict):
                inside[record] = {}
            inside = inside[record]
        inside[last] = value
    for setting in list_settings(config_class):
        if setting.default is MISSING and _look_up(merged, setting.name) is MISSING:
            raise ValueError(f"--{setting.name} must be given")
    return merged


def _look_up(values: Mapping[str, Any], name: str) -> object:
    inside: object = values
    for part in name.split("."):
        inside = inside.get(part, MISSING) if isinstance(inside, Mapping) else MISSING
    return inside


def find_renamed(arguments: Sequence[str]) -> tuple[str, str] | None:
    """Look for a flag of an earlier day.

    Args:
        arguments: The command line.

    Returns:
        The flag as it was written, and what to do today; None where there is none.
    """
    for argument in arguments:
        flag = argument.split("=", 1)[0]
        name = flag.removeprefix("--")
        advice = RENAMED.get(name) or RENAMED.get(name.rsplit(".", 1)[-1])
        if flag.startswith("--") and advice:
            return flag, advice
    return None


def find_meant(flag: str, known: Sequence[str]) -> str | None:
    """Guess which flag was meant.

    Args:
        flag: As it was written, ``--batch-size``.
        known: Flags that there are.

    Returns:
        The one it is spelt like, or its last part, or of which it is the last part; None
        where nothing is near enough.
    """
    close = difflib.get_close_matches(flag, known, n=1, cutoff=_CLOSE)
    name = flag.removeprefix("--")
    last = f"--{name.rpartition('.')[2]}"
    whole = [one for one in known if one == last or one.endswith(f".{name}")]
    return next(iter([*whole, *close]), None)
