"""State the theorems of channels that mix with a public distribution (B1, B2, R(v), Theorem K, B4).

All these channels output (1-w)·T(y) + w·Q and differ in one number only: an upper bound M on
sup_z T(z|y)/Q(z), the *mass ratio*. They are pure t-DP if

    ln δ(t) + ln M <= ln(w/(1-w)) + ln(e^t - 1).
"""

from __future__ import annotations

import decimal
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from flint import arb

from zerodelta.errors import ParameterError, require
from zerodelta.exact.logs import ball, lower, upper
from zerodelta.exact.rational import Rational, as_positive, as_rational
from zerodelta.privacy.composition import Composed
from zerodelta.privacy.steps import (
    Bound,
    Cells,
    Dimension,
    Positive,
    Size,
    Weight,
    between,
    integers,
    list_of,
    row_of,
)
from zerodelta.privacy.theorems.theorem import ChannelTheorem, smallest_log_delta
from zerodelta.value import value

_LARGEST = 1e300


def as_weight(weight: Rational, name: str = "mixing_weight") -> Fraction:
    """Return a mixing weight as an exact rational strictly between 0 and 1."""
    exact = as_rational(weight, name)
    require(
        0 < exact < 1,
        name,
        weight,
        "a number strictly between 0 and 1",
        "pass the probability with which the answer is replaced, such as 0.01",
    )
    return exact


def largest_log_delta(*, epsilon: Rational, weight: Rational, log_mass: float) -> float:
    """Return the largest ln δ(ε) of a base that B1 allows: ln(w/(1-w)) + ln(e^ε - 1) - ln M.

    It is rounded down.

    >>> round(largest_log_delta(epsilon=1, weight="0.01", log_mass=math.log(16)), 4)
    -6.8264
    """
    t, w = as_positive(epsilon, "epsilon"), as_weight(weight)
    _check_logarithm(log_mass, "log_mass", maximum=math.inf)
    return lower(lambda: ball(w / (1 - w)).log() + ball(t).expm1().log() - arb(log_mass))


def smallest_weight(*, epsilon: Rational, log_delta: float, log_mass: float) -> Fraction:
    """Return the smallest weight that meets the condition of B1, up to one part in 1e9.

    It solves w/(1-w) = δ(ε) M/(e^ε - 1), rounded up to ten decimal digits; 1 if none is enough.
    """
    t = as_positive(epsilon, "epsilon")
    for entry, name in ((log_delta, "log_delta"), (log_mass, "log_mass")):
        _check_logarithm(entry, name, maximum=_LARGEST)
    # `proves` compares two floats that were rounded the other way: the margin covers both
    margin = 1e-12 + 2.0**-50 * (abs(log_delta) + abs(log_mass))
    log_odds = upper(lambda: arb(log_delta) + arb(log_mass) - ball(t).expm1().log() + arb(margin))
    weight = upper(lambda: 1 / (1 + (-arb(log_odds)).exp()))
    context = decimal.Context(prec=10, rounding=decimal.ROUND_CEILING)
    return Fraction(context.create_decimal_from_float(weight))


