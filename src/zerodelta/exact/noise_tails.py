"""Define the laws of the noise on released numbers, with their tails and quantiles (theory I).

For one coordinate P(|z_j| > t) = e^(-τ) Σ_i w_i τ^i/i!, τ = t/scale, with these weights w_i:

- Laplace noise: 1;
- l∞ noise in d dimensions: 1 - i/d, i < d;
- counts noise on p counts: 2·C(2p-i-1, p)/C(2p, p), i < p;
- l2 noise in an odd number d of dimensions, which is a sum of r = (d+1)/2 independent Laplace
  noises: 2·Σ_{j < r-i} C(r+j-1, j)/2^(r+j), i < r. In even dimensions a mean over the sphere.

Discrete Laplace noise has P(|z| > k) = 2q^(k+1)/(1+q), q = e^(-1/scale). A linear form of several
discrete noises is bounded by one of Laplace noises of slightly larger scale (`GeometricLaw.wider`).

All terms are positive, so that nothing cancels. Bounds for linear forms are floats with a proven
error; where scales are (nearly) equal one is raised a little first, which only makes tails longer.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
from flint import arb
from scipy.special import betaincinv, erfc, gammaincc

from zerodelta.exact.arrays import Floats
from zerodelta.exact.logs import ball, precision, to_float_down
from zerodelta.value import published, value

# -- The law of the noise on released numbers, kept with them so that intervals can be computed ---


@published
@value
class NoiseLaw:
    """The noise of a value that is (integers + noise) times `unit`, before any clipping.

    `family` and `norm` name the `Law` in files, `scale` and `dimension` are its numbers. `unit` is
    the size of one integer in the units of the value, for all coordinates or for each.
    """

    family: str
    scale: Fraction
    unit: Fraction | tuple[Fraction, ...]
    dimension: int = 1
    norm: float = 1.0

    @property
    def noise(self) -> Law:
        """The law of the integer noise."""
        return NOISE_LAWS[self.family, self.norm](scale=self.scale, dimension=self.dimension)


# -- Laws of integer noise ------------------------------------------------------------------------

_WORKING_BITS = 256
_SPHERE_PIECES = 1 << 16
"""The equally likely pieces of the sphere for l2 noise in even dimensions.

