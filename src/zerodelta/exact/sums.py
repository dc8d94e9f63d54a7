"""Compute sums and products of bounded integers, and of polynomials of a row, exactly and fast.

A column is quantized once, to k = -L..L (`FixedPoint.box` with L steps; y = k/L). `BernsteinCells`
maps k to non-negative cells with a fixed total; `ChebyshevBlock` maps several columns to
coordinates with a common bound. Both are polynomials of k with integer values, since rounding the
values one by one would break the total or the bound. They are linear in the powers of k, so their
sums follow from the number of rows, Σk and Σk² (`from_power_sums`).

Why Bernstein polynomials: the cells of a row are non-negative and add up to the same total for
every row. Replacing a row then moves cells like moving rows between the groups of a histogram, so
count, sum and sum of squares cost no more than one histogram (theory P1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.errors import ParameterError, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.rational import as_count
from zerodelta.value import value

# -- Exact sums and products of bounded integers --------------------------------------------------
# Noise is calibrated to the sensitivity of the *true* sum (theory C0, R); a sum that wraps around
# or rounds has another sensitivity. The arithmetic is chosen from public bounds, before data is
# read.

Arithmetic: TypeAlias = Literal["float64", "int64", "python"]
"""The type of number in which a sum is exact; each allows larger sums than the one before."""

IntegerArray: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.object_]
"""int64 where the public bound fits, else an object array of Python integers."""

_FLOAT64_EXACT = 1 << 53
"""Every integer up to this magnitude, this one included, is a float64."""

INT64_MOST = (1 << 63) - 1

_BLOCK_ENTRIES = 1 << 20
"""Entries converted at a time: 8 MiB, so that memory does not grow with the number of rows."""

_FEWEST_ROWS = 256
"""Blocks of fewer rows make BLAS slow; entries are then split into limbs to allow more rows."""

_LIMB_BITS = 21
"""Products of two limbs stay below 2^42, so 2^11 rows fit below 2^53."""


def arithmetic(terms: int, bound: int) -> Arithmetic:
    """Return the cheapest numbers in which `terms` integers of magnitude <= `bound` add exactly.

    A partial sum of any of the terms, in any order, is an integer of magnitude at most
    ``terms * bound``. Up to 2^53 each such integer is a float64, so each addition, fused with a
    multiplication or not, returns the true value and rounds nothing; up to 2^63 - 1 each is an
    int64, so nothing wraps. Above, Python integers have no limit.

    >>> arithmetic(2**10, 2**43), arithmetic(2**10, 2**43 + 1), arithmetic(2**10, 2**53)
    ('float64', 'int64', 'python')
    """
    largest = as_count(terms, "terms") * as_count(bound, "bound")
    if largest <= _FLOAT64_EXACT:
        return "float64"
    return "int64" if largest <= INT64_MOST else "python"


def exact_sum(values: npt.NDArray[np.generic], *, bound: int) -> IntegerArray:
    """Return the column sums of an (n, d) integer array, exactly.

    An entry outside ``[-bound, bound]`` counts as the nearer end, so that no row changes a column
    by more than `bound`. The result is int64 if ``n * bound`` fits and holds Python integers
    otherwise, which depends on n and `bound` only.

    >>> exact_sum(np.array([[1, -2], [3, 2**40]]), bound=2**40)
    array([            4, 1099511627774])
    >>> exact_sum(np.array([[2**62], [2**62]]), bound=2**62)
    array([9223372036854775808], dtype=object)
    """
    _check_integers(values, "values")
    bound = _check_bound(bound, "bound")
    rows, columns = values.shape
    fits = arithmetic(rows, bound) != "python"
    total: npt.NDArray[Any] = np.zeros(columns, dtype=np.int64 if fits else np.object_)
    # Within a block even the python path adds int64: block · bound <= 2^63 - 1.
    block = min(max(1, _BLOCK_ENTRIES // max(1, columns)), INT64_MOST // bound)
    for start in range(0, rows, block):
        total += _clamped(values[start : start + block], bound).sum(axis=0)
    return total


def exact_total(parts: Iterable[IntegerArray], shape: tuple[int, ...]) -> IntegerArray:
    """Return the exact sum of any number of integer arrays of one shape.

    Numbers are added as int64 while the largest magnitudes of the parts add up to less than 2^63,
    and as Python integers from then on. The type of the result depends on the values: use it only
    for partial sums that are not published.

    >>> exact_total([np.array([2**62]), np.array([2**62])], (1,))
    array([9223372036854775808], dtype=object)
    """
    total: npt.NDArray[Any] = np.zeros(shape, dtype=np.int64)
    largest_possible = 0
    for part in parts:
        largest_possible += max(int(part.max(initial=0)), -int(part.min(initial=0)))
        if total.dtype != np.object_ and (
            part.dtype == np.object_ or largest_possible > INT64_MOST
        ):
            total = total.astype(np.object_)
        total += part
    return total


def exact_product(
    left: npt.NDArray[np.generic], right: npt.NDArray[np.generic], *, bounds: tuple[int, int]
) -> IntegerArray:
    """Return ``left.T @ right`` for (n, p) and (n, q) integer arrays, exactly and by BLAS.

    `bounds` are the public magnitudes of the entries of `left` and `right`; entries outside count
    as the nearer end.

    **Why it is exact.** An integer is cut into limbs that share its sign, so that the magnitudes
    of all limb products of one entry, over all rows, add up to at most ``n * bounds[0] *
    bounds[1]``. BLAS multiplies float64 limbs in blocks of rows, chosen so that the terms of a
    block add up to at most 2^53: by `arithmetic` every partial sum is exact, whatever the order,
    the number of threads and the use of fused multiply-add (numpy's BLAS computes each entry from
    its own products, not by Strassen's algorithm). Blocks are added in int64 if the first bound
    fits, and as Python integers otherwise.

    >>> x = np.array([[1, 2], [3, -(2**30)]])
    >>> exact_product(x, x, bounds=(2**30, 2**30))
    array([[                 10,         -3221225470],
           [        -3221225470, 1152921504606846980]])
    """
    _check_integers(left, "left")
    _check_integers(right, "right")
    rows = left.shape[0]
    if right.shape[0] != rows:
        raise ParameterError(
            "rows of right",
            expected="as many rows as left has",  # not shown, since they may be private
            remedy="pass two arrays with one line for each row of the data",
        )
    if not isinstance(bounds, tuple) or len(bounds) != 2:
        raise ParameterError(
            "bounds", bounds, expected="two integers", remedy="pass (bound of left, of right)"
        )
    left_bound = _check_bound(bounds[0], "bounds[0]")
    right_bound = _check_bound(bounds[1], "bounds[1]")

    columns = left.shape[1], right.shape[1]
    fits = arithmetic(rows, left_bound * right_bound) != "python"
    total: npt.NDArray[Any] = np.zeros(columns, dtype=np.int64 if fits else np.object_)
    one_limb = arithmetic(min(max(1, rows), _FEWEST_ROWS), left_bound * right_bound) == "float64"
    largest = left_bound * right_bound if one_limb else 1 << (2 * _LIMB_BITS)
    block = min(max(1, _BLOCK_ENTRIES // max(1, sum(columns))), _FLOAT64_EXACT // largest)
    with np.errstate(all="ignore"):  # some BLAS raise floating-point flags for no reason
        for start in range(0, rows, block):
            stop = start + block
            left_limbs = _limbs(_clamped(left[start:stop], left_bound), left_bound, one_limb)
            right_limbs = (
                left_limbs  # a Gram matrix: numpy computes half of it
                if right is left and left_bound == right_bound
                else _limbs(_clamped(right[start:stop], right_bound), right_bound, one_limb)
            )
            for i, left_limb in enumerate(left_limbs):
                for j, right_limb in enumerate(right_limbs):
                    part = (left_limb.T @ right_limb).astype(np.int64).astype(total.dtype)
                    total += part * (1 << (_LIMB_BITS * (i + j)))
    return total


def _limbs(
    values: npt.NDArray[np.int64], bound: int, one_limb: bool
) -> list[npt.NDArray[np.float64]]:
    """Cut integers into float64 limbs with their sign, lowest first, or into one limb."""
    if one_limb:
        return [values.astype(np.float64)]
    limbs = []
    sign, rest = np.sign(values), np.abs(values)
    for _ in range(0, bound.bit_length(), _LIMB_BITS):
        limbs.append((sign * (rest & ((1 << _LIMB_BITS) - 1))).astype(np.float64))
        rest >>= _LIMB_BITS
    return limbs


def _clamped(values: npt.NDArray[np.generic], bound: int) -> npt.NDArray[np.int64]:
    # Every proof here assumes |value| <= bound. Raising an error for a value would be an output
    # (theory A14.4), so values are clipped instead.
    return np.clip(values.astype(np.int64, copy=False), -bound, bound)


def _check_bound(bound: int, name: str) -> int:
    """Return the bound of a summand, at least 1 and at most 2^63 - 1."""
    bound = as_count(bound, name, minimum=1)
    if bound > INT64_MOST:
        raise ParameterError(
            name, bound, expected="at most 2^63 - 1", remedy="use a coarser quantum"
        )
    return bound


def _check_integers(values: npt.NDArray[np.generic], name: str) -> None:
    """Refuse anything but a matrix of a type of integers that fits int64, by its type only."""
    if not isinstance(values, np.ndarray) or values.ndim != 2:
        shown = values.ndim if isinstance(values, np.ndarray) else type(values)
        raise ParameterError(
            f"dimensions of {name}",
            shown,
            expected="a NumPy array with 2 dimensions, one line per row of the data",
            remedy="reshape a single column with .reshape(-1, 1)",
        )
    if values.dtype.kind not in "biu" or not np.can_cast(values.dtype, np.int64):
        raise ParameterError(
            f"dtype of {name}",
            values.dtype,
            expected="integers that fit int64",
            remedy="turn rows into integers with FixedPoint.quantize first",
        )


Form: TypeAlias = tuple[Fraction, ...]
"""A linear form: one coefficient for each cell or coordinate of a group."""

_MOST_DEGREE = 2


@value
class BernsteinCells:
    """The cells C(D, j)·(L-k)^(D-j)·(L+k)^j, j = 0..D, of one column; they add up to (2L)^D.

    `degree` D: 0 counts rows, 1 gives count and sum, 2 also the sum of squares. A row whose value
    is missing adds nothing; with `missing_cell` it adds the total to one more cell, so that rows
    are counted too, at no additional noise (theory P1).

    >>> pair, triple = BernsteinCells(degree=1, steps=3), BernsteinCells(degree=2, steps=3)
    >>> pair.row_total, pair.from_power_sums(np.array([[1, -3], [1, 1]])).tolist()
    (6, [[6, 0], [2, 4]])
    >>> triple.row_total, triple.from_power_sums(np.array([[1, -3, 9], [1, 1, 1]])).tolist()
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
        """The sum of the cells of a row."""
        return int((2 * self.steps) ** self.degree)

    def from_power_sums(self, sums: IntegerArray, *, rows: int | None = None) -> IntegerArray:
        """Return the (groups, cells) sums from (groups, D+1) power sums: number of rows, Σk, Σk².

        With `missing_cell` the last of D+2 columns is the number of rows whose value is missing.
        They are 64-bit integers if the public number of `rows`, or a bound on it, allows that.

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

        >>> [str(coefficient) for coefficient in BernsteinCells(degree=2, steps=1).form(1)]
        ['-1/4', '0', '1/4']
        """
        coefficients: dict[int, list[Fraction | int]] = {
            0: [1] * (self.degree + 1),
            1: [Fraction(2 * j - self.degree, self.degree or 1) for j in range(self.degree + 1)],
            2: [1, -1, 1],
        }
        absent = [0] * self.missing_cell
        return tuple(
            Fraction(coefficient) / self.row_total
            for coefficient in [*coefficients[power], *absent]
        )

    def rows_form(self) -> Form:
        """Return the form whose value is the number of all rows, with missing values too."""
        return (Fraction(1, self.row_total),) * self.cells


@value
class ChebyshevBlock:
    """The coordinates 1, y and 2y²-1 of every column, times L^D, so that none exceeds L^D.

    The first coordinate counts rows. With `missing`, a column has a further coordinate that counts
    the rows with a value in it, and a missing value is 0 in all coordinates of its column; if all
    columns have one, the first coordinate may be left out (``count_rows=False``). `degree` and
    `missing` are one value for all columns, or one for each; a column of degree 0 is only counted.
    D is the largest degree.

    >>> block = ChebyshevBlock(columns=2, degree=2, steps=3)
    >>> block.dimension, block.row_bound
    (5, 9)
    >>> powers = [np.array([[1, -3, 9]]), np.array([[1, 1, 1]])]  # of the row (-3, 1)
    >>> block.from_power_sums(powers, np.array([1])).tolist()
    [[9, -9, 9, 3, -7]]
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
        for degree in self.degrees:
            _check(degree, 0, self.steps)
        _check(max(self.degrees), 1, self.steps)
        require(
            all(self._missing) or self.count_rows,
            "count_rows",
            self.count_rows,
            expected="True, unless missing is True for all columns",
            remedy="leave count_rows out, since a mean needs a count",
        )

    @property
    def degrees(self) -> tuple[int, ...]:
        """The highest power of each column whose sum is known."""
        degree = self.degree
        return degree if isinstance(degree, tuple) else (degree,) * self.columns

    @property
    def dimension(self) -> int:
        """The number of coordinates of a group."""
        return self._first(self.columns)

    @property
    def row_bound(self) -> int:
        """The largest magnitude of a coordinate of a row."""
        return int(self.steps ** max(self.degrees))

    def from_power_sums(self, sums: Sequence[IntegerArray], groups: IntegerArray) -> IntegerArray:
        """Return the (groups, dimension) sums from, for each column, (groups, D+1): n, Σk, Σk².

        `groups` is the number of rows of each group.

        >>> block = ChebyshevBlock(columns=1, degree=2, steps=3, missing=True)
        >>> block.from_power_sums([np.array([[2, -2, 10]])], np.array([5])).tolist()
        [[45, 18, -6, 2]]
        """
        bound = self.row_bound
        coordinates = [groups.astype(np.object_) * bound] if self.count_rows else []
        for place, column_sums in enumerate(sums):
            count, *powers = (column.astype(np.object_) for column in column_sums.T)
            coordinates += [count * bound] if self._missing[place] else []
            coordinates += [first * (bound // self.steps) for first in powers[:1]]
            coordinates += [2 * squares - count * bound for squares in powers[1:]]
        return np.stack(coordinates, axis=1)

    def form(self, power: int, column: int) -> Form:
        """Return the form whose value is Σ y^power over the rows with a value in that column."""
        coefficients = [Fraction(0)] * self.dimension
        for place, coefficient in self.places(power, column).items():
            coefficients[place] = coefficient
        return tuple(coefficients)

    def places(self, power: int, column: int) -> dict[int, Fraction]:
        """Return the nonzero coefficients of that form, of which there are at most two."""
        first, missing = self._first(column), self._missing[column]
        count = first if missing else 0
        half = Fraction(1, 2 * self.row_bound)
        return {
            0: {count: 2 * half},
            1: {first + missing: 2 * half},
            2: {count: half, first + missing + 1: half},  # y² = (1 + (2y²-1))/2
        }[power]

    def rows_form(self) -> Form:
        """Return the form whose value is the number of all rows, with missing values too.

        All of its coefficients are 0 if rows are not counted.
        """
        first = Fraction(int(self.count_rows), self.row_bound)
        return (first, *[Fraction(0)] * (self.dimension - 1))

    @property
    def _missing(self) -> tuple[bool, ...]:
        missing = self.missing
        return missing if isinstance(missing, tuple) else (missing,) * self.columns

    def _first(self, column: int) -> int:
        """Return the place of the first coordinate of a column."""
        if not isinstance(self.degree, tuple) and not isinstance(self.missing, tuple):
            return self.count_rows + column * (self.degree + self.missing)
        columns_before = zip(self.degrees[:column], self._missing[:column], strict=True)
        return self.count_rows + sum(degree + missing for degree, missing in columns_before)


def _check(degree: int, smallest: int, steps: int) -> None:
    """Refuse a degree out of range, and steps that are not positive or too many."""
    require(
        smallest <= as_count(degree, "degree") <= _MOST_DEGREE,
        "degree",
        degree,
        expected=f"an integer between {smallest} and {_MOST_DEGREE}",
        remedy="pass 1 for means, 2 for variances",
    )
    require(
        as_count(steps, "steps", minimum=1) <= 1 << 53,
        "steps",
        steps,
        expected="at most 2^53",
        remedy="use a coarser quantum, or fewer steps",
    )


# -- Whole counts from noisy ones, as tables publish them: post-processing ------------------------


def whole_counts(noisy: Floats, *, total: int | None = None) -> npt.NDArray[np.int64]:
    """Return integers of at least 0 nearest to noisy counts, with a known total if there is one.

    >>> whole_counts(np.array([2.6, -1.5, 7.2])).tolist()
    [3, 0, 7]
    >>> whole_counts(np.array([2.6, -1.5, 7.2]), total=10).tolist()
    [3, 0, 7]
    """
    bounded = np.clip(noisy, 0, 2.0**62)
    if total is None:
        rounded: npt.NDArray[np.int64] = np.rint(bounded).astype(np.int64)
        return rounded
    # the nearest point of {c >= 0, Σc = total}: max(c - x, 0) for the x that gives this total
    falling = -np.sort(-np.minimum(noisy, 2.0**62))
    excess = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    used = np.flatnonzero(falling > excess)
    near = np.maximum(noisy - (excess[used[-1]] if len(used) else excess[0]), 0)
    counts: npt.NDArray[np.int64] = np.floor(near).astype(np.int64)
    shortage = total - int(counts.sum())
    if (
        0 < shortage <= len(counts)
    ):  # rounding down lacks this much: add 1 where the remainder is largest
        counts[np.argsort(counts - near, kind="stable")[:shortage]] += 1
    else:  # off by float rounding, if at all
        counts[np.argmax(counts)] += shortage
    return counts
