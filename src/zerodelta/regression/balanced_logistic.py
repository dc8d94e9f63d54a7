"""The balanced logistic loss: a slope of at most 1, and still consistent (theory C9).

With u(m) = ((m - m₀) + √((m - m₀)² + 4a²))/2 the slope is -e^-u and the curvature
e^-u u²/(u² + a²). At m₀ = 0 the slopes at m and -m have the ratio e^-m, so that the minimizer
estimates the logit. Rows carry the sign of their label.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from flint import arb

from zerodelta.exact.arb import ball
from zerodelta.exact.float_balls import FloatBalls
from zerodelta.regression.integer_rows import Floats
from zerodelta.regression.loss import Loss, exp_of_negative

__all__ = ["BalancedLogistic"]


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class BalancedLogistic(Loss):
    """The loss of roundness a > 0 and shift m₀ >= 0, scaled to slopes of at most 1.

    Both are dyadic with at most 20 bits, so that a², 4a² and m₀ are floats.
    """

    roundness: Fraction
    shift: Fraction

    outputs = 1
    only_differences = False
    curvature_bound = 1.0

    def slope(self, margins: Floats, where: slice) -> Floats:
        """Return -e^-u."""
        slopes = np.exp(self._negative_level(margins))
        return np.negative(slopes, out=slopes)

    def slope_balls(self, margins: FloatBalls, where: slice) -> FloatBalls:
        """Return -e^-u.

        With s the sign of the middle of x = m - m₀ and w = s·x, the number (w + √(w² + 4a²))/2 is
        u if s = 1 and a²/u if s = -1, whatever the sign of x itself; nothing cancels.
        """
        square = float(self.roundness**2)
        zero = np.zeros(1)
        shifted = margins + FloatBalls(zero - float(self.shift), zero)
        size = FloatBalls(np.abs(shifted.middle), shifted.radius)
        root = (size * size + FloatBalls(zero + 4 * square, zero)).sqrt()
        double = size + root
        far = FloatBalls(double.middle * 0.5, double.radius * 0.5)
        near = FloatBalls(zero + square, zero) / far
        right = shifted.middle >= 0
        level = FloatBalls(
            np.where(right, far.middle, near.middle), np.where(right, far.radius, near.radius)
        )
        return -exp_of_negative(-level)

    def slope_arb(self, margins: list[arb], row: int) -> list[arb]:
        """Return -e^-u."""
        x = margins[0] - ball(self.shift)
        root = (x * x + 4 * ball(self.roundness) ** 2).sqrt()
        return [-(-(x + root) / 2).exp()]

    def curvature(self, margins: Floats, where: slice) -> Floats:
        """Return e^-u u²/(u² + a²)."""
        level = self._negative_level(margins)
        squared = level * level
        curved = np.exp(level, out=level)
        curved *= squared
        squared += float(self.roundness**2)
        curved /= squared
        return curved

    def bend(self, curvature: Floats, change: Floats) -> Floats:
        """Multiply row by row."""
        return curvature * change

    def pair_weights(self, curvature: Floats, first: int, second: int) -> Floats:
        """Return the curvature: there is one output."""
        weights: Floats = curvature[0]
        return weights

    def thinned(self, every: int) -> BalancedLogistic:
        """Return itself: labels are in the rows."""
        return self

    def _negative_level(self, margins: Floats) -> Floats:
        """Return -u; what cancels on the left is an absolute error, as small as that of m - m₀."""
        shifted = margins - float(self.shift)
        level = shifted * shifted
        level += 4 * float(self.roundness**2)
        np.sqrt(level, out=level)
        level += shifted
        level *= -0.5
        return level
