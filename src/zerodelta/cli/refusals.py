"""How commands end: exit codes, errors in one line, interrupts; nothing shows a value of data."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, final

import typer
from typer.core import TyperGroup

from zerodelta.errors import (
    BudgetError,
    CertificateError,
    EntropyError,
    ZeroDeltaError,
)

__all__ = ["ExitCode", "GuardedGroup", "examples", "held_interrupts", "say"]


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
    """Something else went wrong."""
    INTERRUPTED = 130


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
        with _told(debug=bool(ctx.params.get("debug"))):
            return super().invoke(ctx)


@contextmanager
def _told(*, debug: bool) -> Iterator[None]:
    debug = debug or os.environ.get("ZERODELTA_DEBUG", "") not in ("", "0")
    try:
        yield
    except KeyboardInterrupt as error:
        code, line = ExitCode.INTERRUPTED, _INTERRUPTED
        _end(error, code, line, debug=debug)
    except ZeroDeltaError as error:
        _end(error, _code(error), _here(str(error)), debug=debug)
    except ImportError as error:  # what require_extra raises names the extra
        _end(error, ExitCode.REFUSED, str(error), debug=debug)
    except OSError as error:
        _end(error, ExitCode.REFUSED, _system(error), debug=debug)
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception as error:
        if type(error).__module__.startswith(("click.", "typer.")):
            raise
        _end(error, ExitCode.FAILED, _unexpected(error), debug=debug)


_INTERRUPTED = (
    "interrupted: what the ledger shows as debited stays spent; files are whole or not there."
)


def _here(line: str) -> str:
    """Return a remedy as the command line writes it."""
    said = {
        "with again=True": "with --again",
        "ledger.raise_budget(to, reason)": "zerodelta ledger raise",
    }
    for python, command in said.items():
        line = line.replace(python, command)
    return line


def _code(error: ZeroDeltaError) -> ExitCode:
    if isinstance(error, BudgetError):
        return ExitCode.BUDGET
    if isinstance(error, CertificateError):
        return ExitCode.NOT_VERIFIED
    return ExitCode.FAILED if isinstance(error, EntropyError) else ExitCode.REFUSED


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
    """Print as it is, without Rich's markup; what the terminal cannot show becomes "?"."""
    encoding = (sys.stderr if to_errors else sys.stdout).encoding or "utf-8"
    typer.echo(text.encode(encoding, "replace").decode(encoding), err=to_errors)


def examples(*lines: str) -> str:
    """Return what `--help` shows at its end, line by line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait until what was paid for is on the disk."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, lambda number, frame: waiting.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if waiting:
        raise KeyboardInterrupt
