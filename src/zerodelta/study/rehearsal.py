"""A program is tried on made-up public rows first: there its mistakes may show (theory C8).

The made-up rows stand for as many rows as the data has, so that the noise is to them what it will
be to the data: a program that works on the data works here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from zerodelta.data.arrays import public_table
from zerodelta.data.internal import reveal
from zerodelta.data.interrupts import Watch
from zerodelta.data.quiet import quiet
from zerodelta.data.row_queries import Bounds, public_rows
from zerodelta.data.rowwise import Block
from zerodelta.errors import ParameterError, require
from zerodelta.exact.rational import Rational
from zerodelta.spaces import Space
from zerodelta.study.study_plan import denotes

_REMEDY = "mend it, pass Study(example=public rows), or run(…, rehearse=False)"


def rows_to_try(
    columns: Sequence[str],
    bounds: Bounds | None,
    data_norm: Rational | None,
    example: Any,
    *,
    count: int = 7,
) -> Block:
    """Return the made-up rows on which functions are tried: `count` of ours, or the caller's."""
    if example is None:
        return public_rows(len(columns), bounds, data_norm, count=count)
    rows = public_table(example, columns=None if isinstance(example, np.ndarray) else columns)
    require(
        rows.shape[1] == len(columns) and len(rows),
        "example",
        f"{len(rows)} rows of {rows.shape[1]} columns",
        expected=f"some made-up rows of {len(columns)} columns",
        remedy="make rows by hand that look like the data; never take them from it",
    )
    return rows


def check_program(program: Any) -> None:
    """Refuse what is no plain function: calling it would not run it."""
    unfinished = (
        inspect.isgeneratorfunction(program)
        or inspect.iscoroutinefunction(program)
        or inspect.isasyncgenfunction(program)
    )
    require(
        callable(program) and not unfinished,
        "program",
        "a generator or an async function" if unfinished else type(program),
        expected="a plain function of the study",
        remedy="write a function that returns what is to be published",
    )


@final
class Rehearsal:
    """Remembers what a program wanted to publish and could not: it may go on as if it had."""

    def __init__(self) -> None:
        self._refused: ParameterError | None = None

    def play(self, program: Callable[[], Any]) -> Any:
        """Return what the program returns on made-up rows; what it raises is the caller's to see.

        What it could not publish is raised too, also if the program has caught it.
        """
        try:
            with quiet(), Watch() as watch:
                try:
                    result = program()
                except KeyboardInterrupt:
                    if watch.arrived:
                        raise
                    raise RuntimeError("the program raised KeyboardInterrupt") from None
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise ParameterError(
                "program",
                f"{type(error).__name__}: {error}",
                expected="a program that runs on made-up public rows (no data was read yet)",
                remedy=_REMEDY,
            ) from error
        if self._refused is not None:
            raise self._refused
        return result

    def check(self, value: Any, space: Space) -> None:
        """Refuse what would be published as a failure, now and at the end."""
        if inspect.iscoroutine(value) or inspect.isgenerator(value):
            value.close()  # else Python complains that it was never awaited
        if not denotes(reveal(value), space):
            self._refused = self._refused or ParameterError(
                "result of the program",
                _named(value),
                expected=f"an element of {space!r}, on made-up public rows (no data was read yet)",
                remedy="return what is to be published, or publish it with study.publish(value)",
            )
            raise self._refused


def check_asked(refused: int, planned: int) -> None:
    """Refuse a program that asked more than there is."""
    require(
        not refused,
        "program",
        f"{refused} more quer{'y' if refused == 1 else 'ies'} than the plan has shares for",
        expected=f"at most {planned} in all, on made-up public rows (no data was read yet)",
        remedy="make the study with a larger rounds=, or pass smaller shares; what is asked "
        "beyond the plan is answered by a constant. run(…, rehearse=False) allows it",
    )


def _named(value: Any) -> str:
    """Say what came back. It was made of made-up rows, and long values are told by their type."""
    if value is None:
        return "nothing was returned or published"
    text = repr(reveal(value))
    return text if len(text) < 60 else str(type(value))
