"""The integers that one quantized row adds to a table, within a public bound (theory P, G2).

A column is quantized once, to k = -L..L (`FixedPoint.box` with L steps; y = k/L). `BernsteinCells`
makes of k non-negative cells that add up to one fixed total; `ChebyshevBlock` makes of several
columns coordinates of magnitude at most one bound. Both are polynomials of k in integers: rounding
their values one by one would break the total. Sources that count and add powers of k (in SQL, say)
get the same cells from these (`from_power_sums`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.errors import require
from zerodelta.exact.exact_sums import IntegerArray, arithmetic
from zerodelta.exact.rational import as_count
from zerodelta.value import value

Form: TypeAlias = tuple[Fraction, ...]
"""A linear form: one coefficient for each cell or coordinate of a group."""

_Present: TypeAlias = npt.NDArray[np.bool_] | None

_MOST_DEGREE = 2


@value
class BernsteinCells:
    """The cells C(D, j)·(L-k)^(D-j)·(L+k)^j, j = 0..D, of one column; they add up to (2L)^D.

    `degree` D: 0 counts rows, 1 gives count and sum, 2 also the sum of squares. A row whose value
    is missing adds nothing; with `missing_cell` it adds the whole total to one more cell, so that
    rows are counted too (P1: at no cost).

    >>> pair, triple = BernsteinCells(degree=1, steps=3), BernsteinCells(degree=2, steps=3)
    >>> pair.row_total, pair.weights(np.array([-3, 1])).tolist()
    (6, [[6, 0], [2, 4]])
    >>> triple.row_total, triple.weights(np.array([-3, 1])).tolist()
    (36, [[36, 0, 0], [4, 16, 16]])
    """

    degree: int
    steps: int = 1
    missing_cell: bool = False

    def __post_init__(self) -> None:
        _check(self.degree, 0, self.steps)

    @property
    def degrees(self) -> tuple[int]:
        """The highest power of the column whose sum is known."""
        return (self.degree,)

    @property
    def cells(self) -> int:
        """The number of cells of a group."""
        return self.degree + 1 + self.missing_cell

    @property
    def row_total(self) -> int:
        """What the cells of a row add up to."""
        return int((2 * self.steps) ** self.degree)

    def weights(self, integers: npt.NDArray[np.int64], present: _Present = None) -> IntegerArray:
        """Return the (n, cells) integers of n rows, each by itself; beyond ±L counts as the end."""
        fits = arithmetic(1, self.row_total) != "python"
        k: npt.NDArray[Any] = np.clip(integers, -self.steps, self.steps)
        k = k.astype(np.int64 if fits else np.object_)
        up, down, d, one = self.steps + k, self.steps - k, self.degree, np.ones_like(k)
        factors = [[math.comb(d, j) * one, *[down] * (d - j), *[up] * j] for j in range(d + 1)]
        columns = [math.prod(each) for each in factors]
        if present is not None:
            columns = [np.where(present, column, 0) for column in columns]
        if self.missing_cell:
            absent = np.zeros(len(k), dtype=bool) if present is None else ~present
            columns.append(np.where(absent, self.row_total, 0).astype(k.dtype))
        return np.stack(columns, axis=1)

    def from_power_sums(self, sums: IntegerArray, *, rows: int | None = None) -> IntegerArray:
        """Return the (groups, cells) sums from (groups, D+1): how many rows, Σk, Σk².

        With `missing_cell` the last of D+2 columns is the number of rows whose value is missing.
        In 64 bits if the public number of rows, or a public bound on it, allows that.

        >>> BernsteinCells(degree=2, steps=3).from_power_sums(np.array([[2, -2, 10]])).tolist()
        [[40, 16, 16]]
        """
        fits = rows is not None and arithmetic(rows, self.row_total) != "python"
        moments = [column.astype(np.int64 if fits else np.object_) for column in sums.T]
        length = self.steps
        if self.degree == 0:
            columns = moments[:1]
        elif self.degree == 1:
            columns = [length * moments[0] - moments[1], length * moments[0] + moments[1]]
        else:
            middle, squares = length * length * moments[0], moments[2]
            skew = 2 * length * moments[1]
            columns = [middle - skew + squares, 2 * (middle - squares), middle + skew + squares]
        if self.missing_cell:
            columns.append(self.row_total * moments[-1])
        return np.stack(columns, axis=1)

    def form(self, power: int, column: int = 0) -> Form:
        """Return the form whose value is Σ y^power over the rows with a value, y = k/L.

        >>> [str(each) for each in BernsteinCells(degree=2, steps=1).form(1)]
        ['-1/4', '0', '1/4']
        """
        coefficients: dict[int, list[Fraction | int]] = {
            0: [1] * (self.degree + 1),
            1: [Fraction(2 * j - self.degree, self.degree or 1) for j in range(self.degree + 1)],
            2: [1, -1, 1],
        }
        absent = [0] * self.missing_cell
        return tuple(Fraction(each) / self.row_total for each in [*coefficients[power], *absent])

    def rows_form(self) -> Form:
        """Return the form whose value is the number of all rows that count, missing values too."""
        return (Fraction(1, self.row_total),) * self.cells


@value
class ChebyshevBlock:
    """The coordinates 1, y and 2y²-1 of every column, times L^D: none is larger than L^D.

    The first coordinate counts rows. With `missing`, a column has one more, which counts the rows
    with a value in it, a missing value is 0 in all coordinates of its column, and the first one
    may be left out (``count_rows=False``) if that holds for all columns. `degree` and `missing`
    are those of all columns, or one for each; a column of degree 0 is only counted. D is the
    largest degree.

    >>> block = ChebyshevBlock(columns=2, degree=2, steps=3)
    >>> block.dimension, block.row_bound
    (5, 9)
    >>> block.coordinates(np.array([[-3, 1]])).tolist()
    [[9, -9, 9, 3, -7]]
    >>> ChebyshevBlock(columns=2, degree=(2, 1), steps=3).coordinates(np.array([[-3, 1]])).tolist()
    [[9, -9, 9, 3]]
    """

    columns: int
    degree: int | tuple[int, ...] = 1
    steps: int
    missing: bool | tuple[bool, ...] = False
    count_rows: bool = True

    def __post_init__(self) -> None:
        columns = as_count(self.columns, "columns", minimum=1)
        require(
            len(self.degrees) == columns == len(self._missing),
            "degree, missing",
            (self.degree, self.missing),
            expected=f"one for all columns, or {columns}",
            remedy="pass one number, or a tuple with one for each column",
        )
        for each in self.degrees:
            _check(each, 0, self.steps)
        _check(max(self.degrees), 1, self.steps)
        require(
            all(self._missing) or self.count_rows,
            "count_rows",
            self.count_rows,
            expected="True where no value is missing",
            remedy="leave it out: a mean needs a count",
        )

    @property
    def degrees(self) -> tuple[int, ...]:
        """The highest power of each column whose sum is known."""
        given = self.degree
        return given if isinstance(given, tuple) else (given,) * self.columns

    @property
    def dimension(self) -> int:
        """The number of coordinates of a group."""
        return self._first(self.columns)

    @property
    def row_bound(self) -> int:
        """The largest magnitude of a coordinate of a row."""
        return int(self.steps ** max(self.degrees))

    def coordinates(
        self, integers: npt.NDArray[np.int64], present: _Present = None
    ) -> IntegerArray:
        """Return the (n, dimension) integers of (n, columns) ones; beyond ±L counts as the end.

        A value that is not present is 0 in its column.
        """
        fits = arithmetic(2, self.row_bound) != "python"  # 2k² on the way
        k = np.clip(integers, -self.steps, self.steps).astype(np.int64 if fits else np.object_)
        there = np.ones(k.shape, dtype=bool) if present is None else present
        bound = np.full(len(k), self.row_bound, dtype=k.dtype)
        found = [bound] if self.count_rows else []
        for place, (column, entry) in enumerate(zip(k.T, there.T, strict=True)):
            own = [bound] if self._missing[place] else []
            if self.degrees[place] >= 1:
                own.append(column * (self.row_bound // self.steps))
            if self.degrees[place] == 2:
                own.append(2 * column * column - bound)
            found += [np.where(entry, each, 0) for each in own]
        return np.stack(found, axis=1)

    def from_power_sums(self, sums: Sequence[IntegerArray], groups: IntegerArray) -> IntegerArray:
        """Return the (groups, dimension) sums from, for each column, (groups, D+1): n, Σk, Σk².

        `groups` is the number of rows of each group.

        >>> block = ChebyshevBlock(columns=1, degree=2, steps=3, missing=True)
        >>> block.from_power_sums([np.array([[2, -2, 10]])], np.array([5])).tolist()
        [[45, 18, -6, 2]]
        """
        bound = self.row_bound
        found = [groups.astype(np.object_) * bound] if self.count_rows else []
        for place, each in enumerate(sums):
            count, *powers = (column.astype(np.object_) for column in each.T)
            found += [count * bound] if self._missing[place] else []
            found += [first * (bound // self.steps) for first in powers[:1]]
            found += [2 * squares - count * bound for squares in powers[1:]]
        return np.stack(found, axis=1)

    def form(self, power: int, column: int) -> Form:
        """Return the form whose value is Σ y^power over the rows with a value in that column."""
        places = self.places(power, column)
        return tuple(places.get(place, Fraction(0)) for place in range(self.dimension))

    def places(self, power: int, column: int) -> dict[int, Fraction]:
        """Return the coefficients of that form that are not 0: a few, however many columns."""
        first, missing = self._first(column), self._missing[column]
        count = first if missing else 0
        half = Fraction(1, 2 * self.row_bound)
        return {
            0: {count: 2 * half},
            1: {first + missing: 2 * half},
            2: {count: half, first + missing + 1: half},  # y² = (1 + (2y²-1))/2
        }[power]

    def rows_form(self) -> Form:
        """Return the form whose value is the number of all rows that count, missing values too.

        All of its coefficients are 0 if rows are not counted.
        """
        first = Fraction(int(self.count_rows), self.row_bound)
        return (first, *[Fraction(0)] * (self.dimension - 1))

    @property
    def _missing(self) -> tuple[bool, ...]:
        given = self.missing
        return given if isinstance(given, tuple) else (given,) * self.columns

    def _first(self, column: int) -> int:
        """Return the place of the first coordinate of a column."""
        if not isinstance(self.degree, tuple) and not isinstance(self.missing, tuple):
            return self.count_rows + column * (self.degree + self.missing)
        own = zip(self.degrees[:column], self._missing[:column], strict=True)
        return self.count_rows + sum(degree + missing for degree, missing in own)


def _check(degree: int, least: int, steps: int) -> None:
    require(
        least <= as_count(degree, "degree") <= _MOST_DEGREE,
        "degree",
        degree,
        expected=f"an integer between {least} and {_MOST_DEGREE}",
        remedy="pass 1 for means, 2 for variances",
    )
    require(
        as_count(steps, "steps", minimum=1) <= 1 << 53,
        "steps",
        steps,
        expected="at most 2^53",
        remedy="use a coarser quantum, or fewer steps",
    )