def _check_logarithm(value: float, name: str, *, maximum: float) -> None:
    """Refuse anything but a logarithm that is finite (or +inf, if the maximum is)."""
    if not isinstance(value, (int, float)) or not -_LARGEST <= value <= maximum:  # also NaN
        raise ParameterError(
            name, value, expected="a finite logarithm", remedy="a pure base needs no mixing at all"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class MixingTheorem(ChannelTheorem):
    """A channel that publishes a draw from a public distribution with probability `weight`."""

    any_neighbors = True

    weight: Weight

    @property
    @abstractmethod
    def log_mass(self) -> float:
        """The mass ratio ln M, M = sup_z T(z|y)/Q(z), rounded up."""

    def log_delta_required(self, epsilon: Rational) -> float:
        """Return the largest ln δ(ε) of the base: ln(w/(1-w)) + ln(e^ε - 1) - ln M."""
        return largest_log_delta(epsilon=epsilon, weight=self.weight, log_mass=self.log_mass)

    def proves(self, base: Composed, epsilon: Fraction) -> bool:
        """Tell whether ln δ(ε) of the base is at most what weight and mass ratio allow."""
        allowed = self.log_delta_required(epsilon)
        return smallest_log_delta(base, epsilon) <= allowed


@value
class UniformMixing(MixingTheorem):
    """Mixing on a finite space."""

    label = "uniform-mixing"
    section = "B1"
    sentence = (
        "the answer is replaced by a uniform one of {size} with probability {weight}: δ is gone at "
        "no extra ε."
    )

    size: Size

    @property
    def log_mass(self) -> float:
        """Return ln N: a point mass against the uniform distribution on N points."""
        return upper(lambda: ball(self.size).log())


@value
class PriorMixing(MixingTheorem):
    """Mixing with a public prior on a finite space."""

    label = "prior-mixing"
    section = "B1"
    sentence = (
        "the answer, one of {size}, is replaced by a draw from a public prior, whose smallest "
        "probability is {smallest_probability}, with probability {weight}."
    )

    size: Size
    smallest_probability: Annotated[Fraction, between(0, 1, ends="(]")]

    @property
    def log_mass(self) -> float:
        """Return ln(1/q_min): a point mass against a public prior Q on N points.

        N probabilities of at least q_min add up to 1, so q_min is at most 1/N.
        """
        q = self.smallest_probability
        require(
            q * self.size <= 1,
            "smallest_probability",
            q,
            "at most 1/size: no distribution on size points has a larger one",
            "pass the smallest probability of the prior",
        )
        return upper(lambda: -ball(q).log())


@value
class GridMixing(MixingTheorem):
    """Mixing on a grid of a cube."""

    label = "grid-mixing"
    section = "B2"
    sentence = (
        "the answer is put on a grid of {cells} cells in each of {dimension} dimensions and "
        "replaced by a uniform cell with probability {weight}."
    )

    cells: Cells
    dimension: Dimension

    @property
    def log_mass(self) -> float:
        """Return d ln K: a point mass against the uniform grid of K^d cells."""
        return upper(lambda: ball(self.cells).log() * self.dimension)


@value
class UnequalGridMixing(MixingTheorem):
    """Mixing on a grid of a box with unequal sides."""

    label = "unequal-grid-mixing"
    section = "B2"
    sentence = (
        "the answer is put on a grid, {sides} being the pairs of a number of cells and the number "
        "of dimensions that have it, and replaced by a uniform cell with probability {weight}."
    )

    sides: Annotated[
        Sequence[Sequence[int]], list_of(row_of(integers(1), integers(1, 10**9)), minimum=1)
    ]

    @property
    def log_mass(self) -> float:
        """Return Σ n_j ln K_j: a grid with K_j cells in each of n_j coordinates."""
        return upper(
            lambda: sum((ball(cells).log() * times for cells, times in self.sides), arb(0))
        )


@value
class GaussianNet(MixingTheorem):
    """Mixing on the lattice points of an l2 ball."""

    label = "gaussian-net"
    section = "R(v)"
    sentence = (
        "the answer is put on the lattice points of squared norm at most {bound} in {dimension} "
        "dimensions and replaced by rounded Gaussian noise of variance {variance} with probability "
        "{weight}."
    )

    dimension: Dimension
    bound: Bound
    variance: Positive

    @property
    def log_mass(self) -> float:
        """Return ln(1/q_min) of rounded N(0, τ²I) on the net ‖k‖² <= B.

        q_min >= (2πτ²)^(-d/2) exp(-(B + d/12)/(2τ²)), by Jensen on each cell.
        """
        d, tau = self.dimension, self.variance
        spread = (self.bound + Fraction(d, 12)) / (2 * tau)
        return upper(lambda: (2 * arb.pi() * ball(tau)).log() * ball(Fraction(d, 2)) + ball(spread))


@value
class LaplaceNet(MixingTheorem):
    """Mixing on the lattice points of an l1 ball."""

    label = "laplace-net"
    section = "R(vi)"
    sentence = (
        "the answer is put on the lattice points of l1 norm at most {bound} in {dimension} "
        "dimensions and replaced by rounded Laplace noise of scale {scale} with probability "
        "{weight}."
    )

    dimension: Dimension
    bound: Bound
    scale: Positive

    @property
    def log_mass(self) -> float:
        """Return ln(1/q_min) of rounded product Laplace on the net ‖k‖₁ <= m.

        P(0) = 1 - e^(-1/2b) and P(k) = sinh(1/2b) e^(-|k|/b) >= P(0) e^(-|k|/b), so
        q_min >= (1 - e^(-1/2b))^d e^(-m/b).
        """
        d, m, b = self.dimension, self.bound, self.scale
        return upper(lambda: ball(m / b) - (-(ball(-1 / (2 * b)).expm1())).log() * d)


@value
class ProfileMixing(ChannelTheorem):
    """Mixing with the prior that is proportional to a pointwise profile of the whole mechanism."""

    label = "profile-mixing"
    section = "B1"
    sentence = (
        "the answer is replaced by a draw from the prior proportional to its pointwise profile "
        "with probability {weight}."
    )
    asserted = True
    includes_base = True

    epsilon: Positive
    ratio: Positive
    weight: Weight

    def proves(self, base: Composed, epsilon: Fraction) -> bool:
        """Tell whether sup_y δ_s(y)/Q(y) <= (e^ε - 1) w/(1-w), s <= ε the stated one."""
        needed = self.ratio * (1 - self.weight) / self.weight
        return epsilon >= self.epsilon and lower(lambda: ball(epsilon).expm1() - ball(needed)) >= 0


# -- Noise near the answer, mixed with a uniform point: three mass ratios (theory B4) -------------


@value
class KNormKernel(MixingTheorem):
    """K-norm noise in a convex body, mixed with a uniform point."""

    label = "k-norm-kernel"
    section = "B4"
    sentence = (
        "K-norm noise of scale {scale} is added in a body of diameter {diameter}, mixed with a "
        "uniform point with probability {weight}."
    )

    dimension: Dimension
    diameter: Positive
    scale: Positive

    @property
    def log_mass(self) -> float:
        """Return d ln(eR/(d b)): Theorem K, K-norm smoothing of a convex body.

        R is the body's diameter in the norm of the noise and b the noise scale, b <= R/d.
        """
        d, r, b = self.dimension, self.diameter, self.scale
        require(
            b <= r / d,
            "scale",
            b,
            "at most diameter/dimension (Theorem K)",
            "use a smaller noise scale: mixing alone would already do",
        )
        return upper(lambda: (1 + ball(r / (d * b)).log()) * d)


@value
class LaplaceCubeKernel(MixingTheorem):
    """Laplace noise in a cube, mixed with a uniform point."""

    label = "laplace-cube-kernel"
    section = "B4"
    sentence = (
        "Laplace noise of scale {scale} is added in a cube of side {side}, mixed with a uniform "
        "point with probability {weight}."
    )

    dimension: Dimension
    side: Positive
    scale: Positive

    @property
    def log_mass(self) -> float:
        """Return d ln(D/(b(1 - e^(-D/b)))): product Laplace on a cube, exact.

        This is Algorithm 1 re-analyzed: no extra ε.
        """
        d, ratio = self.dimension, self.side / self.scale
        return upper(lambda: (ball(ratio) / -(ball(-ratio).expm1())).log() * d)


@value
class LocalUniformKernel(MixingTheorem):
    """A uniform cell near the answer's, mixed with a uniform cell."""

    label = "local-uniform-kernel"
    section = "B4"
    sentence = (
        "a uniform cell among the {kernel_cells} nearest of {cells} per dimension is published, "
        "replaced by a uniform cell with probability {weight}."
    )

    cells: Cells
    kernel_cells: Cells
    dimension: Dimension

    @property
    def log_mass(self) -> float:
        """Return d ln(K/m): a local uniform kernel of m^d of the K^d cells."""
        k, m, d = self.cells, self.kernel_cells, self.dimension
        require(m <= k, "kernel_cells", m, f"at most cells = {k}", "use fewer")
        return upper(lambda: ball(Fraction(k, m)).log() * d)
