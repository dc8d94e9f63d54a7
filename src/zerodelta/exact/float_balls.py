"""Compute with arrays of real numbers, each known up to a proven radius, in NumPy float64.

A `FloatBalls` holds midpoints and radii; the real number lies within the radius of the midpoint.
Every operation below bounds its own rounding error from one assumption only: +, -, ×, ÷ and sqrt of
float64 are correctly rounded (IEEE 754), as in NumPy's loops wherever doubles are computed in
double precision (SSE2, AVX, NEON; not the x87 unit). No library logarithm, exponential or cosine is
trusted: ours are polynomials, with an error analysis in their docstrings. u = 2^-53 is the unit
roundoff.

Radii are rounded too: a radius is a short sum of products of nonnegative floats (at most 8
roundings, so at least (1 - 8u) times its exact value), then multiplied by `_GROW` > 1 + 16u;
`_TINY` covers underflow. A radius that is NaN or infinite means "unknown", and every test is
written so that unknown is *undecided*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt
from flint import arb

from zerodelta.exact.arrays import Floats
from zerodelta.exact.logs import precision, to_float_up

_U = 2.0**-53
_GROW = 1.0 + 2.0**-48
_TINY = 2.0**-1000
_SQRT_HALF = math.sqrt(0.5)

KERNEL_ERROR = 2.0**-49
"""16u: the relative error of log and exp, and the absolute error of cos and sin, at most."""

WORD = 2.0**-64
"""The length of the interval of uniforms whose first 64 bits are known."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class FloatBalls:
    """Real numbers within `radius` of `middle`, elementwise; both broadcast like NumPy arrays."""

    middle: Floats
    radius: Floats

    @staticmethod
    def uniform(words: npt.NDArray[np.uint64]) -> FloatBalls:
        """Return uniforms whose first 64 bits are `words`: U in [m, m+1] / 2^64."""
        middle = words.astype(np.float64) * WORD  # the conversion errs by at most u·m
        return FloatBalls(middle, (middle * _U + WORD) * _GROW)

    @staticmethod
    def enclose(constants: list[arb]) -> FloatBalls:
        """Return a column of balls that contain the given Arb balls."""
        with precision(256):
            middles = [float(constant.mid()) for constant in constants]
            pairs = zip(constants, middles, strict=True)
            radii = [to_float_up(abs(constant - arb(middle))) for constant, middle in pairs]
        return FloatBalls(np.array(middles).reshape(-1, 1), np.array(radii).reshape(-1, 1))

    @staticmethod
    def stack(parts: list[FloatBalls]) -> FloatBalls:
        """Join along the first axis."""
        return FloatBalls(
            np.concatenate([part.middle for part in parts]),
            np.concatenate([part.radius for part in parts]),
        )

    def __getitem__(self, rows: slice) -> FloatBalls:
        return FloatBalls(self.middle[rows], self.radius[rows])

    def __abs__(self) -> FloatBalls:
        return FloatBalls(np.abs(self.middle), self.radius)

    def __neg__(self) -> FloatBalls:
        return FloatBalls(-self.middle, self.radius)

    def __add__(self, other: FloatBalls | int) -> FloatBalls:
        middle, radius = _parts(other)
        total = self.middle + middle
        return FloatBalls(total, (self.radius + radius + np.abs(total) * _U) * _GROW)

    __radd__ = __add__

    def __sub__(self, other: FloatBalls | int) -> FloatBalls:
        return self + (-other)

    def __mul__(self, other: FloatBalls | int) -> FloatBalls:
        middle, radius = _parts(other)
        product = self.middle * middle
        spread = np.abs(self.middle) * radius + (np.abs(middle) + radius) * self.radius
        return FloatBalls(product, (spread + np.abs(product) * _U + _TINY) * _GROW)

    __rmul__ = __mul__

    def __truediv__(self, other: FloatBalls) -> FloatBalls:
        """Divide; |x/y - m/n| <= (r + |m/n| s) / (|n| - s) for |x-m| <= r, |y-n| <= s < |n|."""
        quotient = self.middle / other.middle
        room = _room(np.abs(other.middle) * (1 - 2 * _U) - other.radius)
        size = np.abs(quotient) * (1 + 2 * _U) + _TINY
        spread = (self.radius + size * other.radius) / room
        return FloatBalls(quotient, (spread + np.abs(quotient) * _U + _TINY) * _GROW)

    def sqrt(self) -> FloatBalls:
        """Square root of numbers that are not negative: |√x - √m| = |x - m| / (√x + √m).

        √x >= √m · √(1 - r/m) >= √m · (1 - r/m) while r <= m, and √x >= 0 always.
        """
        root = np.abs(np.sqrt(self.middle))  # abs: √-0.0 is -0.0, and a radius of -inf would "fit"
        roots = np.fmax(2.0 - self.radius / self.middle, 1.0)  # (√x + √m) / √m
        return FloatBalls(root, (self.radius / (root * roots) + root * _U) * _GROW)

    def log(self) -> FloatBalls:
        """Natural logarithm: |ln x - ln m| <= r / (m - r)."""
        room = _room(self.middle * (1 - 2 * _U) - self.radius)
        value = _log(self.middle)
        return FloatBalls(value, (self.radius / room + np.abs(value) * KERNEL_ERROR) * _GROW)

    def exp(self) -> FloatBalls:
        """Exponential: |e^x - e^m| <= (e^r - 1) e^m <= r (1 + r) e^m while r <= 1."""
        value = _exp(self.middle)
        spread = np.where(self.radius <= 1.0, self.radius * (1.0 + self.radius), np.inf)
        error = spread + KERNEL_ERROR / 4
        return FloatBalls(value, (value * error + _TINY) * (1 + 2 * KERNEL_ERROR))

    def cos_sin_pi(self) -> tuple[FloatBalls, FloatBalls]:
        """Return cos(πx) and sin(πx); each changes by at most π|x - m| <= 3.2 r."""
        cosine, sine = _cos_sin_pi(self.middle)
        radius = (self.radius * 3.2 + KERNEL_ERROR) * _GROW
        return FloatBalls(cosine, radius), FloatBalls(sine, radius)

    def total(self) -> FloatBalls:
        """Sum along the first axis by halving, so that each term is rounded log2(length) times."""
        middle, radius, depth = self.middle, self.radius, 0
        size = np.abs(middle)
        while len(middle) > 1:
            middle, radius, size = (_halve(part) for part in (middle, radius, size))
            depth += 1
        # Each of the `depth` levels errs by u times sums that are at most `size` (1 + depth u).
        spread = radius + size * (depth * _U)
        return FloatBalls(middle, spread * (1 + 2.0**-40))

    def log_total(self) -> FloatBalls:
        """Sum of the logarithms along the first axis, n of them: the logarithm of the product.

        The middles are multiplied as fractions in [1/2, 1), 512 at a time (a product of at least
        2^-512), beside their exact power of 2. The n - 1 products are off by a factor 1 + δ,
        |δ| <= u, each, so the logarithm by at most n u; power · ln 2 is off by less than 3u of
        itself. The radii are those of `log`, and 1 + 2 n u pays for the rounding of their sum.
        """
        length = len(self.middle)
        room = _room(self.middle * (1 - 2 * _U) - self.radius)
        spread = (self.radius / room).sum(axis=0, keepdims=True) * (1 + 2 * length * _U)
        product, exponent = np.frexp(self.middle)
        power = exponent.sum(axis=0, keepdims=True)
        while len(product) > 1:
            starts = range(0, len(product), 512)
            groups = [np.multiply.reduce(product[start : start + 512]) for start in starts]
            product, exponent = np.frexp(np.array(groups))
            power += exponent.sum(axis=0, keepdims=True)
        small, large = _log(product), power * _LN2
        value = small + large
        error = np.abs(small) * KERNEL_ERROR + np.abs(large) * (3 * _U) + np.abs(value) * _U
        return FloatBalls(value, (error + spread + length * _U) * _GROW)

    def lower(self) -> Floats:
        """Return floats that are at most the numbers; NaN where the radius is unknown."""
        return self.middle - (self.radius + np.abs(self.middle) * (2 * _U)) * _GROW

    def upper(self) -> Floats:
        """Return floats that are at least the numbers; NaN where the radius is unknown."""
        return self.middle + (self.radius + np.abs(self.middle) * (2 * _U)) * _GROW

    def nearest(self) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return the nearest integers (as floats), and where all of the ball rounds to them.

        Below 2^51 the remainder `middle - integer` is exact, and a ball strictly inside
        (integer - 1/2, integer + 1/2) rounds to the integer under any rule for ties.
        """
        integer = np.rint(self.middle)
        inside = np.abs(self.middle - integer) + self.radius * _GROW < 0.5 - 2 * _U
        return integer, inside & (self.radius >= 0) & (np.abs(integer) < 2.0**51)


def _parts(other: FloatBalls | int) -> tuple[Floats | float, Floats | float]:
    if isinstance(other, FloatBalls):
        return other.middle, other.radius
    return float(other), 0.0  # small integers only: exact


def _room(distance: Floats) -> Floats:
    """Return the ball's distance from zero; +0.0 (never -0.0) if it contains zero."""
    return np.maximum(distance, 0.0) + 0.0


