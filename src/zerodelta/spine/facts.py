"""What is public about rows before any of them is read, and questions, which plan with that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from zerodelta.data.rows import MOST_HERE
from zerodelta.data.source import Source, protection_of
from zerodelta.errors import ParameterError, require
from zerodelta.exact.rational import Rational
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.value import value

MOST_BYTES = 2 << 30
"""Rows that a method needs together may take so much memory, unless the data set says less."""


@value
class Facts:
    """The number of rows, if it is public, and the columns; a plan may use nothing else of them.

    `rows` is None where the number is private (under add-remove or units): then `expected_rows`,
    a public guess, stands in for it in forecasts, defaults and lattices, and nothing else does.
    `may_miss`: missing cells, and the rows that a filter drops (`drops`), count nowhere, so that
    the number of those that count is private too.

    >>> Facts(rows=None, columns=("income",), expected_rows=1000).planned_rows
    1000
    """

    rows: int | None
    columns: tuple[str, ...] = ("0",)
    expected_rows: int | None = None
    may_miss: bool = False
    drops: bool = False
    neighbors: Neighbors = Neighbors.REPLACE
    memory: int | None = None
    """How many bytes of rows may be held together, if that is limited."""
    remote: bool = False
    """Whether rows are on a cluster, which adds them up, and stay there if that is possible."""

    @staticmethod
    def of(source: Source) -> Facts:
        """Return what is public of a source."""
        rows = source.rows
        require(rows or not source.whole, "rows", expected="at least one row", remedy="pass some")
        return Facts(
            rows=rows if source.whole else None,
            columns=source.columns,
            # of units that were counted there may be none
            expected_rows=None if source.whole else max(1, rows),
            may_miss=source.may_miss,
            drops=source.drops,
            neighbors=protection_of(source).neighbors,
            memory=source.keeping.memory,
            remote=source.remote,
        )

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.columns)

    @property
    def counted(self) -> tuple[str, ...]:
        """What a certificate lists as public where every row counts: how many there are."""
        private = self.rows is None or self.may_miss or self.drops
        return () if private else ("the number of rows",)

    def as_number(self, sentence: str) -> str:
        """Return what a certificate lists as public, with the number that it names.

        >>> Facts(rows=400).as_number("the number of rows")
        'the number of rows, 400'
        """
        of_rows = sentence in ("the number of rows", "the number of all rows")
        guessed = sentence == "how many rows are expected"
        number = self.rows if of_rows else self.expected_rows if guessed else None
        return sentence if number is None else f"{sentence}, {number}"

    @property
    def complete(self) -> Facts | None:
        """The same, if no cell were missing; None where that is so, or would not be enough."""
        if not self.may_miss or self.drops or self.rows is None:
            return None
        return replace(self, may_miss=False)

    def only_replaced(self) -> None:
        """Refuse add-remove, for mechanisms whose theorem is about replaced rows."""
        require(
            self.neighbors is Neighbors.REPLACE,
            "neighbors",
            self.neighbors.value,
            expected="replace: this mechanism has no proof for rows that are added or removed",
            remedy='open the data with neighbors="replace"',
        )

    def may_hold(self, size: int, *, most: int = MOST_BYTES) -> bool:
        """Tell by public numbers whether `size` bytes of every row may be held at once.

        >>> Facts(rows=1000, memory=8000).may_hold(8), Facts(rows=1001, memory=8000).may_hold(8)
        (True, False)
        """
        if self.remote and self.planned_rows * self.width > MOST_HERE:
            return False
        return self.planned_rows * size <= (most if self.memory is None else min(most, self.memory))

    def rows_in_memory(self, size: int) -> None:
        """Refuse by public numbers what needs `size` bytes of every row at once."""
        require(
            self.may_hold(size),
            "rows",
            self.planned_rows,
            expected=f"rows that fit into memory together, {size} bytes each",
            remedy="pass zd.open(…, memory=…) if there is more, or ask for what is added up",
        )

    @property
    def public_rows(self) -> int:
        """The number of rows, for mechanisms that have no theorem where it is private."""
        if self.rows is None:
            raise ParameterError(
                "rows",
                expected="a public number of them: this mechanism divides or ranks by it",
                remedy="ask all rows, without expected_rows or a unit, under replace-one",
            )
        return self.rows

    @property
    def all_rows(self) -> int:
        """The number of rows, each of which counts: for mechanisms that rank them all."""
        require(
            not self.may_miss,
            "rows",
            expected="a public number of them, all of which count: no missing cells that are "
            "skipped, no filter, no units, no add-remove",
            remedy="pass missing=None (none is missing) or a number, or declare it for the column",
        )
        return self.public_rows

    @property
    def planned_rows(self) -> int:
        """The number of rows to plan with."""
        planned = self.expected_rows if self.rows is None else self.rows
        if planned is None:
            raise ParameterError(
                "expected_rows",
                None,
                expected="about how many rows there are: their number is private here",
                remedy="pass expected_rows=, known without the rows",
            )
        return planned


class Question(Protocol):
    """A frozen dataclass of public inputs (`MeanQuestion`, `QuantileQuestion`, …).

    `zd.advise` looks at the plan's `methods`; a verb runs the plan.
    """

    def plan(self, facts: Facts, epsilon: Rational) -> Any:
        """Return the plan for rows of which these facts are public; nothing is read.

        A `ReleasePlan`, or where the chosen method asks many internal queries a `StudyProgram`.
        """
        ...  # pragma: no cover
