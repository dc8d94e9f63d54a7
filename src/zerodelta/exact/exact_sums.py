"""Sums and products of bounded integers that are exact at machine speed.

Noise is calibrated to the sensitivity of the *true* sum (theory C0, R): a sum that wraps around or
rounds has another one. Which arithmetic is used follows from public bounds, before data is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.errors import ParameterError
from zerodelta.exact.rational import as_count

Arithmetic: TypeAlias = Literal["float64", "int64", "python"]
"""In which numbers a sum is exact; each allows larger sums than the one before."""

IntegerArray: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.object_]
"""int64 where the public bound fits, else an object array of Python ints."""

_FLOAT64_EXACT = 1 << 53
"""Every integer up to this magnitude, this one included, is a float64."""

INT64_MOST = (1 << 63) - 1

_BLOCK_ENTRIES = 1 << 20
"""Entries converted at a time: 8 MiB, so memory stays small whatever the number of rows."""

_FEWEST_ROWS = 256
"""A product of fewer rows than this per block wastes BLAS; factors are then split into limbs."""

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

    An entry outside ``[-bound, bound]`` counts as the nearer end, so that one row never moves a
    column by more than `bound`, whatever is passed. The result is int64 if ``n * bound`` fits and
    holds Python ints otherwise; both follow from n and `bound` alone.

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
    """Return the sum of integer arrays of one shape, exactly, however many there are.

    Numbers are added as int64 while the largest magnitudes of the parts, added up, are below 2^63,
    so that nothing wraps, and as Python ints from then on. Which it was follows from the values:
    for sums that are not shown, and are on their way to others.

    >>> exact_total([np.array([2**62]), np.array([2**62])], (1,))
    array([9223372036854775808], dtype=object)
    """
    total: npt.NDArray[Any] = np.zeros(shape, dtype=np.int64)
    most = 0
    for part in parts:
        most += max(int(part.max(initial=0)), -int(part.min(initial=0)))
        if total.dtype != np.object_ and (part.dtype == np.object_ or most > INT64_MOST):
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
    bounds[1]``. BLAS multiplies float64 limbs in blocks of so few rows that a block's terms add
    up to at most 2^53: by `arithmetic` every partial sum is exact, whatever the order, the number
    of threads and the use of fused multiply-add (numpy's BLAS forms each entry from its own
    products; it is not Strassen's algorithm). Blocks are added in int64 if the first bound fits,
    and as Python ints otherwise.

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
            "not as many as left",  # the numbers themselves may be private
            expected="as many rows as left has",
            remedy="pass two arrays with one line per row of the data",
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
    whole = arithmetic(min(max(1, rows), _FEWEST_ROWS), left_bound * right_bound) == "float64"
    largest = left_bound * right_bound if whole else 1 << (2 * _LIMB_BITS)
    block = min(max(1, _BLOCK_ENTRIES // max(1, sum(columns))), _FLOAT64_EXACT // largest)
    with np.errstate(all="ignore"):  # some BLAS raise floating-point flags for no reason
        for start in range(0, rows, block):
            stop = start + block
            left_limbs = _limbs(_clamped(left[start:stop], left_bound), left_bound, whole)
            right_limbs = (
                left_limbs  # a Gram matrix: numpy computes half of it
                if right is left and left_bound == right_bound
                else _limbs(_clamped(right[start:stop], right_bound), right_bound, whole)
            )
            for i, left_limb in enumerate(left_limbs):
                for j, right_limb in enumerate(right_limbs):
                    part = (left_limb.T @ right_limb).astype(np.int64).astype(total.dtype)
                    total += part * (1 << (_LIMB_BITS * (i + j)))
    return total


def _limbs(values: npt.NDArray[np.int64], bound: int, whole: bool) -> list[npt.NDArray[np.float64]]:
    """Cut integers into float64 limbs of their own sign, lowest first; one limb if `whole`."""
    if whole:
        return [values.astype(np.float64)]
    limbs = []
    sign, rest = np.sign(values), np.abs(values)
    for _ in range(0, bound.bit_length(), _LIMB_BITS):
        limbs.append((sign * (rest & ((1 << _LIMB_BITS) - 1))).astype(np.float64))
        rest >>= _LIMB_BITS
    return limbs


def _clamped(values: npt.NDArray[np.generic], bound: int) -> npt.NDArray[np.int64]:
    # The promise |value| <= bound is the premise of every proof here. Refusing a value would be an
    # output (theory A14.4), so it is made true instead.
    return np.clip(values.astype(np.int64, copy=False), -bound, bound)


def _check_bound(bound: int, name: str) -> int:
    bound = as_count(bound, name, minimum=1)
    if bound > INT64_MOST:
        raise ParameterError(
            name, bound, expected="at most 2^63 - 1", remedy="use a coarser quantum"
        )
    return bound


def _check_integers(values: npt.NDArray[np.generic], name: str) -> None:
    """Refuse anything but a matrix of integers that int64 holds; never looks at an entry."""
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
