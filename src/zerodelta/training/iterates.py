"""The deterministic half of a descent: parameters as a function of noisy sums only (theory C1)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.rational import as_rational
from zerodelta.spaces import Ball
from zerodelta.training.examples import Floats
from zerodelta.training.step_sizes import StepSizes

__all__ = ["Walk"]


@final
class Walk:
    """Projected gradient steps from the center of the ball, with momentum and an average.

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
