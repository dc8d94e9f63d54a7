"""How commands end: exit codes, errors in one line, interrupts; nothing shows a value of data."""

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
    """What a command exits with; docs/command-line.md lists them."""

    GOOD = 0
    NOT_VERIFIED = 1
    """A certificate, record, ledger or claim is not what it says."""
    REFUSED = 2
    """What was asked is malformed; nothing was spent."""
    BUDGET = 3
    """The budget does not cover it, it was asked before, or the ledger cannot be used."""
    FAILED = 4
    """Something else went wrong; a debit that was made stays."""
    INTERRUPTED = 130


@final
class IncompleteError(Exception):
    """A release was made and told, but not all of its files are there; says which and why."""


@final
class GuardedGroup(TyperGroup):
    """The commands; whatever one raises becomes a line and an exit code."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take `--debug` wherever it stands before `--`."""
        end = args.index("--") if "--" in args else len(args)
        debug = "--debug" in args[:end]
        rest = [each for each in args[:end] if each != "--debug"] + args[end:]
        return super().parse_args(ctx, ["--debug", *rest] if debug else rest)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with _told(debug=bool(ctx.params.get("debug"))), _terminated_as_interrupted():
            return super().invoke(ctx)


@contextmanager
def _told(*, debug: bool) -> Iterator[None]:
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
        _end(error, _code(error), told_of(error), debug=debug)


_INTERRUPTED = (
    "interrupted: what the ledger shows as debited stays spent; files are whole or not there."
)


def told_of(error: Exception) -> str:
    """Return an error in a line that shows no value of data."""
    if isinstance(error, ZeroDeltaError):
        return _here(str(error))
    if isinstance(error, (ImportError, IncompleteError)):  # require_extra names the extra
        return str(error)
    return _system(error) if isinstance(error, OSError) else _unexpected(error)


_SAID = {
    "with again=True": "with --again",
    "ledger.raise_budget(to, reason)": "zerodelta ledger raise",
    "ledger.verify(records=[…])": "zerodelta ledger verify",
    "make it with zd.Ledger(path, budget=…)": "make it with --budget",
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
"""What remedies say in Python, and on the command line."""


def _here(line: str) -> str:
    for python, command in _SAID.items():
        line = line.replace(python, command)
    return line


def _code(error: Exception) -> ExitCode:
    if isinstance(error, BudgetError):
        return ExitCode.BUDGET
    if isinstance(error, CertificateError):
        return ExitCode.NOT_VERIFIED
    refused = (ZeroDeltaError, ImportError, OSError)
    spent = isinstance(error, EntropyError) or not isinstance(error, refused)
    return ExitCode.FAILED if spent else ExitCode.REFUSED


def _system(error: OSError) -> str:
    name = (
        f"{os.fspath(error.filename)}: " if isinstance(error.filename, (str, os.PathLike)) else ""
    )
    why = os.strerror(error.errno) if isinstance(error.errno, int) else type(error).__name__
    return f"{name}{why}; check the path and who may read and write it."


def _unexpected(error: Exception) -> str:
    # the message of somebody else's exception may hold a value
    return (
        f"failed unexpectedly ({type(error).__name__}); its message is not shown, as it may hold "
        "values of the data. --debug shows where; a debit that was made stays."
    )


def _end(error: BaseException, code: ExitCode, line: str, *, debug: bool) -> None:
    if debug:
        say("".join(_places(error)).rstrip(), to_errors=True)
    say(" ".join(line.split()), to_errors=True)
    raise typer.Exit(int(code)) from None


def _places(error: BaseException) -> Iterator[str]:
    """Yield where it was raised: files, lines and names of functions; no locals, no messages."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield f"{type(link).__name__} raised in (no values are shown):\n"
        for frame in traceback.extract_tb(link.__traceback__):
            yield f"  {frame.filename}:{frame.lineno} in {frame.name}\n"
        link = link.__cause__ or link.__context__


def say(text: str, *, to_errors: bool = False) -> None:
    """Print without Rich's markup; what the terminal cannot show becomes "?".

    Control and direction characters, which may stand in keys, names and paths, are written out as
    JSON writes them.
    """
    text = "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
    encoding = (sys.stderr if to_errors else sys.stdout).encoding or "utf-8"
    typer.echo(text.encode(encoding, "replace").decode(encoding), err=to_errors)


def examples(*lines: str) -> str:
    """Return what `--help` shows at its end, line by line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


_ENDING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and a terminal that is closed wait until what was paid for is saved."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    found = {number: signal.getsignal(number) for number in _ENDING}
    # nobody could put back a handler that the program around Python has installed
    before = {number: handler for number, handler in found.items() if handler is not None}
    for number in before:
        signal.signal(number, lambda number, frame: waiting.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for held in waiting:
        signal.raise_signal(held)


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Let SIGTERM, as `docker stop` sends it, do what Ctrl-C does, unless somebody handles it.

    A process that is the first of a container would ignore it otherwise, and be killed later.
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