def _halve(terms: Floats) -> Floats:
    half = len(terms) // 2
    folded = terms[:half] + terms[half : 2 * half]
    return folded if len(terms) == 2 * half else np.concatenate([folded, terms[2 * half :]])


def _horner(x: Floats, coefficients: tuple[float, ...]) -> Floats:
    """Evaluate the polynomial c0 + c1 x + c2 x² + … with these coefficients."""
    value = x * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        value += coefficient
        value *= x
    value += coefficients[0]
    return value


def _log(x: Floats) -> Floats:
    """Ln x with relative error at most 10u (`KERNEL_ERROR` allows 16u).

    x = 2^e f with f in [√½, √2) exactly; ln f = 2 artanh s, s = (f-1)/(f+1), |s| < 0.1716.
    f-1 is exact (Sterbenz), so s errs by 2u; artanh's series is cut after s^21: the rest is below
    0.01u; the correction terms z/3 + … < 0.0101 add 0.2u to 1 + …; so ln f errs by less than 5u
    (relative). If e = 0 that is all. Otherwise |ln x| >= ln 2 - ln √2 >= |ln f|, so |e ln 2| is at
    most 2 |ln x| and off by 2u of itself (ln 2 rounded, product rounded), the sum by u: 5 + 4 + 1.
    """
    fraction, exponent = np.frexp(x)
    low = fraction < _SQRT_HALF
    fraction = np.where(low, fraction + fraction, fraction)
    power = exponent - low.astype(np.int32)
    s = (fraction - 1.0) / (fraction + 1.0)
    value = (s + s) * _horner(s * s, _ARTANH)
    value += power * _LN2
    return value


