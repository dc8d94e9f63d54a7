"""Transport: small displacements cost ε (theory N, B3/B4(i), A1, A4).

`numerical_error_epsilon` prices a value that is only computed up to r; the other functions are the
paper's route from total variation to W∞ with the constants of Theorem W.
"""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb

from zerodelta.errors import ParameterError
from zerodelta.exact.arb import ball, upper
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational
from zerodelta.privacy.theorems.mixing import as_weight

__all__ = ["log_transport_radius", "numerical_error_epsilon", "product_laplace_radius"]


def numerical_error_epsilon(*, error: Rational, scale: Rational) -> Fraction:
    """Return 2r/b: what an error of at most r costs under K-norm noise of scale b (Theorem N)."""
    r = as_rational(error, "error")
    if r < 0:
        raise ParameterError(
            "error", error, expected="a number >= 0", remedy="pass the sure bound on the error"
        )
    return 2 * r / as_positive(scale, "scale")


def log_transport_radius(
    *, dimension: int, diameter: Rational, weight: Rational, epsilon: Rational, log_delta: float
) -> float:
    """Return ln Δ_q rounded up, Δ_q = D_q · min(1, ((1-w)δ/((1+e^ε)w))^(1/d)) (Theorem W).

    D_q is the *diameter* of the l_q ball that is mixed in; the paper's proof needs twice as much.
    """
    d, w = as_count(dimension, "dimension", minimum=1), as_weight(weight)
    width, t = as_positive(diameter, "diameter"), as_rational(epsilon, "epsilon")
    if t < 0:
        raise ParameterError("epsilon", epsilon, expected="at least 0", remedy="pass 0 or more")

    def radius(shrink: bool) -> float:
        def log() -> arb:
            tv = ball((1 - w) / w).log() - (1 + ball(t).exp()).log() + ball(log_delta)
            return ball(width).log() + (tv / d if shrink else 0)

        return upper(log)

    return min(radius(True), radius(False))


def product_laplace_radius(*, dimension: int, norm: float, log_radius: float) -> float:
    """Return ln Δ_1 = ln Δ_q + (1 - 1/q) ln d rounded up: l_q to l_1, for product Laplace noise."""
    d = as_count(dimension, "dimension", minimum=1)
    if not isinstance(norm, (int, float)) or not norm >= 1:  # also NaN
        raise ParameterError(
            "norm", norm, expected="a number of at least 1, or math.inf", remedy="pass norm=2"
        )
    power = 1 - (Fraction(0) if norm == math.inf else 1 / Fraction(norm))
    return upper(lambda: ball(log_radius) + ball(d).log() * ball(power))
