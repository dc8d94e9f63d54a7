"""Rows and parameters as integers, whose products BLAS computes exactly.

A row of length at most 1 is k / 2^22. Products with limbs of parameters and of slopes are sums of
integers whose partial sums stay below 2^53, so each is exact in float64, in any order (theory C0).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from zerodelta.exact.arrays import Floats
from zerodelta.value import value

ROW_BITS = 22
STEPS = 1 << ROW_BITS
"""The largest length of an integer row."""

SLOPE_BITS = 18
_MOST_ROWS = 1 << 13
"""2^22 · 2^18 · 2^13 = 2^53: a block's sum of rows times slope limbs of at most 2^18 is exact."""

_HIGH_BITS = 29
_LOWEST_EXPONENT = -960
_BLOCK_ENTRIES = 1 << 17
"""One MiB: a block of rows is read once and stays in the second-level cache."""


def parameter_bits(dimension: int) -> int:
    """Return the width s of parameter limbs: ‖k‖ ‖limb‖ <= 2^22 · 2^(s-1) √d <= 2^52."""
    return 31 - math.ceil(math.log2(dimension) / 2)


@value(eq=False)
class IntegerRows:
    """An (n, d) array of integers held as float64; no line is longer than 2^22 in l2."""

    values: Floats

    @property
    def count(self) -> int:
        """The number n of rows, zero rows included."""
        return int(self.values.shape[0])

    @property
    def dimension(self) -> int:
        """The number d of columns, with that of the intercept."""
        return int(self.values.shape[1])

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield pieces of at most 8192 rows, each with where it lies."""
        size = min(_MOST_ROWS, max(64, _BLOCK_ENTRIES // self.dimension))
        for start in range(0, self.count, size):
            where = slice(start, min(start + size, self.count))
            yield where, self.values[where]

    def thinned(self, every: int) -> IntegerRows:
        """Return every k-th row, k = `every`."""
        return IntegerRows(values=np.ascontiguousarray(self.values[::every]))


@value(eq=False)
class Point:
    """Parameters θ = 2^exponent · integers of shape (d, outputs): exactly what is certified.

    No column is longer than 2^(s+29) + √d in integers, s = `parameter_bits(d)`, so that two limbs
    of s bits make all products with rows exact.
    """

    integers: npt.NDArray[np.int64]
    exponent: int

    @staticmethod
    def near(theta: Floats) -> Point:
        """Return the nearest point on the finest grid that has room for `theta` (finite)."""
        exponent = _exponent(theta)
        scaled = np.rint(np.ldexp(theta, -exponent))
        return Point(integers=scaled.astype(np.int64), exponent=exponent)

    def moved(self, step: Floats) -> Point:
        """Return the point at θ - step, on the grid that fits it."""
        exponent = _exponent(self.floats() - step)
        shift = exponent - self.exponent
        if shift > 0:
            half = 1 << (min(shift, 62) - 1)
            start = (self.integers + half) >> min(shift, 62)
        elif -shift <= 2:
            start = self.integers << -shift
        else:  # a step that all but cancels θ: its rounding is as coarse as a fresh start
            return Point.near(self.floats() - step)
        taken = np.rint(np.ldexp(step, -exponent)).astype(np.int64)
        return Point(integers=start - taken, exponent=exponent)

    def floats(self) -> Floats:
        """Return the nearest floats."""
        floats: Floats = np.ldexp(self.integers.astype(np.float64), self.exponent)
        return floats

    def exact(self) -> list[Fraction]:
        """Return the entries, line by line, as rationals."""
        unit = Fraction(2) ** self.exponent
        return [int(integer) * unit for integer in self.integers.flat]

    def limbs(self) -> tuple[Floats, Floats, int]:
        """Return high and low integers, θ = 2^exponent (2^s high + low), and s; |low| <= 2^(s-1).

        ‖high‖ <= 2^29 + √d and ‖low‖ <= 2^(s-1) √d for every column: times 2^22 both are at most
        2^52 (d <= 2^20), and so differences of two of these are at most 2^53.
        """
        bits = parameter_bits(len(self.integers))
        high = (self.integers + (1 << (bits - 1))) >> bits
        low = self.integers - (high << bits)
        return high.astype(np.float64), low.astype(np.float64), bits


def _exponent(theta: Floats) -> int:
    """Return e with ‖θ‖ <= 2^(e + s + 29), with a part in 2^30 to spare; nothing overflows."""
    largest = float(np.abs(theta).max(initial=0.0))
    if largest == 0:
        return _LOWEST_EXPONENT
    length = float(np.linalg.norm(theta / largest)) * (1 + 2.0**-30)
    bits = math.frexp(largest)[1] + math.frexp(length)[1]
    return max(bits - parameter_bits(len(theta)) - _HIGH_BITS, _LOWEST_EXPONENT)
