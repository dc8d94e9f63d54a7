"""The Laplace noise of a test: its tail, and the smallest threshold that a condition allows.

A test adds Laplace noise Z of rate r (scale 1/r) to an integer and passes above a threshold τ. Its
noise is "real", "rounded" to the nearest integer, or "discrete" Laplace; the three have different
tails, P(Z > τ) = e^(-rτ)/2, e^(-r(τ+1/2))/2 and e^(-r(τ+1))/(1+e^-r), and a threshold proved for
one under-protects another (rows of C3's table must not be mixed).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from flint import arb

from zerodelta.errors import GuaranteeError, require
from zerodelta.exact.arb import ball, lower, upper
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.parameters import as_at_least_zero

_KINDS = ("real", "rounded", "discrete")


def log_pass_probability(*, rate: Rational, threshold: Rational, noise: str) -> float:
    """Return ln P(Z > τ) rounded up, Z Laplace noise of the rate, τ >= 0.

    >>> round(log_pass_probability(rate=1, threshold=10, noise="real"), 6)
    -10.693147
    """
    return upper(log_tail(as_positive(rate, "rate"), as_threshold(threshold, noise), noise))


def log_tail(rate: Fraction, threshold: Fraction, noise: str) -> Callable[[], arb]:
    """Return a function that encloses ln P(Z > τ)."""
    if noise == "real":
        return lambda: ball(-rate * threshold) - ball(2).log()
    if noise == "rounded":
        return lambda: ball(-rate * (threshold + Fraction(1, 2))) - ball(2).log()
    return lambda: ball(-rate * (threshold + 1)) - ball(-rate).exp().log1p()


def spread_mass(
    points: int, dimension: int, epsilon: Rational, sensitivity: Rational, noise: str
) -> Callable[[], arb]:
    """Return a function that encloses N·pm, pm = P(release noise = 0)."""
    _check_noise(noise)
    size, d = as_count(points, "points", minimum=1), as_count(dimension, "dimension", minimum=1)
    half = as_positive(epsilon, "epsilon") / (2 * as_positive(sensitivity, "sensitivity"))

    def enclosed() -> arb:
        peak = ball(half).tanh() if noise == "discrete" else -(ball(-half).expm1())
        return size * peak**d

    return enclosed


def granted(epsilon: Fraction, theorem: str, slack: Callable[[], arb]) -> Fraction:
    """Return ε if the slack of the theorem's condition certainly is not negative, else refuse."""
    if lower(slack) >= 0:
        return epsilon
    raise GuaranteeError(
        f"the threshold is too low for theorem {theorem} at ε = {epsilon}: raise it."
    )


def smallest_threshold(
    rate: Fraction, noise: str, log_odds: Callable[[], arb], check: Callable[[Fraction], Any]
) -> Fraction:
    """Return the smallest τ >= 0 with ln P(Z > τ) <= -log_odds, rounded up until `check` agrees."""

    def needed() -> arb:
        wanted = log_odds()
        if noise == "discrete":
            return (wanted - ball(-rate).exp().log1p()) / ball(rate) - 1
        gap = (wanted - ball(2).log()) / ball(rate)
        return gap - ball(Fraction(1, 2)) if noise == "rounded" else gap

    start = max(0.0, upper(needed))
    if math.isinf(start):
        raise GuaranteeError("ε is too small for any threshold: raise it, or its share.")
    whole = noise != "real"
    tau = Fraction(math.ceil(start)) if whole else Fraction(start)
    while True:
        try:
            check(tau)
        except GuaranteeError:
            tau = tau + 1 if whole else Fraction(math.nextafter(float(tau), math.inf))
        else:
            return tau


def _check_noise(noise: str) -> None:
    require(noise in _KINDS, "noise", noise, f"one of {', '.join(_KINDS)}", 'pass noise="real"')


def as_threshold(threshold: Rational, noise: str) -> Fraction:
    """Return the threshold, at least 0 and an integer for integer noise."""
    _check_noise(noise)
    exact = as_at_least_zero(threshold, "threshold")
    require(
        not (noise != "real" and exact.denominator != 1),
        "threshold",
        threshold,
        f"an integer for {noise} noise",
        "round it up to an integer",
    )
    return exact