A tail is at most one piece's probability too large.
"""

_FINE_SCALE = 1 << 40
"""The scale at which a real quantile is computed as an integer."""

_SMALLEST_GAP = 2.0**-10
"""The least relative distance of scales of independent noises in a form; closer ones are raised."""

_ZERO_SCALE = 2.0**-30
"""The scale, relative to the largest, that a noise with coefficient 0 is given."""

_TERM_ERROR = 2.0**-44
"""A bound of the relative error of a term, which has a few products and one exponential."""

_HALF = Fraction(1, 2)

_SMALLEST_SPLIT = Fraction(1, 1 << 20)
"""The least distance of coefficients of counts noise relative to the largest; others are moved."""

_ROOT_EXCESS = 1 + Fraction(1, 10_000)
"""A bound of `noise.ROOT` over √2."""

_COARSE_SCALE = 8
"""Beyond this scale rounding changes the error of counts by less than 0.1 %."""

_LARGEST_TAU, _TERMS = 120, 512
"""Tails beyond this τ, and terms i from this on (of weight about 2^-i), vanish in floats."""


Coefficients: TypeAlias = Sequence[Fraction | float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Law(ABC):
    """A law of integer noise round(z), or z itself for `GeometricLaw`, whose z are integers.

    It has what intervals, forecasts and covariances need. `scale` is in integers; `dimension` is
    the number of coordinates drawn together.
    """

    family: ClassVar[str]
    """The name of the law in files."""
    norm: ClassVar[float] = 1.0
    joint: ClassVar[bool] = False
    """Whether one draw is over all lines of a table, so that these are not independent."""
    between_integers: ClassVar[bool] = False
    """Whether the sums need not be integers in the unit to which sum and noise are rounded, so that
    rounding can add 1/2 to any noise."""

    scale: Fraction
    dimension: int = 1

    def on(self, unit: Fraction | tuple[Fraction, ...]) -> NoiseLaw:
        """Return the law of the noise of a value in which one integer is this unit."""
        return NoiseLaw(
            family=self.family,
            scale=self.scale,
            unit=unit,
            dimension=self.dimension,
            norm=self.norm,
        )

    @abstractmethod
    def weights(self) -> Iterator[Fraction]:
        """Yield the w_i of P(|z_j| > t) = e^(-τ) Σ_i w_i τ^i/i!, τ = t/scale."""

    def tail(self, t: Fraction) -> arb:
        """Return P(|z_j| > t) for one coordinate, as a ball at working precision.

        >>> round(float(LaplaceLaw(scale=Fraction(2)).tail(Fraction(2)).mid()), 6)
        0.367879
        """
        if t <= 0:
            return arb(1)
        tau = ball(t) / ball(self.scale)
        term, total = arb(1), arb(0)
        for place, weight in enumerate(self.weights()):
            term = term * tau / place if place else term
            total += ball(weight) * term
        return (-tau).exp() * total

    def integer_radius(self, a: Fraction) -> int:
        """Return the smallest k with P(|round(z_j)| > k) <= a, for one coordinate.

        For Laplace noise max(0, ⌈b ln(1/a) - 1/2⌉): the noise is rounded to nearest.

        >>> LaplaceLaw(scale=Fraction(2)).integer_radius(Fraction(1, 16))
        6
        >>> GeometricLaw(scale=Fraction(2)).integer_radius(Fraction(1, 16))
        5
        """
        return _radius(self, a)

    def reach(self, a: Fraction) -> Fraction:
        """Return nearly the smallest t with P(|z_j| > t) <= a (up to 2^-40 · scale)."""
        fine = replace(self, scale=Fraction(_FINE_SCALE))
        return (fine.integer_radius(a) + Fraction(1, 2)) / _FINE_SCALE * self.scale

    def wider(self) -> Law:
        """Return a law whose linear forms have longer tails, which `passes` can bound."""
        return self

    @abstractmethod
    def passes(self, coefficients: Floats, x: Floats, a: Fraction) -> npt.NDArray[np.bool_]:
        """Tell for each line of coefficients whether P(|Σ c_i z_i| > x) <= a is certain."""

    def exceeded(self, coefficients: Floats, x: Floats, a: Fraction) -> npt.NDArray[np.bool_]:
        """Tell for each line of coefficients whether P(|Σ c_i z_i| > x) <= a is certain.

        Coefficients that are 0 for all lines may be omitted.
        """
        return self.wider().passes(coefficients, x, a)

    def equal_reach(self, count: int, a: Fraction) -> Fraction | None:
        """Return a bound of the quantile of a sum of `count` coordinates; None if unknown."""
        return None

    def form_radius(self, form: tuple[Fraction, ...], a: Fraction) -> Fraction:
        """Return r with P(|Σ c_i round(z_i)| > r) <= a, the smallest one for a single coefficient.

        For several it is an upper bound of the quantile before rounding, found by bisection, plus
        Σ|c_i|/2, the most that rounding adds; discrete Laplace noise counts as rounded (`wider`).

        >>> LaplaceLaw(scale=Fraction(2)).form_radius((Fraction(1, 2),), Fraction(1, 20))
        Fraction(3, 1)
        """
        used = [c for c in form if c]
        if not used:
            return Fraction(0)
        if len(used) == 1:
            return abs(used[0]) * self.integer_radius(a)
        law = self.wider()
        size = sum(map(abs, used), Fraction(0))
        unit = max(map(abs, used))
        alike = law.equal_reach(len(used), a) if all(abs(c) == unit for c in used) else None
        if alike is not None:
            return unit * alike + size / 2
        coefficients = np.array([[float(c / unit) for c in used]])
        high, low = 2 * float(size / unit * law.reach(a)), 0.0  # a norm of the coefficients
        for _ in range(60):
            middle = (low + high) / 2
            if law.passes(coefficients, np.array([middle]), a)[0]:
                high = middle
            else:
                low = middle
        return unit * Fraction(high) * (1 + Fraction(1, 1 << 45)) + size / 2

    def rest_radius(self, free: int, a: Fraction) -> int:
        """Return r with P(|Σ round(z_i)| > r) <= a for `free` counts, the noise of an omitted one.

        An omitted count is the number of rows minus these counts.
        """
        return self.integer_radius(a) if free == 1 else self._rest_radius(free, a)

    def _rest_radius(self, free: int, a: Fraction) -> int:
        return 1 << 62  # no bound is known, except that it is a count

    @abstractmethod
    def error(self) -> float:
        """Return the expected absolute error of a coordinate."""

    @abstractmethod
    def covariance(self, first: Coefficients, second: Coefficients) -> float:
        """Return the covariance of two linear forms of the noise on one line."""


@lru_cache(maxsize=256)
def _radius(law: Law, a: Fraction) -> int:
    """Return `Law.integer_radius`, by doubling and bisection on the exact tail."""

    def enough(k: int) -> bool:
        return bool(law.tail(k - _HALF if law.between_integers else k + _HALF) <= ball(a))

    with precision(_WORKING_BITS):
        if enough(0):
            return 0
        high = max(1, math.ceil(law.scale))
        while not enough(high):
            high *= 2
        low = 0  # not enough
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high


def _product(first: Coefficients, second: Coefficients) -> float:
    """Return the inner product of two forms."""
    return math.fsum(float(a) * float(b) for a, b in zip(first, second, strict=True))


def _chernoff(rates: Floats, squares: Floats, free: int, a: Fraction) -> float:
    """Return x with P(|Σ z_i| > x) <= a for `free` noises with E e^(λz) = 1/(1 - squares)."""
    log = math.log(2) - math.log(a.numerator) + math.log(a.denominator)
    return float(((log - free * np.log1p(-squares)) / rates).min()) * (1 + 2.0**-40)


_RATES = np.linspace(0.001, 0.999, 999)
"""The rates λ, in units of 1/scale, over which the Chernoff bound is minimized."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Independent(Law):
    """A law with independent Laplace noises before rounding, whose forms have known tails."""

    def weights(self) -> Iterator[Fraction]:
        """Yield 1."""
        yield Fraction(1)

    def passes(self, coefficients: Floats, x: Floats, a: Fraction) -> npt.NDArray[np.bool_]:
        """Decide by the tail of a sum of Laplace noises, from partial fractions."""
        scaled = np.abs(coefficients) * float(self.scale)
        return np.asarray((x > 0) & (_laplace_sum_tails(scaled, x) <= _safely_below(a)))


