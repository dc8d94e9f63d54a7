"""Queries whose local sensitivity can be far below their global one, and how stable they are.

Each query gives, for a dataset of n rows, an integer answer, the number of replacements to the
nearest dataset whose local sensitivity exceeds a bound (paper: D_β), and the local sensitivity,
all exact for replace-one neighbors (theory C3, C4; the order statistics are those of C10.3).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.items import column
from zerodelta.data.source import Source
from zerodelta.errors import require
from zerodelta.exact.arrays import Integers
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational
from zerodelta.privacy.step import Status
from zerodelta.spaces import Box, GridLattice
from zerodelta.spine.facts import Facts
from zerodelta.spine.public_inputs import as_pair, as_source, one_column
from zerodelta.spine.run import Openable

Order: TypeAlias = Callable[[Integers], npt.NDArray[Any]]
"""The i-th smallest row for 1-based positions i, an end of the bounds beyond 1..n."""

BYTES_HELD = 24
"""Of every row that is sorted: its value, its integer, and that in its place."""

CALLER_ASSERTED = "the caller's query, distance and local sensitivity are what they claim to be"


class StableQuery(ABC):
    """A query with values in the cells of a public grid, and its stability.

    Cells are numbered from 0; distances between answers are l1 distances in cells.
    """

    @property
    @abstractmethod
    def status(self) -> Status:
        """Whether distance and local sensitivity are proven or caller-asserted."""

    @abstractmethod
    def closed(self, rows: Any) -> tuple[Openable[Any], Facts]:
        """Return the rows, closed until there is a ticket, and what is public about them."""

    @abstractmethod
    def read(self, rows: Any) -> Any:
        """Return opened rows in the form that the three methods below take."""

    @abstractmethod
    def lattice(self, count: int) -> GridLattice:
        """Return the grid of possible answers for `count` rows (public)."""

    @abstractmethod
    def bound_in_cells(self, bound: Rational, count: int) -> int:
        """Return a proposed bound on an l1 distance, in the unit of the data, in whole cells."""

    @abstractmethod
    def answer(self, rows: Any) -> Integers:
        """Return the cell of the answer; any dataset has one."""

    @abstractmethod
    def distance(self, rows: Any, bound: int) -> int:
        """Return how many rows must change before the local sensitivity exceeds `bound` cells.

        A lower bound does, if it has sensitivity 1. It is 0 if the bound is exceeded already.
        """

    @abstractmethod
    def local_sensitivity(self, rows: Any) -> int:
        """Return by how many cells (l1) one replaced row can move the answer."""

    @property
    @abstractmethod
    def local_change(self) -> int:
        """The public sensitivity of the local sensitivity, in cells."""


def order_of(ordered: Integers, *, steps: int) -> Order:
    """Return the order statistics of sorted rows in -steps..steps."""
    count = len(ordered)

    def order(positions: Integers) -> Integers:
        inside = ordered[np.clip(positions, 1, count) - 1]
        return np.where(positions < 1, -steps, np.where(positions > count, steps, inside))

    return order


def reaches(order: Order, *, kept: tuple[int, int], changes: Integers) -> npt.NDArray[Any]:
    """Return A_k, the largest local sensitivity within k replacements, at rising numbers k.

    For the sum of x_(a..b), (a, b) = `kept`, A_k is the maximum over 0 <= j <= k+1 of
    x_(b+1+k-j) - x_(a-j) (theory C10.3).

    >>> order = order_of(np.array([-2, 0, 1, 2]), steps=5)
    >>> reaches(order, kept=(2, 3), changes=np.arange(3)).tolist()
    [3, 6, 7]
    """
    first, last = kept
    places = np.arange(int(changes[-1]) + 2)
    above, below = order(last + places), order(first - places)
    return np.array([(above[k + 1 :: -1] - below[: k + 2]).max() for k in changes.tolist()])


class _OrderStatistics(StableQuery):
    """A function of the sorted rows of one bounded column, each rounded to the grid by itself."""

    lower: Fraction
    upper: Fraction
    steps: int

    @property
    def status(self) -> Status:
        """Proven: rows are rounded one by one and the formulas are exact."""
        return Status.PROVEN

    @property
    def local_change(self) -> int:
        """The whole range: order statistics have no better bound."""
        return 2 * self.steps

    @abstractmethod
    def _kept(self, count: int) -> tuple[int, int]:
        """Return the first and the last of the 1-based positions that are added up."""

    def _weight(self, count: int) -> int:
        """Return how many rows are added up; a cell is one quantum divided by it."""
        first, last = self._kept(count)
        return last - first + 1

    def closed(self, rows: Any) -> tuple[Openable[Any], Facts]:
        """Return the one column and its number of rows; an array's NaN is the middle."""
        source = rows if isinstance(rows, Source) else as_source(rows, missing=None)
        facts = Facts.of(source)
        one_column(facts)
        facts.rows_in_memory(BYTES_HELD)
        _ = facts.all_rows
        return source, facts

    def read(self, rows: Any) -> Integers:
        """Return the rounded rows in rising order."""
        box = FixedPoint.box(dimension=1, lower=self.lower, upper=self.upper, steps=self.steps)
        return np.sort(box.quantize(column(rows).reshape(-1, 1))[:, 0])

    def lattice(self, count: int) -> GridLattice:
        """Return the grid whose cell centers are the possible answers."""
        gaps = 2 * self.steps * self._weight(count)
        half = (self.upper - self.lower) / (2 * gaps)
        return GridLattice(box=Box(self.lower - half, self.upper + half), cells=gaps + 1)

    def bound_in_cells(self, bound: Rational, count: int) -> int:
        """Return the whole cells in the bound; nothing is lost, local sensitivities are whole."""
        spacing = (self.upper - self.lower) / (2 * self.steps * self._weight(count))
        cells = as_positive(bound, "proposed_bound") / spacing
        require(
            cells >= 1,
            "proposed_bound",
            bound,
            expected="at least the spacing of the grid of answers",
            remedy="propose a larger bound or use more steps",
        )
        return math.floor(cells)

    def answer(self, rows: Integers) -> Integers:
        """Return the cell of the answer."""
        first, last = self._kept(len(rows))
        return np.array([int(rows[first - 1 : last].sum()) + self.steps * self._weight(len(rows))])

    def distance(self, rows: Integers, bound: int) -> int:
        """Return the smallest k with A_k > bound, A_k the largest LS within k replacements."""
        low, high = 0, len(rows) + 1  # A_k grows with k; n + 1 if even A_n is within the bound
        while low < high:
            middle = (low + high) // 2
            if self._reach(rows, middle) > bound:
                high = middle
            else:
                low = middle + 1
        return low

    def local_sensitivity(self, rows: Integers) -> int:
        """Return A_0."""
        return self._reach(rows, 0)

    def _reach(self, rows: Integers, changes: int) -> int:
        order, k = order_of(rows, steps=self.steps), np.array([min(changes, len(rows))])
        return int(reaches(order, kept=self._kept(len(rows)), changes=k)[0])


