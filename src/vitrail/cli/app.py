"""The command line: one typer application; commands load what they need when they are called.

Exit codes: 0 done, 1 output pipe closed, 2 the input or the call cannot be used,
130 and 143 stopped by Ctrl-C and by SIGTERM, with a sentence that says what is kept.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from vitrail import __version__, interrupts

GARBAGE = 50_000  # objects between garbage collections; the default of 700 slows loading by 10 %


class _Commands(TyperGroup):
    """A command group that stops by the policy of `interrupts` instead of typer's."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with interrupts.all_or_nothing():
                return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise interrupts.ForcedStop(*stop.args) from None


@contextmanager
def when_stopped(sentence: str) -> Iterator[None]:
    """Print a message if the block is stopped, by the first or the second signal."""
    try:
        yield
    except (KeyboardInterrupt, interrupts.ForcedStop) as stop:
        raise KeyboardInterrupt(stop.args[0] if stop.args else sentence) from None


app = typer.Typer(
    name="vitrail",
    cls=_Commands,
    help="Learn networks whose weights are bits: a posterior by sampling or by message passing.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vitrail {__version__}")
        raise typer.Exit


@app.callback()
def vitrail(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Learn networks whose weights are bits: a posterior by sampling or by message passing."""


def _open_streams() -> None:
    """Replace streams that the caller closed; escape characters that the terminal cannot show."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (open until the end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    sys.stderr.write(f"warning: {' '.join(str(message).split())}\n")


@contextmanager
def _ranks(arguments: Sequence[str]) -> Iterator[None]:
    """Join the ranks that torchrun has started; only rank 0 prints."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield
        return
    from vitrail.ranks import LostRankError, joined

    if "fit" not in arguments[:1]:
        raise ValueError("only `vitrail fit` runs on ranks; start other commands without torchrun")
    stderr = sys.stderr
    with joined() as world, ExitStack() as quiet:
        if not world.first:
            nowhere = quiet.enter_context(open(os.devnull, "w"))
            quiet.enter_context(redirect_stdout(nowhere))
            quiet.enter_context(redirect_stderr(nowhere))
        try:
            yield
        except LostRankError as error:
            if error.report_here:
                stderr.write(f"error: {error}\n")
            sys.exit(1)
        except (OSError, MemoryError) as error:  # of this machine; other errors occur on every rank
            if not world.first:
                stderr.write(f"error: rank {world.rank}: {error}\n")
            raise


def _leave(code: int) -> NoReturn:
    """Exit immediately, without waiting for running threads."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)


def commands() -> typer.Typer:
    """The application with every command, in the order of the help."""
    from vitrail.cli import fit, stream, compare, predict, look, ship, research  # noqa: F401, I001

    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; errors that users can fix are one line on standard error, exit code 2."""
    _open_streams()
    if arguments is None:
        gc.set_threshold(GARBAGE)
        atexit.register(gc.freeze)  # a final collection would take most of a second
    try:
        with warnings.catch_warnings(), interrupts.stop_on_sigterm(), interrupts.all_or_nothing():
            program = commands()
            warnings.filterwarnings("always", "column ", UserWarning)  # about data
            warnings.showwarning = _show_warning
            with _ranks(sys.argv[1:] if arguments is None else arguments):
                program(args=None if arguments is None else list(arguments))
    except KeyboardInterrupt as stop:  # its message says what is saved
        sys.stderr.write(f"{stop.args[0] if stop.args else 'stopped; nothing new is saved'}\n")
        if arguments is None and any(
            one.name.startswith(interrupts.POOL) for one in threading.enumerate()
        ):
            _leave(interrupts.exit_code())
        sys.exit(interrupts.exit_code())
    except BrokenPipeError:  # the reader closed the output pipe
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (for what is buffered)
        sys.exit(1)
    except (ValueError, TypeError, OSError, MemoryError, RuntimeError) as error:
        sentence = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, RuntimeError):
            if "allocate memory" not in sentence and "out of memory" not in sentence:
                raise
            sentence = "there is not enough memory; take fewer rows, units or draws"
        sys.stderr.write(f"error: {sentence}\n")
        sys.exit(2)