def _safely_below(a: Fraction) -> float:
    """Return a float slightly below `a`, to compare with rounded probabilities."""
    return float(a) * (1 - 2.0**-40)


@value
class LaplaceLaw(_Independent):
    """Independent noises round(z), P(z) ∝ e^(-|z|/scale)."""

    family = "laplace"

    def equal_reach(self, count: int, a: Fraction) -> Fraction | None:
        """Return the quantile of l2 noise in 2·count - 1 dimensions, which has the same law."""
        return BallLaw(scale=self.scale, dimension=2 * count - 1).reach(a)

    def _rest_radius(self, free: int, a: Fraction) -> int:
        """Use a Chernoff bound with E e^(λz) = 1/(1 - λ²), λ < 1, for scale 1, plus rounding."""
        reach = _chernoff(_RATES, _RATES**2, free, a)
        return math.floor(Fraction(reach) * self.scale + Fraction(free, 2))

    def error(self) -> float:
        """Return 1/(2 sinh(1/(2b))), about b."""
        half_rate = float(1 / (2 * self.scale))
        return 0.0 if half_rate > 700 else 1 / (2 * math.sinh(half_rate))

    def covariance(self, first: Coefficients, second: Coefficients) -> float:
        """Return the covariance before rounding, where the variance is 2b²."""
        return 2 * float(self.scale) ** 2 * _product(first, second)