with precision(128):
    _LN2 = float(arb(2).log().mid())
_ARTANH = tuple(1.0 / (2 * k + 1) for k in range(11))


def _exp(x: Floats) -> Floats:
    """e^x with relative error at most 4u for |x| <= 700, a quarter of `KERNEL_ERROR`.

    x = k ln 2 + r, |r| <= 0.347: k·_LN2_HIGH is exact (32 + 11 bits), x - k·_LN2_HIGH too
    (Sterbenz), k·_LN2_LOW errs by less than 0.01u absolutely, the last subtraction by 0.35u. The
    series is cut after r^14/14!: the rest is below 0.01u. Horner: p = 1 + r q, q = 1 + r s, where
    0.84 <= q <= 1.2 and s <= 0.57 errs by less than u (its leading 1/2 is exact, what is added to
    it is below 0.07). So q errs by 1.2u + 0.347 (0.57u + u) < 1.8u, and p by |p| u + |r q| u +
    0.347 · 1.8u: relative to p >= 0.707 less than u + 0.42u + 0.9u. Together less than 3u, and
    the power of 2 is exact. No formula needs a larger |x|, which gives NaN: undecided.
    """
    inside = np.where(np.abs(x) <= 700.0, x, np.nan)
    power = np.rint(inside * (1 / _LN2))
    rest = (inside - power * _LN2_HIGH) - power * _LN2_LOW
    scale = np.where(np.isnan(power), 0.0, power).astype(np.int32)
    return np.ldexp(_horner(rest, _EXPONENTIAL), scale)


_LN2_HIGH = math.floor(_LN2 * 2**32) / 2**32
with precision(128):
    _LN2_LOW = float((arb(2).log() - arb(_LN2_HIGH)).mid())
_EXPONENTIAL = tuple(1.0 / math.factorial(k) for k in range(15))


def _cos_sin_pi(x: Floats) -> tuple[Floats, Floats]:
    """cos(πx) and sin(πx) for 0 <= x <= 4, absolute error at most 8u (`KERNEL_ERROR` allows 16u).

    t = x - q/2 with q = rint(2x) is exact (Sterbenz; q = 0 trivially) and |t| <= 1/4. With
    w = t² <= 1/16 the Taylor series in w are cut after w^8: the rests are below 0.03u. The term of
    degree k in w is rounded at most 3k + 2 times, so cos errs by Σ (3k+2) (π/4)^(2k)/(2k)! u < 5u,
    and sin by Σ (3k+4) (π/4)^(2k+1)/(2k+1)! u < 5u.
    """
    quarter = np.rint(x + x)
    t = x - quarter * 0.5
    w = t * t
    even, odd = _horner(w, _COSINE), t * _horner(w, _SINE)
    turn = quarter.astype(np.int64)
    swap = (turn & 1).astype(np.bool_)
    cosine, sine = np.where(swap, odd, even), np.where(swap, even, odd)
    # Turns 1 and 2 negate the cosine, 2 and 3 the sine.
    cosine *= 1.0 - ((turn + 1) & 2)
    sine *= 1.0 - (turn & 2)
    return cosine, sine


def _pi_series(first: int) -> tuple[float, ...]:
    """Return (-1)^k π^(2k+first)/(2k+first)! for k = 0..8, each correctly rounded or one u off."""
    with precision(128):
        terms = [arb.pi() ** (2 * k + first) / arb.fac_ui(2 * k + first) for k in range(9)]
        return tuple((-1) ** k * float(term.mid()) for k, term in enumerate(terms))


_COSINE, _SINE = _pi_series(0), _pi_series(1)
