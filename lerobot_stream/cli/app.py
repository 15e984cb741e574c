"""The Typer app: its commands by name, each imported from a file of its own."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import typer

COMMANDS = {
    "train": "lerobot_stream.cli.train",
    "build-sidecar": "lerobot_stream.cli.build_sidecar",
    "validate-sidecar": "lerobot_stream.cli.validate_sidecar",
    "publish-sidecar": "lerobot_stream.cli.publish_sidecar",
    "inspect-episodes": "lerobot_stream.cli.inspect_episodes",
    "profile": "lerobot_stream.cli.profile",
}
"""Module of each command; its function ``command`` is what runs, by ``Command`` if it has one."""

_EPILOG = "--version alone prints the version."
_HELP = "Train robot policies straight from LeRobotDataset v3 data, wherever it lies."


def make_app(commands: Sequence[str]) -> typer.Typer:
    """Build the app.

    Args:
        commands: Names out of ``COMMANDS``; a single one becomes the program itself.

    Returns:
        The app, to be called with ``args``, ``prog_name`` and ``standalone_mode=False``.
    """
    app = typer.Typer(
        help=_HELP,
        epilog=_EPILOG,
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in commands:
        module = importlib.import_module(COMMANDS[name])
        kind = getattr(module, "Command", None)
        epilog = _EPILOG if len(commands) == 1 else None
        app.command(name, cls=kind, epilog=epilog)(module.command)
    return app
