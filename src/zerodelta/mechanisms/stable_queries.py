"""Compute queries whose local sensitivity can be far below their global one (theory C3, C4, C10.3).

For a data set of n rows, each query has an integer answer, the number of replacements to the
nearest data set whose local sensitivity exceeds a bound (paper: D_β), and the local sensitivity,
all exact for replace-one neighbors. `Median` and `TrimmedMean` are built in; `CustomQuery` wraps
functions of the caller.
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

from zerodelta.data.arrays import as_source
from zerodelta.data.isolation import quietly
from zerodelta.data.keys import column
from zerodelta.data.source import Sealed, Source
from zerodelta.errors import needed, require
from zerodelta.exact.arrays import Integers
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_count, as_pair, as_positive, as_rational
from zerodelta.privacy.steps import Status
from zerodelta.spaces import Box, GridLattice
from zerodelta.spine.plan import Facts
from zerodelta.spine.run import Openable
from zerodelta.value import value

Order: TypeAlias = Callable[[Integers], npt.NDArray[Any]]
"""The i-th smallest row for 1-based positions i, an end of the bounds beyond 1..n."""

BYTES_HELD = 24
"""Memory for each sorted row: its value, its integer, and its integer in sorted order."""

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
        """Return the cell of the answer; every data set has one."""

    @abstractmethod
    def distance(self, rows: Any, bound: int) -> int:
        """Return how many rows must change before the local sensitivity exceeds `bound` cells.

        The result is 0 if the bound is exceeded already. A lower bound of sensitivity 1 is allowed.
        """

    @abstractmethod
    def local_sensitivity(self, rows: Any) -> int:
        """Return by how many cells (l1) one replaced row can change the answer."""

    @property
    @abstractmethod
    def local_change(self) -> int:
        """The public sensitivity of the local sensitivity, in cells."""


def order_of(ordered: Integers, *, steps: int) -> Order:
    """Return the function i -> i-th smallest row; ±steps beyond the first and last."""
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
    """A function of the sorted rows of one bounded column, each rounded to the grid on its own."""

    lower: Fraction
    upper: Fraction
    steps: int

    @property
    def status(self) -> Status:
        """Proven: rows are rounded one by one and the formulas are exact."""
        return Status.PROVEN

    @property
    def local_change(self) -> int:
        """The width of the range: order statistics have no better bound."""
        return 2 * self.steps

    @abstractmethod
    def _kept(self, count: int) -> tuple[int, int]:
        """Return the first and the last of the 1-based positions that are added up."""

    def _weight(self, count: int) -> int:
        """Return how many rows are added up; a cell is one quantum divided by it."""
        first, last = self._kept(count)
        return last - first + 1

    def closed(self, rows: Any) -> tuple[Openable[Any], Facts]:
        """Return the one column, and what is public about it; a NaN of an array is the middle."""
        source = rows if isinstance(rows, Source) else as_source(rows, missing=None)
        facts = Facts.of(source)
        facts.only_one_column()
        facts.rows_in_memory(BYTES_HELD)
        _ = facts.all_rows  # refuses rows whose number is private
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
        """Return the bound in cells, rounded down: local sensitivities are integers anyway."""
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
        """Return A_k for k = `changes`."""
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

    The integer answer is the *sum* of the kept rows, so nothing is rounded a second time.

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
        """Return the positions between the trimmed rows; trimming all of them is refused."""
        require(
            count > 2 * self.trim,
            "trim",
            self.trim,
            expected="fewer than half of the rows (their number is public)",
            remedy="trim fewer rows on each side",
        )
        return self.trim + 1, count - self.trim


def query_status(query: StableQuery) -> Status:
    """Return the status of a query by its exact class: a caller's subclass may claim anything."""
    return query.status if type(query) in (Median, TrimmedMean) else Status.ASSERTED


def assumed(query: StableQuery) -> tuple[str, ...]:
    """Return the assumptions of a certificate for this query, besides its theorem."""
    return () if query_status(query) is Status.PROVEN else (CALLER_ASSERTED,)


def _store_column(query: _OrderStatistics, bounds: tuple[Rational, Rational], steps: int) -> None:
    """Check bounds and steps, and store them in a frozen query."""
    lower, upper = (as_rational(end, "bounds") for end in as_pair(bounds))
    FixedPoint.box(dimension=1, lower=lower, upper=upper, steps=steps)  # refuses bad arguments
    for name, entry in (("lower", lower), ("upper", upper), ("steps", int(steps))):
        object.__setattr__(query, name, entry)


# -- A caller's query, for propose-test-release and bounded local sensitivity (theory C3, C4) -----