@value
class GeometricLaw(_Independent):
    """Independent noises on integers, P(z) ∝ e^(-|z|/scale): discrete Laplace noise."""

    family = "geometric"

    def tail(self, t: Fraction) -> arb:
        """Return P(|z_j| > t) of two-sided geometric noise."""
        if t < 0:
            return arb(1)
        rate = ball(1 / self.scale)
        return 2 * (-rate * (math.floor(t) + 1)).exp() / (1 + (-rate).exp())

    def wider(self) -> Law:
        """Return Laplace noise whose forms have longer tails than those of discrete Laplace noise.

        Discrete noise plus U, uniform in [-1/2, 1/2], is symmetric and unimodal, and for t within
        1/2 of an integer k >= 0 exceeds t with probability q^k (1 - 2(t-k)T) <= e^(-2tT), T =
        tanh(h), h = 1/(2·scale). So it is more peaked than Laplace noise of scale 1/(2T), and so is
        every form of independent ones (Birnbaum 1948). Subtracting U again changes it by at most
        1/2, as rounding does. The scale follows from h·coth(h) <= 1 + min(h, h²/3).
        """
        return LaplaceLaw(
            scale=self.scale + min(1 / (12 * self.scale), _HALF), dimension=self.dimension
        )

    def _rest_radius(self, free: int, a: Fraction) -> int:
        """Use a Chernoff bound with sinh²(λh)/sinh²(h) for λ², h = 1/(2·scale); no rounding."""
        h = float(1 / (2 * self.scale))
        ends = np.expm1(-2 * h * _RATES) / math.expm1(-2 * h)
        squares = (np.exp(h * (_RATES - 1)) * ends) ** 2
        return math.floor(Fraction(_chernoff(_RATES, squares, free, a)) * self.scale)

    def error(self) -> float:
        """Return 1/sinh(1/b)."""
        rate = float(1 / self.scale)
        return 0.0 if rate > 700 else 1 / math.sinh(rate)

    def covariance(self, first: Coefficients, second: Coefficients) -> float:
        """Return the covariance; the variance is 2q/(1-q)² = 1/(2 sinh²(1/(2b))), q = e^(-1/b)."""
        product, half_rate = _product(first, second), float(1 / (2 * self.scale))
        if half_rate > 300:
            return 0.0
        return product / (2 * math.sinh(half_rate) ** 2)


@value
class DiamondLaw(_Independent):
    """One draw round(z) with density ∝ exp(-‖z‖₁/scale)."""

    family = "k-norm"

    def error(self) -> float:
        """Return E|z_j| before rounding."""
        return float(self.scale)

    def covariance(self, first: Coefficients, second: Coefficients) -> float:
        """Return the covariance before rounding, where the variance is 2b²."""
        return 2 * float(self.scale) ** 2 * _product(first, second)


