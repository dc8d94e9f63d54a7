"""End commands with exit codes and one-line errors that show no value of the data."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from types import FrameType
from typing import Any, final

import typer
from typer.core import TyperGroup

from zerodelta.errors import BudgetError, CertificateError, EntropyError, ZeroDeltaError


@final
class ExitCode(IntEnum):
    """The exit codes of commands, as docs/command-line.md lists them."""

    GOOD = 0
    NOT_VERIFIED = 1
    """A certificate, record, ledger or claim does not hold."""
    REFUSED = 2
    """An argument or a file is not usable; nothing was spent."""
    BUDGET = 3
    """The budget is exhausted, the question was released before, or the ledger is not usable."""
    FAILED = 4
    """An unexpected error; ε that was already debited stays spent."""
    INTERRUPTED = 130


@final
class IncompleteError(Exception):
    """A release was made and printed, but some of its files could not be written."""


@final
class GuardedGroup(TyperGroup):
    """The group of all commands; an exception of one becomes a line and an exit code."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Accept `--debug` at any place before `--`, by moving it to the front."""
        end = args.index("--") if "--" in args else len(args)
        debug = "--debug" in args[:end]
        rest = [word for word in args[:end] if word != "--debug"] + args[end:]
        return super().parse_args(ctx, ["--debug", *rest] if debug else rest)

    def invoke(self, ctx: Any) -> Any:
        """Run a command, and end it with an exit code."""
        with _errors_as_exits(debug=bool(ctx.params.get("debug"))), _terminated_as_interrupted():
            return super().invoke(ctx)


@contextmanager
def _errors_as_exits(*, debug: bool) -> Iterator[None]:
    """Turn any error inside into one line on standard error and an exit code."""
    debug = debug or os.environ.get("ZERODELTA_DEBUG", "") not in ("", "0")
    try:
        yield
    except KeyboardInterrupt as error:
        code, line = ExitCode.INTERRUPTED, _INTERRUPTED
        _end(error, code, line, debug=debug)
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception as error:
        if type(error).__module__.startswith(("click.", "typer.")):
            raise
        _end(error, _code(error), error_line(error), debug=debug)


_INTERRUPTED = "interrupted: ε that the ledger has debited stays spent; no file is half written."


def error_line(error: Exception) -> str:
    """Return one line about an error, which shows no value of the data."""
    if isinstance(error, ZeroDeltaError):
        return _as_commands(str(error))
    if isinstance(error, (ImportError, IncompleteError)):  # require_extra names the extra
        return str(error)
    return _system(error) if isinstance(error, OSError) else _unexpected(error)


_COMMAND_REMEDIES = {
    "with again=True": "with --again",
    "load it with zd.load, saved as": "it is saved as",
    "call ledger.raise_budget(to, reason)": "run zerodelta ledger raise",
    "ledger.raise_budget(to, reason)": "zerodelta ledger raise",
    "ledger.verify(records=[…])": "zerodelta ledger verify",
    "create it with zd.Ledger(path, budget=…)": "create it with --budget",
    "pass ledger='people.ledger', say": "pass --ledger people.ledger, say",
    "declare them in zd.open(…, columns={…})": "declare them in the schema",
    "declare it in zd.open(…, columns={…})": "declare it in the schema",
    "declare it as zd.category([…])": "declare it as {category = […]}",
    "declared as zd.category([...])": "declared as {category = […]}",
    "pass classes=[...], all that can occur": "declare the target in the schema as {category = […]}"
    " of all labels that can occur",
    "open it: zd.Ledger(path, budget=…, data=…)": "name one of these",
    "pass bounds=(lower, upper), known": "declare it in the schema, as {number = [LOWER, UPPER]},"
    " from what is known",
    "pass epsilon=1, say": "pass --epsilon 1, say",
}
"""Remedies in Python, and the same on the command line."""


def _as_commands(line: str) -> str:
    for python, command in _COMMAND_REMEDIES.items():
        line = line.replace(python, command)
    return line


def _code(error: Exception) -> ExitCode:
    """Return the exit code of an error: budget, not verified, refused, or failed."""
    if isinstance(error, BudgetError):
        return ExitCode.BUDGET
    if isinstance(error, CertificateError):
        return ExitCode.NOT_VERIFIED
    refusals = (ZeroDeltaError, ImportError, OSError)
    refused = isinstance(error, refusals) and not isinstance(error, EntropyError)
    return ExitCode.REFUSED if refused else ExitCode.FAILED


def _system(error: OSError) -> str:
    """Return a line about an error of the system: the path and the system's own words."""
    named = isinstance(error.filename, (str, os.PathLike))
    name = f"{os.fspath(error.filename)}: " if named else ""
    reason = os.strerror(error.errno) if isinstance(error.errno, int) else type(error).__name__
    return f"{name}{reason}; check the path and its permissions."


def _unexpected(error: Exception) -> str:
    # the message of an exception raised by other code may hold a value of the data
    return (
        f"failed unexpectedly ({type(error).__name__}); the message is not shown, as it may hold "
        "values of the data. --debug shows where it was raised; ε that was debited stays spent."
    )


def _end(error: BaseException, code: ExitCode, line: str, *, debug: bool) -> None:
    """Print an error as one line, after its traceback if debugging, and exit."""
    if debug:
        say("".join(_places(error)).rstrip(), to_errors=True)
    say(" ".join(line.split()), to_errors=True)
    raise typer.Exit(int(code)) from None


def _places(error: BaseException) -> Iterator[str]:
    """Yield files, lines and functions where an error was raised; no locals, no messages."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield f"{type(link).__name__} raised in (no values are shown):\n"
        for frame in traceback.extract_tb(link.__traceback__):
            yield f"  {frame.filename}:{frame.lineno} in {frame.name}\n"
        link = link.__cause__ or link.__context__


def say(text: str, *, to_errors: bool = False) -> None:
    """Print a text; characters that the terminal cannot show become "?".

    Control and direction characters, which may occur in keys, names and paths, are escaped as in
    JSON: keys are chosen by whoever wrote the rows, and must not steer the terminal.
    """
    text = "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
    encoding = (sys.stderr if to_errors else sys.stdout).encoding or "utf-8"
    typer.echo(text.encode(encoding, "replace").decode(encoding), err=to_errors)


def examples(*lines: str) -> str:
    """Return the examples that `--help` shows at its end, one per line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


_ENDING_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Delay Ctrl-C, SIGTERM and SIGHUP until the release that was paid for is saved."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    handlers = {number: signal.getsignal(number) for number in _ENDING_SIGNALS}
    # None is a handler that was not installed from Python, which could not be put back
    before = {number: handler for number, handler in handlers.items() if handler is not None}
    for number in before:
        signal.signal(number, lambda number, frame: waiting.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for number in waiting:
        signal.raise_signal(number)


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Handle SIGTERM, which `docker stop` sends, like Ctrl-C, unless a handler is installed.

    Otherwise the first process of a container ignores SIGTERM, and is killed later.
    """
    main = threading.current_thread() is threading.main_thread()
    default = main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not default or not callable(signal.getsignal(signal.SIGINT)):
        yield
        return

    def interrupt(_number: int, frame: FrameType | None) -> None:
        handler = signal.getsignal(signal.SIGINT)  # also that of a study, or of a held interrupt
        if callable(handler):
            handler(signal.SIGINT, frame)

    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
