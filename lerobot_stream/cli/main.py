"""Entry points: run a command and turn what goes wrong into one line and an exit code."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Sequence
from types import TracebackType

import typer

from lerobot_stream.cli.app import COMMANDS, make_app
from lerobot_stream.cli.logs import shown_logs
from lerobot_stream.cli.options import find_meant, find_renamed
from lerobot_stream.cli.output import give_output_up, ready_output
from lerobot_stream.cli.version import installed_version
from lerobot_stream.errors import StreamError

DONE, FAULT, USAGE, INTERRUPTED = 0, 1, 2, 130
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main() -> None:
    """Run ``lerobot-stream``."""
    sys.exit(run("lerobot-stream", list(COMMANDS), sys.argv[1:]))


def train_main() -> None:
    """Run ``lerobot-train``, which is ``lerobot-stream train``."""
    sys.exit(run("lerobot-train", ["train"], sys.argv[1:]))


def build_main() -> None:
    """Run ``lerobot-build-mp4-sidecar``, which is ``lerobot-stream build-sidecar``."""
    sys.exit(run("lerobot-build-mp4-sidecar", ["build-sidecar"], sys.argv[1:]))


def run(program: str, commands: Sequence[str], arguments: Sequence[str]) -> int:
    """Run a command line.

    Args:
        program: The name it was called by.
        commands: Names of the commands it has; a single one needs no name to be called.
        arguments: What stands behind the program's name.

    Returns:
        0 done, 1 a fault of the data or the world, 2 wrong usage, 130 interrupted.
    """
    ready_output()
    renamed = find_renamed(arguments)
    if renamed is not None:
        flag, advice = renamed
        return _report(f"no such option: {flag}", hint=advice, code=USAGE)
    try:
        with shown_logs():
            return _guarded(program, make_app(commands), arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        give_output_up()  # whoever read it has gone
        return FAULT
    except OSError as error:
        if error.errno not in _FULL:
            raise
        give_output_up()
        return _report(f"the output cannot be written: {error.strerror}", code=FAULT)


def _guarded(program: str, app: Callable[..., object], arguments: Sequence[str]) -> int:
    try:
        if list(arguments) == ["--version"]:
            typer.echo(f"{program} {installed_version()}")
            code: object = DONE
        else:
            code = app(args=list(arguments), prog_name=program, standalone_mode=False)
        sys.stdout.flush()
    except StreamError as error:
        return _report(str(error), notes=_notes(error), hint=error.hint, code=FAULT)
    except typer.TyperException as error:
        message, hint = _usage(error)
        if not message:  # called without a command: the help has been shown
            return error.exit_code
        command = getattr(getattr(error, "ctx", None), "command_path", program)
        return _report(message, hint=hint or f"{command} --help", code=error.exit_code)
    except MemoryError as error:
        what = str(error) or "a part of the data is larger than what is free"
        hint = "use smaller batches, pools or budgets, or look for absurd sizes in the dataset"
        return _report(f"not enough memory: {what}", hint=hint, code=FAULT)
    except ValueError as error:
        if not _raised_by_us(error.__traceback__):
            raise
        return _report(str(error), notes=_notes(error), code=USAGE)
    return code if isinstance(code, int) else DONE


def _report(message: str, *, notes: Sequence[str] = (), hint: str | None = None, code: int) -> int:
    lines = [f"error: {message}", *(f"  {note}" for note in notes)]
    if hint:
        lines.append(f"  hint: {hint}")
    typer.echo("\n".join(lines), err=True)
    return code


def _notes(error: BaseException) -> list[str]:
    return [line for note in getattr(error, "__notes__", ()) for line in note.splitlines()]


def _usage(error: typer.TyperException) -> tuple[str, str | None]:
    """The message in our own style, and the flag or command that was perhaps meant."""
    flag = getattr(error, "option_name", None)
    if flag is not None and not hasattr(error, "possibilities"):
        return f"{flag} needs a value, as in {flag}=VALUE", None
    if flag is not None:
        meant = find_meant(flag, getattr(error, "possibilities", None) or ())
        return f"no such option: {flag}", f"did you mean {meant}" if meant else None
    message = " ".join(error.format_message().split()).rstrip(".")
    return message[:1].lower() + message[1:], None


def _raised_by_us(trace: TracebackType | None) -> bool:
    """Whether the error was raised by a line of this package, so that it is about an argument."""
    module = ""
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        trace = trace.tb_next
    return module.partition(".")[0] == __name__.partition(".")[0]
