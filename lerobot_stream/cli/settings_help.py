"""The help of a command with many dotted flags: every name in full, its meaning below it."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from dataclasses import MISSING
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text
from typer.core import TyperCommand

from lerobot_stream.cli.setting import Setting
from lerobot_stream.cli.values import describe


class SettingsCommand(TyperCommand):
    """A command whose ``--help`` lists settings by heading, one below the other."""

    settings: tuple[Setting, ...] = ()
    """What to list; a subclass says."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help to stdout, in colour on a terminal."""
        console = Console(highlight=False)
        console.print(Text(f"Usage: {ctx.command_path} [--SETTING=VALUE]...\n"))
        for paragraph in inspect.cleandoc(self.help or "").split("\n\n"):
            console.print(Padding(" ".join(paragraph.split()), (0, 0, 1, 2), expand=False))
        for line in _lines(self.settings):
            console.print(line)
        if self.epilog:
            console.print(self.epilog)


def _lines(settings: tuple[Setting, ...]) -> Iterator[Text | Padding]:
    for panel, members in groupby(settings, key=lambda setting: setting.panel):
        yield Text(panel, style="bold")
        for setting in members:
            default = shown_default(setting.default)
            yield Text.assemble(
                "  ", (f"--{setting.name}", "cyan"), (f"={default}" if default else "", "green")
            )
            wanted = describe(setting.annotation)
            if setting.default is None:
                wanted = wanted.removesuffix(" or null")
            more = "" if wanted == "text" else f" ({wanted})"
            yield Padding(Text.assemble(setting.help, (more, "dim")), (0, 0, 0, 6), expand=False)
        yield Text()


def shown_default(default: object) -> str:
    """Write a default as on the command line.

    Args:
        default: The value; ``dataclasses.MISSING`` where there is none.

    Returns:
        Its text, empty where there is none.
    """
    if default is MISSING:
        return ""
    if default is None:
        return "null"
    text = default if isinstance(default, str) else json.dumps(default, default=str)
    return text if len(text) < 60 else "…"
