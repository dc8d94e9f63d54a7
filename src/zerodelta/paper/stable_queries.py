"""Queries for propose-test-release: an answer on an integer lattice, and how stable it is.

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

from zerodelta.data.arrays import ArraySource
from zerodelta.data.interrupts import Watch
from zerodelta.data.quiet import quiet
from zerodelta.errors import ParameterError
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational
from zerodelta.privacy.step import Status
from zerodelta.spaces import Box, GridLattice
from zerodelta.spine.transition import opened

__all__ = ["CustomQuery", "Median", "StableQuery", "TrimmedMean", "query_status"]

Integers: TypeAlias = npt.NDArray[np.int64]


class StableQuery(ABC):
    """A query with values in the cells of a public grid, and its stability.

    Cells are numbered from 0; distances between answers are l1 distances in cells.
    """

    @property
    @abstractmethod
    def status(self) -> Status:
        """On whose word distance and local sensitivity stand."""

    @abstractmethod
    def count(self, rows: Any) -> int:
        """Return the number of rows, public under replace-one; 0 if nothing depends on it."""

    @abstractmethod
    def lattice(self, count: int) -> GridLattice:
        """Return the grid of possible answers for `count` rows (public)."""

    @abstractmethod
    def bound_in_cells(self, bound: Rational, count: int) -> int:
        """Return a bound on an l1 distance, given in the unit of the data, in whole cells."""

    @abstractmethod
    def answer(self, rows: Any) -> Integers:
        """Return the cell of the answer; any dataset has one."""

    @abstractmethod
    def distance(self, rows: Any, bound: int) -> int:
        """Return how many rows must change before the local sensitivity exceeds `bound` cells.

        A lower bound does, if one replaced row moves it by at most 1. 0 if it does already.
        """

    @abstractmethod
    def local_sensitivity(self, rows: Any) -> int:
        """Return by how many cells (l1) one replaced row can move the answer."""

    @property
    @abstractmethod
    def local_change(self) -> int | None:
        """Return a public bound, in cells, on how one row moves the local sensitivity."""


class _OrderStatistics(StableQuery):
    """A function of the sorted rows of one bounded column, each rounded to the grid by itself."""

    lower: Fraction
    upper: Fraction
    steps: int

    @property
    def status(self) -> Status:
        """Proven: rows are rounded one by one and the formulae are exact."""
        return Status.PROVEN

    @property
    def local_change(self) -> int | None:
        """Return the whole range: order statistics have no better bound."""
        return 2 * self.steps

    @property
    def column(self) -> FixedPoint:
        """The public grid that each row is rounded to."""
        return FixedPoint.box(dimension=1, lower=self.lower, upper=self.upper, steps=self.steps)

    @abstractmethod
    def _weight(self, count: int) -> int:
        """Return how many rows are added up; a cell is one quantum divided by it."""

    @abstractmethod
    def _window(self, count: int) -> tuple[int, int]:
        """Return the 1-based positions (a, b) with LS = max(x_b - x_(a-1), x_(b+1) - x_a)."""

    def count(self, rows: Any) -> int:
        """Return the number of rows."""
        return _column(rows).rows

    def lattice(self, count: int) -> GridLattice:
        """Return the grid whose cell centers are the possible answers."""
        gaps = 2 * self.steps * self._weight(count)
        half = (self.upper - self.lower) / (2 * gaps)
        return GridLattice(box=Box(self.lower - half, self.upper + half), cells=gaps + 1)

    def bound_in_cells(self, bound: Rational, count: int) -> int:
        """Return the whole cells in the bound; nothing is lost, local sensitivities are whole."""
        spacing = (self.upper - self.lower) / (2 * self.steps * self._weight(count))
        cells = as_positive(bound, "proposed_bound") / spacing
        if cells < 1:
            raise ParameterError(
                "proposed_bound",
                bound,
                expected="at least the spacing of the grid of answers",
                remedy="propose a larger bound or use more steps",
            )
        return math.floor(cells)

    def answer(self, rows: Any) -> Integers:
        """Return the cell of the answer."""
        ordered = self._ordered(rows)
        low, high = self._window(len(ordered))
        total = int(ordered[low - 1 : high].sum())
        return np.array([total + self.steps * self._weight(len(ordered))])

    def distance(self, rows: Any, bound: int) -> int:
        """Return the smallest k with A_k > bound, A_k the largest LS within k replacements."""
        ordered = self._ordered(rows)
        count = len(ordered)
        low, high = 0, count + 1  # A_k grows with k; n + 1 if even A_n is within the bound
        while low < high:
            middle = (low + high) // 2
            if self._reach(ordered, middle) > bound:
                high = middle
            else:
                low = middle + 1
        return low

    def local_sensitivity(self, rows: Any) -> int:
        """Return A_0."""
        return self._reach(self._ordered(rows), 0)

    def _reach(self, ordered: Integers, changes: int) -> int:
        """Return A_k = max over 0 <= j <= k+1 of x_(b+1+k-j) - x_(a-j) (theory C10.3)."""
        steps, count = self.steps, len(ordered)
        low, high = self._window(count)
        j = np.arange(min(changes, count) + 2)
        above, below = high + 1 + min(changes, count) - j, low - j
        top = np.where(above > count, steps, ordered[np.clip(above, 1, count) - 1])
        bottom = np.where(below < 1, -steps, ordered[np.clip(below, 1, count) - 1])
        return int((top - bottom).max())

    def _ordered(self, rows: Any) -> Integers:
        column = self.column
        blocks = [column.quantize(block) for block in opened(_column(rows)).blocks()]
        return np.sort(np.concatenate(blocks)[:, 0]) if blocks else np.zeros(1, dtype=np.int64)


@final
@dataclass(frozen=True, slots=True, init=False)
class Median(_OrderStatistics):
    """The lower median, the ⌈n/2⌉-th smallest, of a column between public bounds.

    Rows are rounded to 2·steps + 1 equally spaced values; NaN counts as the middle.

    >>> query = Median(bounds=(0, 10), steps=5)
    >>> query.distance(np.array([4.0, 5.0, 5.0, 6.0, 7.0]), 1), query.lattice(5).cells
    (1, 11)
    """

    lower: Fraction
    upper: Fraction
    steps: int

    def __init__(self, *, bounds: tuple[Rational, Rational], steps: int) -> None:
        _store_column(self, bounds, steps)

    def _weight(self, count: int) -> int:
        return 1

    def _window(self, count: int) -> tuple[int, int]:
        middle = (count + 1) // 2
        return middle, middle


@final
@dataclass(frozen=True, slots=True, init=False)
class TrimmedMean(_OrderStatistics):
    """The mean of a bounded column without its `trim` smallest and `trim` largest rows.

    The integer answer is the *sum* of the rows that are kept, so nothing is rounded again.

    >>> query = TrimmedMean(bounds=(0, 10), steps=5, trim=1)
    >>> query.answer(np.array([0.0, 4.0, 6.0, 10.0])), query.lattice(4).cells
    (array([10]), 21)
    """

    lower: Fraction
    upper: Fraction
    steps: int
    trim: int

    def __init__(self, *, bounds: tuple[Rational, Rational], steps: int, trim: int) -> None:
        _store_column(self, bounds, steps)
        object.__setattr__(self, "trim", as_count(trim, "trim", minimum=1))

    def _weight(self, count: int) -> int:
        if count <= 2 * self.trim:
            raise ParameterError(
                "trim",
                self.trim,
                expected="fewer than half of the rows (their number is public)",
                remedy="trim fewer rows on each side",
            )
        return count - 2 * self.trim

    def _window(self, count: int) -> tuple[int, int]:
        return self.trim + 1, count - self.trim


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class CustomQuery(StableQuery):
    """A caller's query with values in a public box, and the caller's word on its stability.

    `function(rows)` returns a vector, `stability(rows, bound)` a lower bound on the number of rows
    to replace until its l1 local sensitivity exceeds `bound`, moving by at most 1 between
    neighbors (for propose-test-release); `local(rows)` the l1 local sensitivity, moving by at
    most `change` between neighbors (theory A8). All in the unit of the box. What raises or is
    not a number counts as the center of the box, as distance 0 and as the whole box; the caller's
    word covers this completion too.
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
    def local_change(self) -> int | None:
        """Return the change in cells, one more because local sensitivities are rounded up."""
        if self.change is None:
            return None
        exact = as_rational(self.change, "change")
        return max(1, math.ceil(exact / self._side)) + 1

    @property
    def _side(self) -> Fraction:
        """The smallest side of a cell."""
        return Fraction(float(self.grid.box.widths().min())) / self.grid.cells

    def count(self, rows: Any) -> int:
        """Return 0: grid and bounds do not depend on the rows."""
        return 0

    def lattice(self, count: int) -> GridLattice:
        """Return the caller's grid."""
        return self.grid

    def bound_in_cells(self, bound: Rational, count: int) -> int:
        """Return ⌈bound/side⌉ + d: rounding can add one cell per coordinate (theory C3)."""
        exact = as_positive(bound, "proposed_bound")
        return math.ceil(exact / self._side) + self.grid.dimension

    def answer(self, rows: Any) -> Integers:
        """Return the cell of the answer, of the center if there is none."""
        return self.grid.quantize(_quietly(self.function, rows))

    def distance(self, rows: Any, bound: int) -> int:
        """Return the caller's distance, rounded down."""
        _needed(self.stability, "stability")
        real = float((bound - self.grid.dimension) * self._side)
        found: float | None = _quietly(_number, _quietly(self.stability, rows, real))
        return 0 if found is None else math.floor(max(0.0, min(found, 2.0**53)))

    def local_sensitivity(self, rows: Any) -> int:
        """Return the caller's local sensitivity in cells, at most the whole grid."""
        _needed(self.local, "local")
        whole = (self.grid.cells - 1) * self.grid.dimension
        found: float | None = _quietly(_number, _quietly(self.local, rows))
        if found is None:
            return whole
        cells = math.ceil(max(0.0, min(found / float(self._side), float(whole))))
        return min(whole, cells + self.grid.dimension)