@value
class BallLaw(Law):
    """One draw round(z) with density ∝ exp(-‖z‖₂/scale)."""

    family = "k-norm"
    norm = 2.0

    def weights(self) -> Iterator[Fraction]:
        """Yield the weights of a sum of (d+1)/2 independent Laplace noises, for odd d."""
        yield from _sum_weights((self.dimension + 1) // 2)

    def tail(self, t: Fraction) -> arb:
        """Return P(|z_j| > t), or an upper bound of it in even dimensions."""
        if t > 0 and self.dimension % 2 == 0:
            return _sphere_tail(self.dimension, ball(t) / ball(self.scale))
        return Law.tail(self, t)

    def passes(self, coefficients: Floats, x: Floats, a: Fraction) -> npt.NDArray[np.bool_]:
        """Decide by the l2 norm of the coefficients, since the noise is spherically symmetric."""
        return _beyond(coefficients, x, self.reach(a))

    def error(self) -> float:
        """Return E|z_j| before rounding.

        E‖z‖ = d·scale times the mean magnitude Γ(d/2) / (√π Γ((d+1)/2)) of a coordinate on the unit
        sphere.
        """
        scale, d = float(self.scale), self.dimension
        logs = math.lgamma(d / 2) - math.lgamma((d + 1) / 2)
        return scale * d * math.exp(logs) / math.sqrt(math.pi)

    def covariance(self, first: Coefficients, second: Coefficients) -> float:
        """Return the covariance before rounding; E‖z‖² = d(d+1)·scale², shared by d coordinates."""
        return (self.dimension + 1) * float(self.scale) ** 2 * _product(first, second)


@value
class CubeLaw(Law):
    """One draw round(z) with density ∝ exp(-‖z‖∞/scale)."""

    family = "k-norm"
    norm = math.inf

    def weights(self) -> Iterator[Fraction]:
        """Yield 1 - i/d."""
        d = self.dimension
        yield from (1 - Fraction(place, d) for place in range(d))

    def passes(self, coefficients: Floats, x: Floats, a: Fraction) -> npt.NDArray[np.bool_]:
        """Decide for one or two coefficients by the tail of a form of two uniforms."""
        scaled = np.abs(coefficients) * float(self.scale)
        return np.asarray(
            (x > 0) & (_two_uniform_tails(scaled, x, self.dimension) <= _safely_below(a))
        )

    def error(self) -> float:
        """Return E|z_j| before rounding."""
        return float(self.scale) * (self.dimension + 1) / 2

    def covariance(self, first: Coefficients, second: Coefficients) -> float:
        """Return the covariance before rounding, where the variance is scale²·(d+1)(d+2)/3."""
        d = self.dimension
        return _product(first, second) * float(self.scale) ** 2 * (d + 1) * (d + 2) / 3


@value
class CountsLaw(Law):
    """One draw round(z) over `dimension` counts, density ∝ exp(-max(Σz⁺, Σz⁻)/scale)."""

    family = "counts"
    joint = True

    def weights(self) -> Iterator[Fraction]:
        """Yield 2·C(2p-i-1, p)/C(2p, p)."""
        d, weight = self.dimension, Fraction(1)
        for place in range(d):
            yield weight
            weight = weight * (d - place - 1) / (2 * d - place - 1)

    def passes(self, coefficients: Floats, x: Floats, a: Fraction) -> npt.NDArray[np.bool_]:
        """Decide for each line by itself."""
        lines = zip(coefficients, x, strict=True)
        return np.array([_exceeded_by_counts(self, line, float(at), a) for line, at in lines])

    def _rest_radius(self, free: int, a: Fraction) -> int:
        """Use that each noise and minus the sum of all have the same law, plus rounding."""
        return math.floor(self.integer_radius(a) + Fraction(1, 2) + Fraction(free, 2))

    def error(self) -> float:
        """Return E|round(z_j)|, the expected absolute error of a count.

        Σ_k P(|z_j| > k + 1/2), with the weights above. At large scales E|z_j|: E G = (d+1)·scale; a
        coordinate of a k-simplex has mean 1/(k+1), and with weights C(d,k)² the mean of k/(k+1) is
        (d/(d+1))², so that E|U_j| = 2d/(d+1)².
        """
        d, scale = self.dimension, float(self.scale)
        if scale > _COARSE_SCALE:
            return 2 * scale * d / (d + 1)
        tau = (np.arange(math.ceil(_LARGEST_TAU * scale) + 1) + 0.5) / scale
        term, weight = np.exp(-tau), 1.0
        total = term.copy()
        for i in range(1, min(d, _TERMS)):
            term, weight = term * (tau / i), weight * (d - i) / (2 * d - i)
            total += weight * term
        return float(total.sum())

    def covariance(self, first: Coefficients, second: Coefficients) -> float:
        """Return the covariance before rounding.

        A count has variance 4p(2p+1)/((p+1)(p+2))·s², and two counts have correlation -1/p.
        """
        product, p = _product(first, second), self.dimension
        sums = math.fsum(map(float, first)) * math.fsum(map(float, second))
        variance = 4 * p * (2 * p + 1) / ((p + 1) * (p + 2)) * float(self.scale) ** 2
        return variance * ((1 + 1 / p) * product - sums / p)


@value
class MatrixLaw(Law):
    """Entries of a symmetric matrix of matrix Laplace noise, on weighted integers (theory W2).

    Entries off the diagonal are multiplied by `noise.ROOT`, about √2, so that a form with
    coefficients c is tr(AZ)·scale with ‖A‖ = ‖c‖ in the Frobenius norm, up to `_ROOT_EXCESS`.
    `dimension` is the width w of the matrix.

    With λ the eigenvalues of A and G_i independent Gamma((w+1)/2), the form is normal with variance
    2·scale²·Σ λ_i² G_i. Let φ(v) be the probability that a normal number of variance v exceeds x.
    Up to v = x²/3 it is convex, from there it is below its tangent: both together are a convex ψ
    >= φ, so that Eψ is largest if all of Σ λ² is in one λ (Jensen). There Eφ is the tail of a
    coordinate of l2 noise in w dimensions, and E(ψ - φ) is small.
    """

    family = "matrix"
    between_integers = True

    def weights(self) -> Iterator[Fraction]:
        """Yield the weights of an entry on the diagonal, a coordinate of l2 noise."""
        yield from self._diagonal.weights()

    @property
    def _diagonal(self) -> BallLaw:
        return BallLaw(scale=self.scale, dimension=self.dimension)

    def tail(self, t: Fraction) -> arb:
        """Return an upper bound of P(|form| > t) for all forms with ‖c‖ = 1."""
        if t <= 0:
            return arb(1)
        tau = to_float_down(ball(t) / ball(self.scale) / ball(_ROOT_EXCESS))
        return self._diagonal.tail(t / _ROOT_EXCESS) + arb(_above_the_tangent(self.dimension, tau))

    def passes(self, coefficients: Floats, x: Floats, a: Fraction) -> npt.NDArray[np.bool_]:
        """Decide by the l2 norm of the coefficients."""
        return _beyond(coefficients, x, self.reach(a))

    def error(self) -> float:
        """Return E|z| before rounding of an entry off the diagonal, a sum of w + 1 Laplace noises.

        It has the law of a coordinate of l2 noise in 2w + 1 dimensions, of scale scale/√2.
        """
        return BallLaw(scale=self.scale, dimension=2 * self.dimension + 1).error() / math.sqrt(2)

    def diagonal_error(self) -> float:
        """Return E|z| before rounding of an entry on the diagonal."""
        return self._diagonal.error()

    def covariance(self, first: Coefficients, second: Coefficients) -> float:
        """Return the covariance before rounding: every weighted entry has variance (w+1)·scale²."""
        return (self.dimension + 1) * float(self.scale) ** 2 * _product(first, second)


NOISE_LAWS: Mapping[tuple[str, float], type[Law]] = {
    (kind.family, kind.norm): kind
    for kind in (LaplaceLaw, GeometricLaw, CountsLaw, DiamondLaw, BallLaw, CubeLaw, MatrixLaw)
}
"""The laws by their names in files."""


@lru_cache(maxsize=64)
def _sum_weights(r: int) -> tuple[Fraction, ...]:
    """Return the weights w_i of the tail of a sum of r independent Laplace noises."""
    terms = [Fraction(2 * math.comb(r + j - 1, j), 1 << (r + j)) for j in range(r)]
    sums = [Fraction(0)]
    for term in terms:
        sums.append(sums[-1] + term)
    return tuple(sums[r - i] for i in range(r))


def _beyond(coefficients: Floats, x: Floats, reach: Fraction) -> npt.NDArray[np.bool_]:
    """Tell for each line of coefficients whether x lies beyond its l2 norm times `reach`."""
    lengths = np.sqrt((np.abs(coefficients) ** 2).sum(axis=1)) * float(reach)
    return np.asarray(x > lengths * (1 + 2.0**-40))


_RATIOS = np.exp2(np.arange(4097) / 512)
"""Variances, as multiples of x²/3, between which the distance of `_TANGENT` is bounded."""

_TANGENT = np.maximum(
    (_FLAT := erfc(math.sqrt(1.5)))
    + (_SLOPE := math.sqrt(1.5 / math.pi) * math.exp(-1.5)) * (_RATIOS - 1)
    - erfc(np.sqrt(1.5 / _RATIOS)),
    0.0,
)
"""How far the tangent at x²/3 lies above φ (`MatrixLaw`), at these variances: it is rising."""


def _above_the_tangent(w: int, tau: float) -> float:
    """Bound E(ψ - φ) of `MatrixLaw`: the mean of `_TANGENT` at 6G/τ², G ~ Gamma((w+1)/2).

    Between two of `_RATIOS` the probability that G lies beyond is at most that at the lower one.
    """
    shape, start = (w + 1) / 2, tau * tau / 6
    if start == 0:
        return 1.0
    beyond = gammaincc(shape, start * _RATIOS)
    inside = float((np.diff(_TANGENT) * beyond[:-1]).sum())
    rest = _SLOPE * shape / start * float(gammaincc(shape + 1, start * _RATIOS[-1]))
    return min(1.0, (inside + rest) * (1 + 2.0**-30))


def _sphere_tail(d: int, tau: arb) -> arb:
    """Bound P(|z_1| > τ) of l2 noise of scale 1 in an even number of dimensions.

    z = G·V, G ~ Gamma(d), V uniform on the sphere, so this is the mean of P(G > τ/|V_1|). It rises
    with |V_1|; taking it at the upper end of equally likely pieces of |V_1| gives a bound.
    """
    mean = gammaincc(d, to_float_down(tau) / _pieces(d)).mean()
    return arb(min(1.0, float(mean) * (1 + 2.0**-30)))


@lru_cache(maxsize=16)
def _pieces(d: int) -> Floats:
    """Return the upper ends of equally likely pieces of |V_1|, raised by 2^-30 of themselves."""
    levels = np.arange(1, _SPHERE_PIECES + 1) / _SPHERE_PIECES
    squares = betaincinv(0.5, (d - 1) / 2, levels)  # |V_1|² is Beta(1/2, (d-1)/2)
    return np.asarray(np.minimum(np.sqrt(squares) * (1 + 2.0**-30), 1.0))


def _laplace_sum_tails(scales: Floats, x: Floats) -> Floats:
    """Bound P(|Σ z_i| > x) for independent Laplace noises: Σ_i A_i e^(-x/c_i) (theory I).

    A_i = Π_{j≠i} c_i²/(c_i² - c_j²). Equal scales are raised until they differ, which makes tails
    longer, since all noises are symmetric and unimodal.
    """
    c = np.sort(scales, axis=1)
    c[:, 0] = np.maximum(c[:, 0], _ZERO_SCALE * np.maximum(c[:, -1], 1e-300))
    for place in range(1, c.shape[1]):
        c[:, place] = np.maximum(c[:, place], c[:, place - 1] * (1 + _SMALLEST_GAP))
    total, size = np.zeros(len(c)), np.zeros(len(c))
    with np.errstate(all="ignore"):
        for i in range(c.shape[1]):
            term = np.exp(-np.maximum(x, 0) / c[:, i])
            for j in range(c.shape[1]):
                if j != i:
                    ratio = c[:, j] / c[:, i]
                    term = term / ((1 - ratio) * (1 + ratio))
            total, size = total + term, size + np.abs(term) * (2 + np.maximum(x, 0) / c[:, i])
    return total + _TERM_ERROR / _SMALLEST_GAP * size


def _two_uniform_tails(scales: Floats, x: Floats, d: int) -> Floats:
    """Bound P(|a z_1 + b z_2| > x) for two coordinates of l∞ noise (theory I).

    z = G·U, G ~ Gamma(d+1), U uniform in a cube: (s²F(x/s) - t²F(x/t))/(4ab), s = a + b, t = a - b,
    F(τ) = E(1 - τ/G)₊² = e^(-τ) Σ_i τ^i/i! · (d-i)(d-1-i)/(d(d-1)).
    """
    if scales.shape[1] > 2:
        raise AssertionError("forms of l∞ noise have one or two coefficients")
    ordered = np.sort(scales, axis=1)
    large = np.maximum(ordered[:, -1], 1e-300)
    small = np.maximum(ordered[:, 0] if scales.shape[1] == 2 else 0.0, _SMALLEST_GAP * large)
    if d == 1:
        return _laplace_sum_tails(scales, x)
    s, t = large + small, large - small
    with np.errstate(all="ignore"):
        first = s * s * _squares(x / s, d)
        second = np.where(t > 0, t * t * _squares(x / np.where(t > 0, t, 1.0), d), 0.0)
        return np.asarray((first - second + _TERM_ERROR * (first + second)) / (4 * large * small))


def _squares(tau: Floats, d: int) -> Floats:
    """Return F(τ) = E(1 - τ/G)₊² of `_two_uniform_tails`, without overflow."""
    term, total = np.ones_like(tau), np.zeros_like(tau)
    logs = np.zeros_like(tau)
    for i in range(d - 1):
        if i:
            term = term * (tau / i)
            big = term > 1e200  # scaled down before it overflows; e^(-τ) is far smaller
            term, total = np.where(big, term * 1e-200, term), np.where(big, total * 1e-200, total)
            logs = logs + np.where(big, 200 * math.log(10), 0.0)
        total = total + term * ((d - i) * (d - 1 - i) / (d * (d - 1)))
    return np.asarray(np.exp(logs - tau) * total)


def _exceeded_by_counts(law: CountsLaw, line: Floats, x: float, a: Fraction) -> bool:
    """Tell whether P(|Σ c_i z_i| > x) <= a is certain for counts noise; omitted c_i are 0.

    With a_0 = 0 and a_i = c_i, all different, P(Σ c_i z_i > x) is the sum over pairs with
    δ = a_i - a_j > 0 of (-1)^(p-1) δ^(2p-2) e^(-x/(δ·scale)), divided by C(2p,p) and by the
    product of (a_i - a_l)(a_j - a_l) over all others l.
    Equal coefficients are moved apart first. As a function of the coefficients a quantile is a
    norm, so the quantile of the differences is subtracted from x.
    """
    p = law.dimension
    largest = max((abs(Fraction(float(c))) for c in line), default=Fraction(0))
    if largest == 0 or x <= 0:
        return bool(x > 0)
    scaled = [Fraction(float(c)) / largest for c in line]
    if np.count_nonzero(line) == 1:
        return bool(Fraction(x) / largest >= law.reach(a))
    decision = _decided_by_floats(law, [float(c) for c in scaled], x / float(largest), float(a))
    if decision is not None:
        return decision
    ordered = sorted([*scaled, *[Fraction(0)] * (p + 1 - len(scaled))])
    zero, apart = ordered.index(Fraction(0)), list(ordered)
    for place in range(zero + 1, len(apart)):
        apart[place] = max(apart[place], apart[place - 1] + _SMALLEST_SPLIT)
    for place in range(zero - 1, -1, -1):
        apart[place] = min(apart[place], apart[place + 1] - _SMALLEST_SPLIT)
    moved = sum((abs(n - o) for n, o in zip(apart, ordered, strict=True)), Fraction(0))
    threshold = Fraction(x) / largest - moved * law.reach(a)
    if threshold <= 0:
        return False
    with precision(_WORKING_BITS + 48 * p):
        tau, total = ball(threshold / law.scale), arb(0)
        for i, high in enumerate(apart):
            for low in apart[:i]:
                delta = high - low
                others = [knot for knot in apart if knot not in (high, low)]
                product = math.prod(((high - o) * (low - o) for o in others), start=Fraction(1))
                weight = delta ** (2 * p - 2) / product
                total += ball(weight) * (-tau / ball(delta)).exp()
        probability = 2 * (-1) ** (p - 1) * total / math.comb(2 * p, p)
        return bool(probability <= ball(a))


def _decided_by_floats(law: CountsLaw, line: list[float], x: float, a: float) -> bool | None:
    """Decide `_exceeded_by_counts` in floats; None if coefficients are close or it is unclear."""
    p = law.dimension
    knots = sorted([*line, *[0.0] * (p + 1 - len(line))])
    if min(high - low for low, high in itertools.pairwise(knots)) < 2.0**-12:
        return None
    tau, total, size = x / float(law.scale), 0.0, 0.0
    for i, high in enumerate(knots):
        for low in knots[:i]:
            delta = high - low
            others = (o for o in knots if o not in (high, low))
            product = math.prod((high - o) * (low - o) for o in others)
            term = delta ** (2 * p - 2) / product * math.exp(-tau / delta)
            total, size = total + term, size + abs(term) * (1 + tau / delta)
    weight = 2 / math.comb(2 * p, p)
    probability, error = (-1) ** (p - 1) * total * weight, _TERM_ERROR * size * weight
    if probability + error <= a * (1 - _TERM_ERROR):
        return True
    return False if probability - error > a * (1 + _TERM_ERROR) else None
