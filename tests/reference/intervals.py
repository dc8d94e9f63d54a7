"""Interval arithmetic with rational numbers that rounds outward; all of it is mpmath's.

The exact result for any points of the operands lies in the result. Nothing here shares code with
Arb, by which the library computes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any, TypeAlias

from mpmath.libmp import from_rational, libmpi, round_ceiling, round_floor, to_rational

Rational = int | Fraction
Number: TypeAlias = "Interval | int | Fraction"
_Ends = tuple[Any, Any]

_GUARD = 30
"""Bits beyond those that are asked for, so that a few operations do not show in them."""


class UndefinedOnIntervalError(ArithmeticError):
    """The function is not defined (or not bounded) on the whole interval."""


@dataclass(frozen=True)
class Interval:
    """A closed interval; `bits` is the relative precision to which its ends are known."""

    ends: _Ends
    bits: int

    @classmethod
    def of(cls, lo: Rational, hi: Rational, bits: int) -> Interval:
        """Return the smallest interval of that precision from `lo` to `hi`."""
        if lo > hi:
            raise ValueError(f"empty interval: {lo} > {hi}")
        low = from_rational(lo.numerator, lo.denominator, bits + _GUARD, round_floor)
        high = from_rational(hi.numerator, hi.denominator, bits + _GUARD, round_ceiling)
        return cls((low, high), bits)

    @classmethod
    def point(cls, value: Rational, bits: int) -> Interval:
        """Return the smallest interval of that precision that contains `value`."""
        return cls.of(value, value, bits)

    @property
    def lo(self) -> Fraction:
        """The lower end."""
        return Fraction(*to_rational(self.ends[0]))

    @property
    def hi(self) -> Fraction:
        """The upper end."""
        return Fraction(*to_rational(self.ends[1]))

    @property
    def width(self) -> Fraction:
        """The length of the interval."""
        return self.hi - self.lo

    def __contains__(self, value: Rational) -> bool:
        return self.lo <= value <= self.hi

    def __float__(self) -> float:
        return float((self.lo + self.hi) / 2)

    def overlaps(self, other: Interval) -> bool:
        """Say whether the two intervals have a point in common."""
        return self.lo <= other.hi and other.lo <= self.hi

    def with_bits(self, bits: int) -> Interval:
        """Return the same interval in another precision (outward if that is coarser)."""
        return Interval(libmpi.mpi_pos(self.ends, bits + _GUARD), bits)

    def nonnegative(self) -> Interval:
        """Cut off the part below 0, for a quantity known to be at least 0."""
        return Interval.of(max(self.lo, Fraction(0)), self.hi, self.bits)

    def rounded(self) -> int | None:
        """Return floor(x + 1/2) if it is the same for every x of the interval, else None."""
        down, up = (floor(end + Fraction(1, 2)) for end in (self.lo, self.hi))
        return down if down == up else None

    def _with(self, function: Callable[..., _Ends], *others: Number) -> Interval:
        given = [
            each if isinstance(each, Interval) else Interval.point(each, self.bits)
            for each in (self, *others)
        ]
        bits = max(each.bits for each in given)
        return Interval(function(*(each.ends for each in given), bits + _GUARD), bits)

    def square(self) -> Interval:
        """Return the set of squares (never below 0, unlike ``x * x``)."""
        return self._with(libmpi.mpi_square)

    def __neg__(self) -> Interval:
        return self._with(libmpi.mpi_neg)

    def __add__(self, other: Number) -> Interval:
        return self._with(libmpi.mpi_add, other)

    __radd__ = __add__

    def __sub__(self, other: Number) -> Interval:
        return self._with(libmpi.mpi_sub, other)

    def __rsub__(self, other: Rational) -> Interval:
        return -self + other

    def __mul__(self, other: Number) -> Interval:
        return self._with(libmpi.mpi_mul, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Number) -> Interval:
        if isinstance(other, Interval) and 0 in other:
            raise UndefinedOnIntervalError("division by an interval that contains 0")
        return self._with(libmpi.mpi_div, other)

    def __rtruediv__(self, other: Rational) -> Interval:
        return Interval.point(other, self.bits) / self


def ln(x: Interval) -> Interval:
    """Return the natural logarithm of an interval of positive numbers."""
    if x.lo <= 0:
        raise UndefinedOnIntervalError("logarithm of an interval that touches 0")
    return x._with(libmpi.mpi_log)


def exp(x: Interval) -> Interval:
    """Return the exponential of an interval."""
    return x._with(libmpi.mpi_exp)


def sqrt(x: Interval) -> Interval:
    """Return the square root of an interval of numbers >= 0."""
    if x.lo < 0:
        raise UndefinedOnIntervalError("square root of an interval that reaches below 0")
    return x._with(libmpi.mpi_sqrt)


def atan(x: Interval) -> Interval:
    """Return the arc tangent."""
    return x._with(libmpi.mpi_atan)


def pi(bits: int) -> Interval:
    """Return an enclosure of π."""
    return Interval(libmpi.mpi_pi(bits + _GUARD), bits)


def cos_pi(x: Interval) -> Interval:
    """Return cos(πx)."""
    return (x * pi(x.bits))._with(libmpi.mpi_cos)


def sin_pi(x: Interval) -> Interval:
    """Return sin(πx)."""
    return (x * pi(x.bits))._with(libmpi.mpi_sin)
