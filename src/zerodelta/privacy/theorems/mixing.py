"""Mixing with a public distribution removes δ (theory B1, B2, R(v), Theorem K, B4).

All these channels output (1-w)·T(y) + w·Q and differ in one number only: an upper bound M on
sup_z T(z|y)/Q(z), the *mass ratio*. With it they are t-DP as soon as

    ln δ(t) + ln M <= ln(w/(1-w)) + ln(e^t - 1).
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from flint import arb

from zerodelta.errors import ParameterError
from zerodelta.exact.arb import ball, lower, upper
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational

__all__ = [
    "as_weight",
    "gaussian_net_mass",
    "grid_mass",
    "kernel_mass",
    "laplace_cube_mass",
    "laplace_net_mass",
    "largest_log_delta",
    "prior_mass",
    "sides_mass",
    "smallest_weight",
    "uniform_mass",
    "window_mass",
]


_LARGEST = 1e300


def as_weight(weight: Rational, name: str = "mixing_weight") -> Fraction:
    """Return a mixing weight as an exact rational strictly between 0 and 1."""
    exact = as_rational(weight, name)
    if not 0 < exact < 1:
        raise ParameterError(
            name,
            weight,
            expected="a number strictly between 0 and 1",
            remedy="pass the probability with which the answer is replaced, such as 0.01",
        )
    return exact


def largest_log_delta(*, epsilon: Rational, weight: Rational, log_mass: float) -> float:
    """Return a float at most ln(w/(1-w)) + ln(e^ε - 1) - ln M: what ln δ(ε) may be (B1).

    >>> round(largest_log_delta(epsilon=1, weight="0.01", log_mass=uniform_mass(16)), 4)
    -6.8264
    """
    t, w = as_positive(epsilon, "epsilon"), as_weight(weight)
    _check_logarithm(log_mass, "log_mass", most=math.inf)
    return lower(lambda: ball(w / (1 - w)).log() + ball(t).expm1().log() - arb(log_mass))


def smallest_weight(*, epsilon: Rational, log_delta: float, log_mass: float) -> Fraction:
    """Return a weight, within one part in 1e9 of the smallest, that meets the condition.

    B1 solved for w/(1-w) = δ(ε) M/(e^ε - 1), rounded up to ten decimal digits; 1 if no weight does.
    """
    t = as_positive(epsilon, "epsilon")
    for value, name in ((log_delta, "log_delta"), (log_mass, "log_mass")):
        _check_logarithm(value, name, most=_LARGEST)
    # The condition is evaluated on floats: pay for their rounding once more.
    margin = 1e-12 + 2.0**-50 * (abs(log_delta) + abs(log_mass))
    log_odds = upper(lambda: arb(log_delta) + arb(log_mass) - ball(t).expm1().log() + arb(margin))
    weight = upper(lambda: 1 / (1 + (-arb(log_odds)).exp()))
    context = decimal.Context(prec=10, rounding=decimal.ROUND_CEILING)
    return Fraction(context.create_decimal_from_float(weight))


def _check_logarithm(value: float, name: str, *, most: float) -> None:
    if not isinstance(value, (int, float)) or not -_LARGEST <= value <= most:  # also NaN
        raise ParameterError(
            name, value, expected="a finite logarithm", remedy="a pure base needs no mixing at all"
        )


def uniform_mass(size: int) -> float:
    """Return ln N rounded up: a point mass against the uniform distribution on N points (B1)."""
    count = as_count(size, "size", minimum=1)
    return upper(lambda: ball(count).log())


def prior_mass(smallest_probability: Rational, *, size: int) -> float:
    """Return ln(1/q_min) rounded up: a point mass against a public prior Q on N points (B1).

    N probabilities of at least q_min add up to 1, so q_min is at most 1/N.
    """
    q = as_positive(smallest_probability, "smallest_probability")
    if q * as_count(size, "size", minimum=1) > 1:
        raise ParameterError(
            "smallest_probability",
            smallest_probability,
            expected="at most 1/size: no distribution on so many points has a larger one",
            remedy="pass the smallest probability of the prior",
        )
    return upper(lambda: -ball(q).log())


def grid_mass(*, cells: int, dimension: int) -> float:
    """Return d ln K rounded up: a point mass against the uniform grid of K^d cells (B2)."""
    count, d = as_count(cells, "cells", minimum=1), as_count(dimension, "dimension", minimum=1)
    return upper(lambda: ball(count).log() * d)


def sides_mass(sides: Iterable[Sequence[int]]) -> float:
    """Return Σ n_j ln K_j rounded up: a grid with K_j cells in each of n_j coordinates (B2).

    >>> sides_mass([(10, 3)]) == grid_mass(cells=10, dimension=3)
    True
    """
    pairs = [
        (as_count(cells, "sides", minimum=1), as_count(times, "sides", minimum=1))
        for cells, times in sides
    ]
    if not pairs:
        raise ParameterError(
            "sides", [], expected="at least one side", remedy="list [cells, how many coordinates]"
        )
    return upper(lambda: sum((ball(cells).log() * times for cells, times in pairs), arb(0)))


def gaussian_net_mass(*, dimension: int, bound: int, variance: Rational) -> float:
    """Return ln(1/q_min) of rounded N(0, τ²I) on the net ‖k‖² <= B, rounded up (R(v)).

    q_min >= (2πτ²)^(-d/2) exp(-(B + d/12)/(2τ²)), by Jensen on each cell.
    """
    d, b = as_count(dimension, "dimension", minimum=1), as_count(bound, "bound")
    tau = as_positive(variance, "variance")
    spread = (b + Fraction(d, 12)) / (2 * tau)
    return upper(lambda: (2 * arb.pi() * ball(tau)).log() * ball(Fraction(d, 2)) + ball(spread))


def laplace_net_mass(*, dimension: int, bound: int, scale: Rational) -> float:
    """Return ln(1/q_min) of rounded product Laplace on the net ‖k‖₁ <= m, rounded up (R(vi)).

    P(0) = 1 - e^(-1/2b) and P(k) = sinh(1/2b) e^(-|k|/b) >= P(0) e^(-|k|/b), so
    q_min >= (1 - e^(-1/2b))^d e^(-m/b).
    """
    d, m = as_count(dimension, "dimension", minimum=1), as_count(bound, "bound")
    b = as_positive(scale, "scale")
    return upper(lambda: ball(m / b) - (-(ball(-1 / (2 * b)).expm1())).log() * d)


def kernel_mass(*, dimension: int, diameter: Rational, scale: Rational) -> float:
    """Return d ln(eR/(d b)) rounded up: Theorem K, K-norm smoothing of a convex body.

    R is the body's diameter in the norm of the noise and b the noise scale, b <= R/d.
    """
    d = as_count(dimension, "dimension", minimum=1)
    r, b = as_positive(diameter, "diameter"), as_positive(scale, "scale")
    if b > r / d:
        raise ParameterError(
            "scale",
            scale,
            expected="at most diameter/dimension (Theorem K)",
            remedy="use a smaller noise scale: mixing alone would already do",
        )
    return upper(lambda: (1 + ball(r / (d * b)).log()) * d)


def laplace_cube_mass(*, dimension: int, side: Rational, scale: Rational) -> float:
    """Return d ln(D/(b(1 - e^(-D/b)))) rounded up: product Laplace on a cube, exact (B4).

    This is Algorithm 1 re-analyzed: no extra ε.
    """
    d = as_count(dimension, "dimension", minimum=1)
    ratio = as_positive(side, "side") / as_positive(scale, "scale")
    return upper(lambda: (ball(ratio) / -(ball(-ratio).expm1())).log() * d)


def window_mass(*, cells: int, window: int, dimension: int) -> float:
    """Return d ln(K/m) rounded up: a uniform window of m^d of the K^d cells (B4 (iii))."""
    k, m = as_count(cells, "cells", minimum=1), as_count(window, "window", minimum=1)
    d = as_count(dimension, "dimension", minimum=1)
    if m > k:
        raise ParameterError(
            "window", window, expected=f"at most cells = {k}", remedy="use a smaller window"
        )
    return upper(lambda: ball(Fraction(k, m)).log() * d)
