"""Rigorous interval arithmetic on a dyadic grid, with nothing but Python integers.

An :class:`Interval` is a closed interval whose ends are multiples of 2^-bits. Every operation
rounds outward, so the exact result for any points of the operands lies in the result. Precision
is absolute (a fixed grid), not relative. Where two grids meet, the finer one is used.

The kernels below (names with an underscore) work on integers in units of 2^-w and return a pair
(lower bound, upper bound): the lower one rounds every step down and drops positive terms, the
upper one rounds every step up and adds a bound for the dropped terms.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import isqrt
from typing import NoReturn, TypeAlias

Rational = int | Fraction
Number: TypeAlias = "Interval | int | Fraction"

GUARD = 16  # extra bits inside a kernel


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


# --- logarithm ------------------------------------------------------------------------------


def _atanh(num: int, den: int, w: int) -> tuple[int, int]:
    """Enclose atanh(num/den) = Σ t^n/n over odd n, for 0 <= t = num/den <= 1/4."""
    t = (num << w) // den
    square = t * t >> w
    low, n = 0, 1
    while t:
        low += t // n
        t = t * square >> w
        n += 2
    t = _ceil_div(num << w, den)
    square = _ceil_shift(t * t, w)
    high, n = 0, 1
    while t > 1:
        high += _ceil_div(t, n)
        t = _ceil_shift(t * square, w)
        n += 2
    return low, high + 2 * t  # the rest is at most t/(1 - 1/16)


@cache
def _ln2(w: int) -> tuple[int, int]:
    """Enclose ln 2 = 18 atanh(1/26) - 2 atanh(1/4801) + 8 atanh(1/8749)."""
    inner = w + GUARD
    a, b, c = _atanh(1, 26, inner), _atanh(1, 4801, inner), _atanh(1, 8749, inner)
    low = 18 * a[0] - 2 * b[1] + 8 * c[0]
    high = 18 * a[1] - 2 * b[0] + 8 * c[1]
    return low >> GUARD, _ceil_shift(high, GUARD)


def _ln(a: int, bits: int) -> tuple[int, int]:
    """Enclose ln(a·2^-bits) in units of 2^-bits, a > 0."""
    e = a.bit_length()  # a·2^-e lies in [1/2, 1); move it to [3/4, 3/2)
    if 4 * a < 3 << e:
        e -= 1
    one = 1 << e
    exponent = e - bits
    w = bits + GUARD + abs(exponent).bit_length()
    low, high = _atanh(abs(a - one), a + one, w)
    if a < one:
        low, high = -high, -low
    two = _ln2(w)
    low = 2 * low + exponent * two[0 if exponent >= 0 else 1]
    high = 2 * high + exponent * two[1 if exponent >= 0 else 0]
    return low >> (w - bits), _ceil_shift(high, w - bits)


def ln(x: Interval) -> Interval:
    """Return the natural logarithm of an interval of positive numbers."""
    if x.low <= 0:
        raise UndefinedOnIntervalError("logarithm of an interval that touches 0")
    low, high = _ln(x.low, x.bits)
    if x.high != x.low:
        high = _ln(x.high, x.bits)[1]
    return Interval.from_grid(low, high, x.bits)


# --- exponential ----------------------------------------------------------------------------


def _exp(a: int, bits: int) -> tuple[int, int]:
    """Enclose exp(a·2^-bits) in units of 2^-bits."""
    # k <= x/ln 2 surely: then r = x - k ln 2 lies in [0, 0.7].
    fine = a.bit_length() + 16
    two = _ln2(fine)
    k = (a << fine) // ((two[1] if a >= 0 else two[0]) << bits)
    if k < -bits - 2:  # exp(x) = 2^k exp(r) < 2^(k+2)
        return 0, 1
    w = bits + max(k, 0) + abs(k).bit_length() + GUARD
    two = _ln2(w)
    x = a << (w - bits)
    r_low = max(x - k * two[1 if k >= 0 else 0], 0)
    r_high = x - k * two[0 if k >= 0 else 1]
    term, low, n = 1 << w, 0, 1
    while term:
        low += term
        term = (term * r_low >> w) // n
        n += 1
    term, high, n = 1 << w, 0, 1
    while term > 1:
        high += term
        term = _ceil_div(_ceil_shift(term * r_high, w), n)
        n += 1
    high += 2 * term  # later ratios are at most 0.7/2
    shift = w - bits - k
    return low >> shift, _ceil_shift(high, shift)


def exp(x: Interval) -> Interval:
    """Return the exponential of an interval."""
    low, high = _exp(x.low, x.bits)
    if x.high != x.low:
        high = _exp(x.high, x.bits)[1]
    return Interval.from_grid(low, high, x.bits)


def sqrt(x: Interval) -> Interval:
    """Return the square root of an interval of numbers >= 0."""
    if x.low < 0:
        raise UndefinedOnIntervalError("square root of an interval that reaches below 0")
    high = isqrt(x.high << x.bits)
    if high * high < x.high << x.bits:
        high += 1
    return Interval.from_grid(isqrt(x.low << x.bits), high, x.bits)


# --- circle ---------------------------------------------------------------------------------


def _atan_inverse(q: int, w: int) -> tuple[int, int]:
    """Enclose atan(1/q) = Σ ± 1/(n q^n) over odd n, for an integer q >= 2."""
    low = high = 0
    n, power, positive = 1, q, True
    while power < 1 << w:
        down = (1 << w) // (n * power)
        if positive:
            low, high = low + down, high + down + 1
        else:
            low, high = low - down - 1, high - down
        n, power, positive = n + 2, power * q * q, not positive
    return low - 1, high + 1  # alternating: the rest is at most its first term, under one unit


@cache
def _pi(w: int) -> tuple[int, int]:
    """Enclose π = 16 atan(1/5) - 4 atan(1/239) (Machin)."""
    inner = w + GUARD
    a, b = _atan_inverse(5, inner), _atan_inverse(239, inner)
    low, high = 16 * a[0] - 4 * b[1], 16 * a[1] - 4 * b[0]
    return low >> GUARD, _ceil_shift(high, GUARD)


def pi(bits: int) -> Interval:
    """Return an enclosure of π."""
    low, high = _pi(bits)
    return Interval.from_grid(low, high, bits)


def _alternating(term: tuple[int, int], x: tuple[int, int], n: int, w: int) -> tuple[int, int]:
    """Enclose term·(1 - x²/(n(n+1)) + x⁴/(n(n+1)(n+2)(n+3)) - ...), for 0 <= x <= 1, n >= 1."""
    square_low, square_high = x[0] * x[0] >> w, _ceil_shift(x[1] * x[1], w)
    t_low, t_high = term
    low = high = 0
    positive = True
    while t_high > 1:
        if positive:
            low, high = low + t_low, high + t_high
        else:
            low, high = low - t_high, high - t_low
        t_low = (t_low * square_low >> w) // (n * (n + 1))
        t_high = _ceil_div(_ceil_shift(t_high * square_high, w), n * (n + 1))
        n, positive = n + 2, not positive
    return low - t_high, high + t_high  # the rest is at most its first term


def _cos_pi(a: int, bits: int) -> tuple[int, int]:
    """Enclose cos(π·a·2^-bits) in units of 2^-bits."""
    one = 1 << bits
    a %= 2 * one
    if a > one:
        a = 2 * one - a
    if 2 * a > one:
        low, high = _cos_pi(one - a, bits)
        return -high, -low
    w = bits + GUARD
    pi_low, pi_high = _pi(w)
    use_sine = 4 * a > one  # cos(πy) = sin(π(1/2 - y))
    angle = one // 2 - a if use_sine else a
    x = angle * pi_low >> bits, _ceil_shift(angle * pi_high, bits)
    low, high = _alternating(x, x, 2, w) if use_sine else _alternating((1 << w, 1 << w), x, 1, w)
    return max(low >> GUARD, 0), min(_ceil_shift(high, GUARD), one)


def cos_pi(x: Interval) -> Interval:
    """Return cos(πx)."""
    one = 1 << x.bits
    low, high = _cos_pi(x.low, x.bits)
    if x.high != x.low:
        other = _cos_pi(x.high, x.bits)
        low, high = min(low, other[0]), max(high, other[1])
        first, last = -(-x.low // one), x.high // one  # the integers in the interval
        if last > first or (last == first and first % 2 == 0):
            high = one
        if last > first or (last == first and first % 2 == 1):
            low = -one
    return Interval.from_grid(low, high, x.bits)


def sin_pi(x: Interval) -> Interval:
    """Return sin(πx)."""
    return cos_pi(x - Fraction(1, 2))


def _atan(num: int, den: int, w: int) -> tuple[int, int]:
    """Enclose atan(num/den), num >= 0 < den, by Euler's series of positive terms."""
    if num > den:
        half = _pi(w + 1)
        low, high = _atan(den, num, w)
        return (half[0] >> 2) - high, _ceil_shift(half[1], 2) - low
    # atan x = Σ_n c_n y^n x/(1+x²), y = x²/(1+x²) <= 1/2, c_n = c_(n-1)·2n/(2n+1).
    total = num * num + den * den
    y_low, y_high = (num * num << w) // total, _ceil_div(num * num << w, total)
    term, low, n = (num * den << w) // total, 0, 1
    while term:
        low += term
        term = (term * y_low >> w) * 2 * n // (2 * n + 1)
        n += 1
    term, high, n = _ceil_div(num * den << w, total), 0, 1
    while term > 2:
        high += term
        term = _ceil_div(_ceil_shift(term * y_high, w) * 2 * n, 2 * n + 1)
        n += 1
    return low, high + 2 * term  # ratios are at most 1/2


def _atan_signed(a: int, bits: int) -> tuple[int, int]:
    low, high = _atan(abs(a), 1 << bits, bits + GUARD)
    low, high = low >> GUARD, _ceil_shift(high, GUARD)
    return (low, high) if a >= 0 else (-high, -low)


def atan(x: Interval) -> Interval:
    """Return the arc tangent."""
    low, high = _atan_signed(x.low, x.bits)
    if x.high != x.low:
        high = _atan_signed(x.high, x.bits)[1]
    return Interval.from_grid(low, high, x.bits)
