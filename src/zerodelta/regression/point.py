"""A parameter array as integers times a power of two: what is certified is exactly this point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
import numpy.typing as npt

from zerodelta.regression.integer_rows import Floats, parameter_bits

__all__ = ["Point"]

_HIGH_BITS = 29
_LOWEST_EXPONENT = -960


@final
@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Point:
    """θ = 2^exponent · integers, an array of shape (d, outputs).

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
