"""Exact output laws of the mechanisms, for enumeration (theory R(vi), C10.1)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias, TypeVar

from flint import arb, ctx

from zerodelta.audit.exponentials import ExpRational
from zerodelta.exact.arb import ball
from zerodelta.exact.rational import Rational, as_positive

_BITS = 512
_HALF = Fraction(1, 2)
_Score: TypeAlias = int | Fraction
_P = TypeVar("_P", ExpRational, arb)


def discrete_laplace_pmf(k: int, *, scale: Rational) -> ExpRational:
    """Return P(k) = q^|k| (1-q)/(1+q), q = e^(-1/scale), of the two-sided geometric law, exactly.

    >>> one, none = (discrete_laplace_pmf(k, scale=2) for k in (1, 0))
    >>> one / none == ExpRational.exp("-1/2")
    True
    """
    exact = as_positive(scale, "scale")
    q, power = ExpRational.exp(-1 / exact), ExpRational.exp(-abs(k) / exact)
    return power * (1 - q) / (1 + q)  # type: ignore[no-any-return]


def discrete_laplace_tail(k: int, *, scale: Rational) -> ExpRational:
    """Return the probability of k or more: q^k/(1+q) for k >= 1, exactly."""
    if k < 1:
        return 1 - discrete_laplace_tail(1 - k, scale=scale)  # type: ignore[no-any-return]
    exact = as_positive(scale, "scale")
    return ExpRational.exp(-k / exact) / (1 + ExpRational.exp(-1 / exact))  # type: ignore[no-any-return]


def rounded_laplace_pmf(k: int, *, scale: Rational) -> ExpRational:
    """Return P(round(Laplace(scale)) = k), exactly.

    >>> rounded_laplace_pmf(0, scale=1) == 1 - ExpRational.exp("-1/2")
    True
    """
    if k == 0:
        return 1 - 2 * rounded_laplace_tail(1, scale=scale)  # type: ignore[no-any-return]
    tail = rounded_laplace_tail(abs(k), scale=scale)
    return tail - rounded_laplace_tail(abs(k) + 1, scale=scale)  # type: ignore[no-any-return]


def rounded_laplace_tail(k: int, *, scale: Rational) -> ExpRational:
    """Return P(round(Laplace(scale)) >= k), exactly."""
    if k < 1:
        return 1 - rounded_laplace_tail(1 - k, scale=scale)  # type: ignore[no-any-return]
    exact = as_positive(scale, "scale")
    return ExpRational.exp((_HALF - k) / exact) * _HALF  # type: ignore[no-any-return]


def rounded_gaussian_pmf(k: int, *, variance: Rational) -> arb:
    """Return a ball around P(round(N(0, variance)) = k), accurate to about 500 bits.

    >>> round(float(rounded_gaussian_pmf(0, variance=1)), 12)
    0.382924922548
    """
    tail = rounded_gaussian_tail
    with ctx.workprec(_BITS):
        if k == 0:
            return 1 - 2 * tail(1, variance=variance)
        return tail(abs(k), variance=variance) - tail(abs(k) + 1, variance=variance)


def rounded_gaussian_tail(k: int, *, variance: Rational) -> arb:
    """Return a ball around P(round(N(0, variance)) >= k)."""
    exact = as_positive(variance, "variance")
    with ctx.workprec(_BITS):
        if k < 1:
            return 1 - rounded_gaussian_tail(1 - k, variance=exact)
        return (ball(k - _HALF) / (2 * ball(exact)).sqrt()).erfc() / 2


def shifted(
    pmf: Callable[[int], _P], tail: Callable[[int], _P], *, center: int, low: int, high: int
) -> dict[float, _P]:
    """Return the law of center + Z on low..high; the keys -inf and inf hold all that lies beyond.

    `tail(k)` is P(Z >= k) of a Z symmetric about 0. Joining the outcomes beyond an end is
    post-processing: a violation found is real. For Laplace noise nothing is lost either, once low
    and high enclose all centers: beyond them every ratio is the same, so the joint cell shows it.

    >>> from functools import partial
    >>> noise = partial(rounded_laplace_pmf, scale=2), partial(rounded_laplace_tail, scale=2)
    >>> law = shifted(*noise, center=1, low=0, high=2)
    >>> list(law), sum(law.values()) == 1
    ([-inf, 0, 1, 2, inf], True)
    """
    law: dict[float, _P] = {-math.inf: tail(center - low + 1)}
    for outcome in range(low, high + 1):
        law[outcome] = pmf(outcome - center)
    law[math.inf] = tail(high + 1 - center)
    return law


def exponential_mechanism_law(
    scores: Sequence[_Score], *, scale: Rational
) -> dict[int, ExpRational]:
    """Return P(i) = e^(score_i / scale) / sum_j e^(score_j / scale), exactly.

    >>> law = exponential_mechanism_law([0, 1], scale=1)
    >>> law[1] / law[0] == ExpRational.exp(1)
    True
    """
    weights = _weights(scores, scale)
    total = sum(weights, ExpRational.of(0))
    return {i: weight / total for i, weight in enumerate(weights)}


def permute_and_flip_law(scores: Sequence[_Score], *, scale: Rational) -> dict[int, ExpRational]:
    """Return P(i) = x_i ∫₀¹ ∏_{j≠i} (1 - x_j s) ds, x_j = e^((score_j - best) / scale), exactly.

    >>> law = permute_and_flip_law([0, 0], scale=1)
    >>> law[0] == law[1] == Fraction(1, 2)
    True
    """
    weights = _weights(scores, scale)
    law: dict[int, ExpRational] = {}
    for i, own in enumerate(weights):
        polynomial = [ExpRational.of(1)]
        for j, other in enumerate(weights):
            if j != i:
                shifted_up = [ExpRational.of(0), *(-other * c for c in polynomial)]
                pairs = itertools.zip_longest(polynomial, shifted_up, fillvalue=ExpRational.of(0))
                polynomial = [a + b for a, b in pairs]
        integral = sum(
            (c * Fraction(1, power + 1) for power, c in enumerate(polynomial)), ExpRational.of(0)
        )
        law[i] = own * integral
    return law


def _weights(scores: Sequence[_Score], scale: Rational) -> list[ExpRational]:
    exact, best = as_positive(scale, "scale"), max(scores)
    return [ExpRational.exp((score - best) / exact) for score in scores]
