"""Transport: small displacements cost ε (theory N, B3/B4(i), A1, A4).

`numerical_error_epsilon` prices a value that is only computed up to r; the other functions are the
paper's route from total variation to W∞ with the constants of Theorem W.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated

from flint import arb

from zerodelta.errors import ParameterError, require
from zerodelta.exact.arb import ball, lower, upper
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.composition import Composed, simplest
from zerodelta.privacy.domains import Dimension, NotNegative, Positive, Weight, one_of
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.privacy.theorems.theorem import Channel, smallest_log_delta
from zerodelta.value import value


def numerical_error_epsilon(*, error: Rational, scale: Rational) -> Fraction:
    """Return 2r/b: what an error of at most r costs under K-norm noise of scale b (Theorem N)."""
    r = as_rational(error, "error")
    require(r >= 0, "error", error, "a number >= 0", "pass the sure bound on the error")
    return 2 * r / as_positive(scale, "scale")


def log_transport_radius(
    *, dimension: int, diameter: Rational, weight: Rational, epsilon: Rational, log_delta: float
) -> float:
    """Return ln Δ_q rounded up, Δ_q = D_q · min(1, ((1-w)δ/((1+e^ε)w))^(1/d)) (Theorem W).

    D_q is the *diameter* of the l_q ball that is mixed in; the paper's proof needs twice as much.
    """
    d, w = as_count(dimension, "dimension", minimum=1), as_weight(weight)
    width, t = as_positive(diameter, "diameter"), as_rational(epsilon, "epsilon")
    require(t >= 0, "epsilon", epsilon, "at least 0", "pass 0 or more")

    def radius(shrink: bool) -> float:
        def log() -> arb:
            tv = ball((1 - w) / w).log() - (1 + ball(t).exp()).log() + ball(log_delta)
            return ball(width).log() + (tv / d if shrink else 0)

        return upper(log)

    return min(radius(True), radius(False))


def product_laplace_radius(*, dimension: int, norm: float | Fraction, log_radius: float) -> float:
    """Return ln Δ_1 = ln Δ_q + (1 - 1/q) ln d rounded up: l_q to l_1, for product Laplace noise."""
    d = as_count(dimension, "dimension", minimum=1)
    if not isinstance(norm, (int, float, Fraction)) or not norm >= 1:  # also NaN
        raise ParameterError(
            "norm", norm, expected="a number of at least 1, or math.inf", remedy="pass norm=2"
        )
    power = 1 - (Fraction(0) if norm == math.inf else 1 / Fraction(norm))
    return upper(lambda: ball(log_radius) + ball(d).log() * ball(power))


@value
class NumericalError(Channel):
    """A value that is only computed up to an error, published with K-norm noise."""

    label = "numerical-error"
    section = "N"
    sentence = (
        "the value is computed with error at most {error} and published with K-norm noise of "
        "scale {scale}."
    )

    error: NotNegative
    scale: Positive

    def proves(self, base: Composed, epsilon: Fraction) -> bool:
        """Tell whether a pure ideal mechanism and 2r/b cost at most ε together."""
        ideal = simplest(base)
        extra = numerical_error_epsilon(error=self.error, scale=self.scale)
        return type(ideal) is PureDP and ideal.exact_epsilon + extra <= epsilon


@value
class WassersteinTransport(Channel):
    """The paper's Algorithms 1 and 2: uniform mixing, then Laplace noise."""

    label = "wasserstein-transport"
    section = "B3"
    sentence = (
        "Algorithm 1: mixed with a uniform point with probability {weight}, then Laplace noise of "
        "scale {scale}."
    )

    norm: Annotated[int | str, one_of(1, 2, "inf")]
    dimension: Dimension
    diameter: Positive
    scale: Positive
    weight: Weight
    base_epsilon: NotNegative

    def proves(self, base: Composed, epsilon: Fraction) -> bool:
        """Tell whether δ at the base ε moves little enough: noise of scale b costs 2Δ_1/b more."""
        if self.base_epsilon > epsilon:
            return False
        log_radius = log_transport_radius(
            dimension=self.dimension,
            diameter=self.diameter,
            weight=self.weight,
            epsilon=self.base_epsilon,
            log_delta=smallest_log_delta(base, self.base_epsilon),
        )
        norm = math.inf if self.norm == "inf" else float(self.norm)
        log_one = product_laplace_radius(dimension=self.dimension, norm=norm, log_radius=log_radius)
        rest = epsilon - self.base_epsilon
        return lower(lambda: ball(rest) - 2 * ball(log_one).exp() / ball(self.scale)) >= 0
