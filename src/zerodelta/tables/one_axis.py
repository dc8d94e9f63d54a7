"""The fit to one noisy table, without a solver: cells only meet in their sum.

With one table all coefficients are those of its cells y, in other coordinates, and the variance V
is the same for all. So exponents e, adding up to 0, minimize ln Σexp(e) - e·y + κV/2 Σe², which is
p + κV·e = y + a constant, p ∝ exp(e): each cell has p = a·ω(y/a + s), a = κV, ω + ln ω = x, and s
is where the cells add up to 1. Equal cells are counted together: noisy counts are often the same.
"""

from __future__ import annotations

import math
from typing import final

import numpy as np
from scipy.special import wrightomega

from zerodelta.tables.bases import Floats
from zerodelta.tables.estimate import Estimate

__all__ = ["OneAxis", "one_axis"]

_MOST_STEPS = 200


def one_axis(estimate: Estimate) -> OneAxis | None:
    """Return the problem if all coefficients are those of one axis, with one variance."""
    if tuple(estimate.values) != ((0,),):
        return None
    variances = estimate.variances[0,]
    if variances.min() != variances.max():
        return None
    return OneAxis(estimate)


@final
class OneAxis:
    """Distributions over the different values of cells; other columns are uniform."""

    def __init__(self, estimate: Estimate) -> None:
        axes = estimate.axes
        self._others = axes.domain.cells // axes.functions[0].size
        self._cells = estimate.table(axes.columns[0]).reshape(-1)
        self._variance = max(float(estimate.variances[0,].flat[0]), 1e-30)
        self._values, self._times = np.unique(self._cells, return_counts=True)
        self.start = np.full(len(self._values), 1 / len(self._cells))

    def distribution(self, point: Floats) -> Floats:
        """Return the chances of all cells of all columns, those of the axis first."""
        chances = point[np.searchsorted(self._values, self._cells)]
        return np.repeat(chances / self._others, self._others)

    def distance(self, point: Floats) -> float:
        """Return the mean squared distance of coefficients, in units of the variance."""
        squares = float((self._times * (point - self._values) ** 2).sum())
        return squares / self._variance / (len(self._cells) - 1)

    def solved(self, start: Floats, penalty: float) -> Floats:
        """Return the minimizer, whatever the start: Newton's method from above, so monotone."""
        scale = penalty * self._variance
        # the largest cell alone is 1 there; the sum is a convex function of the shift, and rises
        shift = (1 - float(self._values[-1])) / scale - math.log(scale)
        for _ in range(_MOST_STEPS):
            omega = wrightomega(self._values / scale + shift)
            masses = self._times * omega
            excess = float(masses.sum()) - 1 / scale
            lower = shift - excess / float((masses / (1 + omega)).sum())
            if not lower < shift:
                break
            shift = lower
        return np.asarray(omega / float(masses.sum()))