@value
class CustomQuery(StableQuery):
    """A caller's query with values in a public box; its stability is caller-asserted.

    All numbers are in the unit of the box. If a function raises or returns no number, the answer is
    the center of the box, the distance is 0, and the local sensitivity is the width of the box; the
    caller's assertion covers these replacements, too.

    Parameters
    ----------
    function : callable
        `function(rows)` returns a vector.
    grid : GridLattice
        The answers that can be published, such as `zd.Box(0, 100).grid(101)`.
    stability : callable, optional
        `stability(rows, bound)` returns a lower bound on the number of rows to replace until the l1
        local sensitivity exceeds `bound`, of sensitivity 1; for propose-test-release.
    local : callable, optional
        `local(rows)` returns the l1 local sensitivity; for bounded local sensitivity.
    change : number, optional
        The sensitivity of `local` (theory A8).

    """

    function: Callable[[Any], Any]
    grid: GridLattice
    stability: Callable[[Any, float], Any] | None = None
    local: Callable[[Any], Any] | None = None
    change: Rational | None = None

    @property
    def status(self) -> Status:
        """Asserted: nobody has checked the functions."""
        return Status.ASSERTED

    @property
    def local_change(self) -> int:
        """The change in cells, one more because local sensitivities are rounded up."""
        expected = "a function that returns the local sensitivity"
        require(self.local is not None, "local", None, expected=expected, remedy="pass local=")
        expected = "a public bound on how far one row can move the local sensitivity (theory A8)"
        require(self.change is not None, "change", None, expected=expected, remedy="pass change=")
        exact = as_rational(self.change or 0, "change")
        return max(1, math.ceil(exact / self._side)) + 1

    @property
    def _side(self) -> Fraction:
        """The smallest side of a cell."""
        return Fraction(float(self.grid.box.widths().min())) / self.grid.cells

    def closed(self, rows: Any) -> tuple[Openable[Any], Facts]:
        """Return the rows that the caller's functions take; no public number depends on them.

        Stability and local sensitivity are defined for rows that all count, under replace-one.
        """
        if isinstance(rows, Source):
            _ = Facts.of(rows).all_rows  # refuses rows whose number is private
        return (rows if isinstance(rows, Source) else Sealed(rows)), Facts(rows=None, columns=())

    def read(self, rows: Any) -> Any:
        """Return the rows as they are."""
        return rows

    def lattice(self, count: int) -> GridLattice:
        """Return the caller's grid."""
        return self.grid

    def bound_in_cells(self, bound: Rational, count: int) -> int:
        """Return ⌈bound/side⌉ + d: rounding can add one cell per coordinate (theory C3)."""
        expected = "a function that returns a distance to instability"
        is_callable = self.stability is not None
        require(is_callable, "stability", None, expected=expected, remedy="pass stability=")
        exact = as_positive(bound, "proposed_bound")
        return math.ceil(exact / self._side) + self.grid.dimension

    def answer(self, rows: Any) -> Integers:
        """Return the cell of the answer, or of the center if the function fails."""
        return self.grid.quantize(_called(self.function, rows))

    def distance(self, rows: Any, bound: int) -> int:
        """Return the caller's distance, rounded down."""
        real = float((bound - self.grid.dimension) * self._side)
        distance: float | None = quietly(_number, _called(self.stability, rows, real))
        return 0 if distance is None else math.floor(max(0.0, min(distance, 2.0**53)))

    def local_sensitivity(self, rows: Any) -> int:
        """Return the caller's local sensitivity in cells, at most the l1 diameter of the grid."""
        diameter = (self.grid.cells - 1) * self.grid.dimension
        local: float | None = quietly(_number, _called(self.local, rows))
        if local is None:
            return diameter
        cells = math.ceil(max(0.0, min(local / float(self._side), float(diameter))))
        return min(diameter, cells + self.grid.dimension)


def as_query(
    query: Callable[[Any], Any] | StableQuery,
    *,
    bounds: tuple[Any, Any] | None,
    cells: int,
    stability: Callable[[Any, float], Any] | None = None,
    local: Callable[[Any], Any] | None = None,
    change: Rational | None = None,
) -> StableQuery:
    """Return the caller's function as a query on its public grid, or a `StableQuery` as it is."""
    if isinstance(query, StableQuery):
        return query
    expected = "a function of the rows, or a StableQuery"
    require(callable(query), "query", query, expected=expected, remedy="pass query=")
    remedy = "pass bounds=(lower, upper), where the answer of the query can be"
    lower, upper = as_pair(needed(bounds, "bounds", remedy))
    grid = Box(lower, upper).grid(as_count(cells, "cells", minimum=2))
    return CustomQuery(function=query, grid=grid, stability=stability, local=local, change=change)


def _called(function: Callable[..., Any] | None, *arguments: Any) -> Any:
    """Return the result of a caller's function on the data; None if it raises (theory A14.4)."""
    return None if function is None else quietly(function, *arguments)


def _number(value: Any) -> float | None:
    """Return a float; None for NaN."""
    number = float(value)
    return None if math.isnan(number) else number