def query_status(query: StableQuery) -> Status:
    """Tell on whose word a query stands: ours is proven; a subclass may say anything of itself."""
    return query.status if type(query) in (Median, TrimmedMean) else Status.ASSERTED


def _store_column(query: _OrderStatistics, bounds: tuple[Rational, Rational], steps: int) -> None:
    if not isinstance(bounds, tuple) or len(bounds) != 2:
        raise ParameterError(
            "bounds", bounds, expected="a pair (lower, upper)", remedy="pass bounds=(0, 100)"
        )
    lower, upper = (as_rational(end, "bounds") for end in bounds)
    FixedPoint.box(dimension=1, lower=lower, upper=upper, steps=steps)  # refuses bad ones
    for name, value in (("lower", lower), ("upper", upper), ("steps", int(steps))):
        object.__setattr__(query, name, value)


def _column(rows: Any) -> ArraySource:
    source = ArraySource(rows)
    if len(source.columns) != 1:
        raise ParameterError(
            "columns of rows",
            len(source.columns),
            expected="one column",
            remedy="pass the column of which the answer is asked",
        )
    return source


def _needed(function: Callable[..., Any] | None, name: str) -> None:
    if function is None:
        raise ParameterError(
            name, None, expected="a function for this algorithm", remedy=f"pass {name}="
        )


def _quietly(function: Callable[..., Any] | None, *arguments: Any) -> Any:
    """Return what a caller's function makes of the data; None if it raises (theory A14.4)."""
    with quiet(), Watch() as watch:
        try:
            return function(*arguments) if function is not None else None
        except BaseException:
            if watch.arrived:  # the person at the keyboard, not the data
                raise
            return None


def _number(value: Any) -> float | None:
    number = float(value)
    return None if math.isnan(number) else number
