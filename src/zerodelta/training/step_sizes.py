"""The public schedule of a descent: how long each step is, and how much it counts in the end.

Everything here is a function of public numbers. The weight of each gradient in what is published
tells where noise hurts, and how much of it will be left (evidence 5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

import numpy as np

from zerodelta.errors import ParameterError
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational, decimal_up
from zerodelta.training.examples import Floats

__all__ = ["StepSizes", "Variances"]

Variances: TypeAlias = tuple[tuple[int, Fraction], ...]
"""Numbers of consecutive rounds, and the variance of the noise in each of them."""

_GROUPS = 10
"""Rounds of a group have the same noise, so that a certificate has few steps."""


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class StepSizes:
    """`count` steps that shrink linearly from `first`, with momentum; the last ones are averaged.

    A velocity v <- m·v + (1-m)·g moves the parameters by -size·v, so momentum m changes the path
    and not its length. The published point is the mean of the last `average` of the iterates.

    >>> StepSizes(count=4, first=2).sizes()
    array([2. , 1.5, 1. , 0.5])
    >>> StepSizes(count=4, first=2, average="1/2").weights()
    array([2.  , 1.5 , 1.  , 0.25])
    """

    count: int
    first: Rational
    momentum: Rational = 0
    average: Rational = Fraction(1, 5)

    def __post_init__(self) -> None:
        as_count(self.count, "steps", minimum=1)
        as_positive(self.first, "step")
        for name in ("momentum", "average"):
            if not 0 <= as_rational(getattr(self, name), name) <= 1 or (
                name == "momentum" and as_rational(self.momentum, name) == 1
            ):
                raise ParameterError(
                    name,
                    getattr(self, name),
                    expected="a share between 0 and 1 (momentum below 1)",
                    remedy="pass momentum=0.9 or average=0.2, say",
                )

    @property
    def averaged(self) -> int:
        """How many of the last iterates are averaged: at least one."""
        return max(1, math.ceil(self.count * as_rational(self.average, "average")))

    def sizes(self) -> Floats:
        """Return the length of each step, for a gradient that is a mean over rows."""
        first = float(as_rational(self.first, "step"))
        left: Floats = np.arange(self.count, 0, -1) / self.count
        return first * left

    def weights(self, *, unfinished: bool = False) -> Floats:
        """Return by how much each gradient moves the published point if nothing is projected.

        `unfinished`: the point after all steps but the last, without the last gradient.
        """
        keep = float(as_rational(self.momentum, "momentum"))
        last = self.count - unfinished
        averaged = max(1, self.averaged - unfinished)
        later = np.minimum(last - np.arange(last), averaged) / averaged  # iterates that saw step s
        result, carried = np.zeros(last), 0.0
        reach = self.sizes()[:last] * later
        for s in range(last - 1, -1, -1):
            carried = reach[s] + keep * carried
            result[s] = (1 - keep) * carried
        return result

    def variances(self, scale: Fraction, *, unfinished: bool = False) -> Variances:
        """Return (count, variance) of groups of consecutive rounds; `scale` is Δ²/μ², of them all.

        Rounds that count more in the end get less noise: for a total of μ² (Lemma R2) the variance
        is the best one that is constant within each group, √(n_g/q_g) Σ_h √(n_h q_h), with n the
        number of rounds and q the sum of their squared weights; rounded up to seven digits.
        """
        groups = self._groups(unfinished)
        total = float(scale) * sum(math.sqrt(n * q) for n, q in groups)
        return tuple((n, decimal_up(math.sqrt(n / q) * total)) for n, q in groups)

    def spread(self, *, unfinished: bool = False) -> float:
        """Return the noise of the published point, in units of Δ/μ a coordinate.

        This is the sensitivity that a single release of the point would have.
        """
        return sum(math.sqrt(n * q) for n, q in self._groups(unfinished))

    def _groups(self, unfinished: bool) -> list[tuple[int, float]]:
        weights = self.weights(unfinished=unfinished)
        parts = np.array_split(weights, min(_GROUPS, len(weights)))
        return [(len(part), float((part * part).sum())) for part in parts]
