"""Rigorous interval arithmetic on a dyadic grid, in Python integers; functions are mpmath's.

An :class:`Interval` is a closed interval whose ends are multiples of 2^-bits. Every operation
rounds outward, so the exact result for any points of the operands lies in the result. Precision
is absolute (a fixed grid), not relative. Where two grids meet, the finer one is used. Nothing here
shares code with Arb, by which the library computes.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias, cast

from mpmath.libmp import from_man_exp, to_rational
from mpmath.libmp.libmpi import mpi_atan, mpi_cos, mpi_exp, mpi_log, mpi_mul, mpi_pi, mpi_sqrt

Rational = int | Fraction
Number: TypeAlias = "Interval | int | Fraction"


class UndefinedOnIntervalError(ArithmeticError):
    """The function is not defined (or not bounded) on the whole interval."""


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def _ceil_shift(a: int, s: int) -> int:
    return -(-a >> s)


class Interval:
    """The closed interval from `lo` to `hi`, widened to multiples of 2^-bits. Immutable."""

    __slots__ = ("bits", "high", "low")

    low: int
    high: int
    bits: int

    def __init__(self, lo: Rational, hi: Rational, bits: int) -> None:
        if lo > hi:
            raise ValueError(f"empty interval: {lo} > {hi}")
        if bits < 2:
            raise ValueError("an interval needs at least 2 bits")
        low = (lo.numerator << bits) // lo.denominator
        high = _ceil_div(hi.numerator << bits, hi.denominator)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "bits", bits)

    @classmethod
    def from_grid(cls, low: int, high: int, bits: int) -> Interval:
        """Return [low, high] · 2^-bits, exactly."""
        if low > high:
            raise ValueError(f"empty interval: {low} > {high}")
        self = object.__new__(cls)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "bits", bits)
        return self

    @classmethod
    def point(cls, value: Rational, bits: int) -> Interval:
        """Return the smallest interval on the grid that contains `value`."""
        return cls(value, value, bits)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("an Interval is immutable")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("an Interval is immutable")

    @property
    def lo(self) -> Fraction:
        """The lower end."""
        return Fraction(self.low, 1 << self.bits)

    @property
    def hi(self) -> Fraction:
        """The upper end."""
        return Fraction(self.high, 1 << self.bits)

    @property
    def width(self) -> Fraction:
        """The length of the interval."""
        return Fraction(self.high - self.low, 1 << self.bits)

    def __repr__(self) -> str:
        return f"Interval({float(self.lo)!r}, {float(self.hi)!r}, bits={self.bits})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Interval):
            return NotImplemented
        return self.lo == other.lo and self.hi == other.hi

    def __hash__(self) -> int:
        return hash((self.lo, self.hi))

    def __contains__(self, value: Rational) -> bool:
        return self.lo <= value <= self.hi

    def __float__(self) -> float:
        return float((self.lo + self.hi) / 2)

    def overlaps(self, other: Interval) -> bool:
        """Say whether the two intervals have a point in common."""
        return self.lo <= other.hi and other.lo <= self.hi

    def with_bits(self, bits: int) -> Interval:
        """Return the same interval on another grid (outward if that is coarser)."""
        if bits >= self.bits:
            shift = bits - self.bits
            return Interval.from_grid(self.low << shift, self.high << shift, bits)
        shift = self.bits - bits
        return Interval.from_grid(self.low >> shift, _ceil_shift(self.high, shift), bits)

    def nonnegative(self) -> Interval:
        """Cut off the part below 0, for a quantity known to be at least 0."""
        if self.high < 0:
            raise ValueError("the interval is entirely negative")
        return Interval.from_grid(max(self.low, 0), self.high, self.bits)

    def square(self) -> Interval:
        """Return the set of squares (never below 0, unlike ``x * x``)."""
        ends = (self.low * self.low, self.high * self.high)
        low = 0 if self.low <= 0 <= self.high else min(ends)
        return Interval.from_grid(low >> self.bits, _ceil_shift(max(ends), self.bits), self.bits)

    def rounded(self) -> int | None:
        """Return floor(x + 1/2) if it is the same for every x of the interval, else None."""
        half = 1 << (self.bits - 1)
        down = (self.low + half) >> self.bits
        up = (self.high + half) >> self.bits
        return down if down == up else None

    def _aligned(self, other: Number) -> tuple[Interval, Interval]:
        if not isinstance(other, Interval):
            return self, Interval.point(other, self.bits)
        bits = max(self.bits, other.bits)
        return self.with_bits(bits), other.with_bits(bits)

    def __neg__(self) -> Interval:
        return Interval.from_grid(-self.high, -self.low, self.bits)

    def __add__(self, other: Number) -> Interval:
        a, b = self._aligned(other)
        return Interval.from_grid(a.low + b.low, a.high + b.high, a.bits)

    __radd__ = __add__

    def __sub__(self, other: Number) -> Interval:
        a, b = self._aligned(other)
        return Interval.from_grid(a.low - b.high, a.high - b.low, a.bits)

    def __rsub__(self, other: Rational) -> Interval:
        return -self + other

    def __mul__(self, other: Number) -> Interval:
        if not isinstance(other, Interval):  # an exact factor
            num, den = other.numerator, other.denominator
            ends = (self.low * num, self.high * num)
            return Interval.from_grid(min(ends) // den, _ceil_div(max(ends), den), self.bits)
        a, b = self._aligned(other)
        products = (a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high)
        low, high = min(products), max(products)
        return Interval.from_grid(low >> a.bits, _ceil_shift(high, a.bits), a.bits)

    __rmul__ = __mul__

    def __truediv__(self, other: Number) -> Interval:
        if not isinstance(other, Interval):
            return self * (Fraction(1) / other)
        a, b = self._aligned(other)
        if b.low <= 0 <= b.high:
            raise UndefinedOnIntervalError("division by an interval that contains 0")
        quotients = [(x << a.bits, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        low = min(x // y for x, y in quotients)
        high = max(_ceil_div(x, y) for x, y in quotients)
        return Interval.from_grid(low, high, a.bits)

    def __rtruediv__(self, other: Rational) -> Interval:
        return Interval.point(other, self.bits) / self


# --- functions ------------------------------------------------------------------------------

_GUARD = 30
"""Bits beyond the grid, so that outward rounding to it is all that widens a result."""
_Ends = tuple[Any, Any]


def _enclosed(function: Callable[[_Ends, int], _Ends], x: Interval, size: int = 0) -> Interval:
    """Return what mpmath encloses the image of an interval by; `size` is that of the result."""
    ends = from_man_exp(x.low, -x.bits), from_man_exp(x.high, -x.bits)
    low, high = function(ends, x.bits + max(size, 0) + _GUARD)
    return Interval(Fraction(*to_rational(low)), Fraction(*to_rational(high)), x.bits)


def ln(x: Interval) -> Interval:
    """Return the natural logarithm of an interval of positive numbers."""
    if x.low <= 0:
        raise UndefinedOnIntervalError("logarithm of an interval that touches 0")
    return _enclosed(mpi_log, x, x.bits.bit_length())


def exp(x: Interval) -> Interval:
    """Return the exponential of an interval."""
    return _enclosed(mpi_exp, x, 2 * (x.high >> x.bits))  # e^x < 4^x


def sqrt(x: Interval) -> Interval:
    """Return the square root of an interval of numbers >= 0."""
    if x.low < 0:
        raise UndefinedOnIntervalError("square root of an interval that reaches below 0")
    return _enclosed(mpi_sqrt, x, x.high.bit_length() - x.bits)


def atan(x: Interval) -> Interval:
    """Return the arc tangent."""
    return _enclosed(mpi_atan, x)


def pi(bits: int) -> Interval:
    """Return an enclosure of π."""
    low, high = mpi_pi(bits + _GUARD)
    return Interval(Fraction(*to_rational(low)), Fraction(*to_rational(high)), bits)


def cos_pi(x: Interval) -> Interval:
    """Return cos(πx)."""

    def cosine(ends: _Ends, prec: int) -> _Ends:
        return cast(_Ends, mpi_cos(mpi_mul(ends, mpi_pi(prec), prec), prec))

    return _enclosed(cosine, x, max(-x.low, x.high).bit_length() - x.bits)


def sin_pi(x: Interval) -> Interval:
    """Return sin(πx)."""
    return cos_pi(x - Fraction(1, 2))
