"""The least predicted error over mixing weight and resolution, for one family of channels.

Closed forms in floats (B1, B2, and the Gaussian profile's leading term) find the optimum; whatever
they find is then built and certified exactly.
"""

from __future__ import annotations

import math
from fractions import Fraction

from zerodelta.channels.candidate import Candidate, Target
from zerodelta.channels.channel import Mixing
from zerodelta.channels.family import Family
from zerodelta.privacy.theorems.mixing import largest_log_delta, smallest_weight

__all__ = ["best_candidate"]

_WEIGHTS = [10 ** (-step / 4) for step in range(33)]
"""Fractions of the largest weight that are tried: four a decade, eight decades."""


def best_candidate(family: Family, target: Target) -> Candidate | None:
    """Return the family's best channel, or None if the base cannot reach even the coarsest."""
    if target.log_delta is None and (target.sensitivity is None or family.dimension == 0):
        return _at_largest_weight(family, target)
    if family.dimension == 0 and target.log_delta not in (None, -math.inf):
        return _at_smallest_weight(family, target, target.log_delta)
    options = [
        candidate
        for share in _WEIGHTS
        if (candidate := _at_weight(family, target, _tidy(target.mixing_probability, share)))
        is not None
    ]
    return min(options, key=lambda candidate: candidate.error, default=None)


def _at_largest_weight(family: Family, target: Target) -> Candidate:
    """Without base noise to trade against: the largest weight, and B2's optimal split.

    At the optimum rounding gets d times what mixing gets; a given resolution is kept.
    """
    weight = float(target.mixing_probability)
    mixing = weight * family.displacement()
    if target.resolution is not None:
        budget = family.budget_for(target.resolution)
    else:
        budget = _budget_of(family, mixing * max(family.dimension, 1))
    error = family.rounding(budget) + mixing
    return _candidate(family, target, target.mixing_probability, budget, error)


def _at_smallest_weight(family: Family, target: Target, log_delta: float) -> Candidate | None:
    """On a finite space there is nothing to trade the weight against."""
    mass = family.least_budget()
    if target.nats(float(target.mixing_probability)) - log_delta < mass:
        return None
    smallest = smallest_weight(epsilon=target.epsilon, log_delta=log_delta, log_mass=mass)
    weight = min(target.mixing_probability, smallest)
    return _candidate(family, target, weight, mass, float(weight) * family.displacement())


def _at_weight(family: Family, target: Target, exact: Fraction) -> Candidate | None:
    weight = float(exact)
    mixing = weight * family.displacement()
    least = family.least_budget()
    if target.log_delta is not None:
        budget = target.nats(weight) - target.log_delta
        if target.resolution is not None:
            budget = min(budget, max(least, family.budget_for(target.resolution)))
        if budget < least:
            return None
        error = family.rounding(budget) + mixing
    else:
        budget, error = _balanced(family, target, weight, least)
        error += mixing
    return _candidate(family, target, exact, budget, error)


def _candidate(
    family: Family, target: Target, weight: Fraction, budget: float, error: float
) -> Candidate:
    return Candidate(
        channel=family.channel,
        name=family.name,
        weight=weight,
        budget=budget,
        error=error,
        build=lambda: _built(family, target, weight, budget),
        reservation=family.reservation,
    )


def _built(family: Family, target: Target, weight: Fraction, budget: float) -> Mixing:
    """Build the channel within the certified budget."""
    if target.log_delta is None:
        return family.build(budget, weight)
    # what is certainly left for the mass ratio at this weight
    allowed = largest_log_delta(epsilon=target.epsilon, weight=weight, log_mass=0.0)
    left = math.nextafter(allowed - target.log_delta, -math.inf)
    return family.build(left if target.resolution is None else min(left, budget), weight)


def _balanced(family: Family, target: Target, weight: float, least: float) -> tuple[float, float]:
    """Trade rounding against the base's own noise, which grows with the nats it must hide."""

    def error(budget: float) -> float:
        noise = target.noise(budget, weight, family.dimension)
        return math.hypot(noise, family.rounding(budget))

    if target.resolution is not None:
        budget = max(least, family.budget_for(target.resolution))
        return budget, error(budget)
    low, high = least, least + 40.0 * max(family.dimension, 1)
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(30):
        reach = (high - low) * ratio
        left, right = high - reach, low + reach
        low, high = (low, right) if error(left) < error(right) else (left, high)
    return (low + high) / 2, error((low + high) / 2)


def _budget_of(family: Family, rounding: float) -> float:
    """Return the nats at which the family's rounding error is as given (at least the coarsest)."""
    low = family.least_budget()
    high = low + 40.0 * max(family.dimension, 1)
    if family.rounding(low) <= rounding:
        return low
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if family.rounding(middle) > rounding else (low, middle)
    return high


def _tidy(mixing_probability: Fraction, share: float) -> Fraction:
    """Return a share of the largest weight, never above it, rounded to three digits to be read."""
    return min(Fraction(f"{float(mixing_probability) * share:.3g}"), mixing_probability)