@final
@dataclass(frozen=True, slots=True, init=False)
class Median(_OrderStatistics):
    """The lower median, the ⌈n/2⌉-th smallest, of a column between public bounds.

    Rows are rounded to 2·steps + 1 equally spaced values; NaN counts as the middle.

    Parameters
    ----------
    bounds : tuple of two numbers
        The public ends of the column; rows beyond them are clipped.
    steps : int
        How many steps of the grid make half of that range.

    Examples
    --------
    >>> query = Median(bounds=(0, 10), steps=5)
    >>> query.distance(np.array([-1, 0, 0, 1, 2]), 1), query.lattice(5).cells
    (1, 11)

    """

    lower: Fraction
    upper: Fraction
    steps: int

    def __init__(self, *, bounds: tuple[Rational, Rational], steps: int) -> None:
        _store_column(self, bounds, steps)

    def _kept(self, count: int) -> tuple[int, int]:
        middle = (count + 1) // 2
        return middle, middle


@final
@dataclass(frozen=True, slots=True, init=False)
class TrimmedMean(_OrderStatistics):
    """The mean of a bounded column without its `trim` smallest and `trim` largest rows.

    The integer answer is the *sum* of the rows that are kept, so nothing is rounded again.

    Parameters
    ----------
    bounds, steps
        As in `Median`.
    trim : int
        How many rows are left out at each end.

    Examples
    --------
    >>> query = TrimmedMean(bounds=(0, 10), steps=5, trim=1)
    >>> query.answer(np.array([-5, -1, 1, 5])), query.lattice(4).cells
    (array([10]), 21)

    """

    lower: Fraction
    upper: Fraction
    steps: int
    trim: int

    def __init__(self, *, bounds: tuple[Rational, Rational], steps: int, trim: int) -> None:
        _store_column(self, bounds, steps)
        object.__setattr__(self, "trim", as_count(trim, "trim"))

    def _kept(self, count: int) -> tuple[int, int]:
        require(
            count > 2 * self.trim,
            "trim",
            self.trim,
            expected="fewer than half of the rows (their number is public)",
            remedy="trim fewer rows on each side",
        )
        return self.trim + 1, count - self.trim


def query_status(query: StableQuery) -> Status:
    """Return the status of a query by its class: a subclass may say anything of itself."""
    return query.status if type(query) in (Median, TrimmedMean) else Status.ASSERTED


def assumed(query: StableQuery) -> tuple[str, ...]:
    """Return what a certificate rests on beside its theorem."""
    return () if query_status(query) is Status.PROVEN else (CALLER_ASSERTED,)


def _store_column(query: _OrderStatistics, bounds: tuple[Rational, Rational], steps: int) -> None:
    lower, upper = (as_rational(end, "bounds") for end in as_pair(bounds))
    FixedPoint.box(dimension=1, lower=lower, upper=upper, steps=steps)  # refuses bad ones
    for name, entry in (("lower", lower), ("upper", upper), ("steps", int(steps))):
        object.__setattr__(query, name, entry)
