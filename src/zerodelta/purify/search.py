"""The least predicted error over mixing weight and resolution, for one family of channels.

Closed forms in floats (B1, B2, and the Gaussian profile's leading term) find the optimum; whatever
they find is then built and certified exactly by `plan`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from zerodelta.purify.families import Family

__all__ = ["Candidate", "Target", "best_candidate"]

_WEIGHTS = [10 ** (-step / 4) for step in range(33)]
"""Fractions of the largest weight that are tried: four a decade, eight decades."""


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A channel of a family, by its weight and its nats, with its predicted error."""

    family: Family
    weight: Fraction
    budget: float
    error: float

    @property
    def name(self) -> str:
        """The family's name."""
        return self.family.name


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What is fixed in advance: ε, the largest weight; a base, a resolution, a sensitivity."""

    epsilon: Fraction
    failure: Fraction
    log_delta: float | None = None
    resolution: float | None = None
    sensitivity: float | None = None

    def nats(self, weight: float) -> float:
        """Return ln(w/(1-w)) + ln(e^ε - 1)."""
        t = float(self.epsilon)
        grown = math.log(math.expm1(t)) if t < 700 else t
        return math.log(weight) - math.log1p(-weight) + grown

    def noise(self, budget: float, weight: float, dimension: int) -> float:
        """Return the l2 norm of the Gaussian noise that a base needs for this many nats."""
        if self.sensitivity is None:
            return 0.0
        t, nats = float(self.epsilon), max(budget - self.nats(weight), 1e-9)
        mu = 2 * t / (math.sqrt(2 * nats + 2 * t) + math.sqrt(2 * nats))
        return self.sensitivity / mu * math.sqrt(dimension)


def best_candidate(family: Family, target: Target) -> Candidate | None:
    """Return the family's best channel, or None if the base cannot reach even the coarsest."""
    if target.log_delta is None and (target.sensitivity is None or family.dimension == 0):
        return _at_largest_weight(family, target)
    options = [
        candidate
        for share in _WEIGHTS
        if (candidate := _at_weight(family, target, _tidy(target.failure, share))) is not None
    ]
    return min(options, key=lambda candidate: candidate.error, default=None)


def _at_largest_weight(family: Family, target: Target) -> Candidate:
    """Without base noise to trade against: the largest weight, and B2's optimal split.

    At the optimum rounding gets d times what mixing gets; a given resolution is kept.
    """
    weight = float(target.failure)
    mixing = weight * family.displacement()
    if target.resolution is not None:
        budget = family.budget_for(target.resolution)
    else:
        budget = _budget_of(family, mixing * max(family.dimension, 1))
    error = family.rounding(budget) + mixing
    return Candidate(family=family, weight=target.failure, budget=budget, error=error)


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
    return Candidate(family=family, weight=exact, budget=budget, error=error)


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


def _tidy(failure: Fraction, share: float) -> Fraction:
    """Return a share of the largest weight, never above it, rounded to three digits to be read."""
    return min(Fraction(f"{float(failure) * share:.3g}"), failure)
