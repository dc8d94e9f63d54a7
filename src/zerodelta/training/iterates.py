"""The public schedule of a descent, and its iterates as a function of noisy sums (theory C1).

The weight of each gradient in what is published tells where noise hurts, and how much of it will
be left (evidence 5). Everything about the schedule is a function of public numbers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational, decimal_up
from zerodelta.spaces import Ball
from zerodelta.value import value

Variances: TypeAlias = tuple[tuple[int, Fraction], ...]
"""Numbers of consecutive rounds, and the variance of the noise in each of them."""

_GROUPS = 10
"""Rounds of a group have the same noise, so that a certificate has few steps."""


@value
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
            share = as_rational(getattr(self, name), name)
            require(
                0 <= share <= 1 and not (name == "momentum" and share == 1),
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


@final
class Iterates:
    """The deterministic half of a descent: projected steps, as a function of noisy sums only.

    From the center of the ball, with momentum and an average.

    `unit` turns an integer gradient sum into a mean gradient.
    """

    def __init__(self, *, ball: Ball, sizes: StepSizes, unit: float) -> None:
        self._ball, self._unit = ball, unit
        self._lengths = sizes.sizes()
        self._keep = float(as_rational(sizes.momentum, "momentum"))
        self._averaged_from = sizes.count - sizes.averaged
        self._taken = 0
        self.theta = ball.middle()
        """Where the next gradient is taken."""
        self._velocity = np.zeros(ball.dimension)
        self._mean, self._counted = ball.middle(), 0

    def step(self, noisy: IntegerArray) -> None:
        """Move by one noisy gradient sum."""
        with np.errstate(all="ignore"):  # whatever overflows is projected to the center
            gradient = noisy.astype(np.float64) * self._unit
            self._velocity = self._keep * self._velocity + (1 - self._keep) * gradient
            moved = self.theta - self._lengths[self._taken] * self._velocity
        self.theta = self._ball.project(moved)
        if self._taken >= self._averaged_from:
            self._counted += 1
            self._mean = self._mean + (self.theta - self._mean) / self._counted
        self._taken += 1

    def point(self) -> Floats:
        """Return the mean of the last iterates (the last one, if none is to be averaged yet)."""
        return self._mean if self._counted else self.theta

    def base(self, spacing: Fraction) -> npt.NDArray[Any]:
        """Return what the last step starts from, in whole lattice units around the center.

        Its norm is at most ⌊radius/spacing⌋, verified in integers: S2's radius relies on it.
        """
        most = self._ball.radius // spacing
        with np.errstate(all="ignore"):
            start = self.point() - self._lengths[-1] * self._keep * self._velocity
            offset = self._ball.centered(start) / float(spacing)
        rounded = np.array([_whole(value) for value in offset], dtype=np.object_)
        square = int((rounded * rounded).sum())
        if square <= most * most:
            return rounded
        length = math.isqrt(square) + 1
        # objects from the start: NumPy makes floats of integers on both sides of 2^63
        return np.array([_toward_zero(int(k) * most, length) for k in rounded], dtype=np.object_)


def _whole(value: float) -> int:
    return round(value) if math.isfinite(value) else 0


def _toward_zero(number: int, divisor: int) -> int:
    """Return number/divisor without its fraction; |k|·most/⌈‖k‖⌉ has norm at most `most`."""
    return number // divisor if number >= 0 else -(-number // divisor)
