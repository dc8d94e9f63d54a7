"""A distribution over all cells that agrees with noisy coefficients: post-processing.

Of all distributions that fit, the one of largest entropy: p ∝ exp(Σ θ·coefficient). θ minimizes
ln Z(θ) - θ·y + κ/2 Σ Vθ², the dual of "distance in units of the noise plus κ times the divergence
from uniform". κ falls until the fit is as close as the noise allows, or is small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from zerodelta.tables.bases import Floats, margin
from zerodelta.tables.domain import Columns, Domain
from zerodelta.tables.estimate import Coefficients, Estimate
from zerodelta.tables.lbfgs import minimum
from zerodelta.tables.one_axis import OneAxis, one_axis

__all__ = ["Fit", "answer", "fit", "simplex"]

_PENALTIES, _FEW_PENALTIES = (1000.0, 300.0, 100.0, 30.0, 10.0), (100.0, 30.0)
_MANY = 1 << 20
"""Beyond so many cells one evaluation takes a second."""
_CLOSE = 0.05
"""Mean squared distance in units of the noise's variance: the truth is at 1, the noise at 0."""
_FAR = 2.0
"""Beyond this the solver has not arrived, and the noisy coefficients are better."""


@final
@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Fit:
    """A distribution over all cells in the order of the domain."""

    domain: Domain
    weights: Floats
    close: bool

    def table(self, columns: Columns) -> Floats:
        """Return the table of these columns, adding up to 1."""
        return margin(self.weights.reshape(self.domain.sizes), columns)


def fit(estimate: Estimate, *, penalties: Sequence[float] | None = None) -> Fit:
    """Return the fitted distribution; never raises, whatever the noise was."""
    domain = estimate.axes.domain
    problem: OneAxis | _Problem = one_axis(estimate) or _Problem(estimate)
    if penalties is None:
        slow = domain.cells > _MANY and isinstance(problem, _Problem)
        penalties = _FEW_PENALTIES if slow else _PENALTIES
    point, distance = problem.start, math.inf
    for penalty in penalties:
        found = problem.solved(point, penalty)
        reached = problem.distance(found)
        if not reached < distance:  # not arrived at a farther point: stay
            break
        point, distance = found, reached
        if distance < _CLOSE:
            break
    weights = estimate.axes.in_order(problem.distribution(point))
    return Fit(domain=domain, weights=weights, close=distance < _FAR)


def answer(table: Columns, estimate: Estimate, fitted: Fit | None) -> Floats:
    """Return the table of a good fit, else the noisy one, brought back to a distribution.

    A table of which not all was measured can only be fitted.
    """
    if fitted is not None and (fitted.close or not estimate.covers(table)):
        return fitted.table(table)
    return simplex(estimate.table(table))


def simplex(values: Floats) -> Floats:
    """Return the nearest non-negative numbers that add up to 1.

    >>> simplex(np.array([0.9, 0.3, -0.2]))
    array([0.8, 0.2, 0. ])
    """
    lower = values - values.max()  # the same for all cells: no difference, and no overflow
    rising, times = np.unique(lower, return_counts=True)  # noisy counts are often the same
    falling, times = rising[::-1], times[::-1]
    shifts = (np.cumsum(falling * times) - 1) / np.cumsum(times)
    last = int(np.flatnonzero(falling > shifts)[-1])
    lower -= shifts[last]
    nearest: Floats = np.maximum(lower, 0.0, out=lower)
    return nearest


@final
class _Problem:
    """The measured coefficients in the full orthonormal transform of the domain."""

    def __init__(self, estimate: Estimate) -> None:
        axes, parts = estimate.axes, tuple(estimate.values)
        self._cells = axes.domain.cells
        self._transform = axes.transform_of(parts)
        # <p, Π b over U, 1 elsewhere> is the orthonormal coefficient times √(N/N_U)
        self._factor = np.concatenate(
            [
                np.full(
                    estimate.values[part].size, math.sqrt(self._cells / math.prod(axes.shape(part)))
                )
                for part in parts
            ]
        )
        self._values = _flat(estimate.values, parts)
        self._variances = np.maximum(_flat(estimate.variances, parts), 1e-30)
        self.start = np.zeros(len(self._values))

    def distribution(self, theta: Floats) -> Floats:
        """Return p ∝ exp(Σ θ φ)."""
        return self._exponential(theta)[0]

    def distance(self, theta: Floats) -> float:
        """Return the mean squared distance of its coefficients, in units of the variance."""
        gap = self._read(self.distribution(theta)) - self._values
        return float(np.mean(gap**2 / self._variances))

    def solved(self, start: Floats, penalty: float) -> Floats:
        """Return the minimizer, in coordinates in which penalty and entropy are nearly round."""
        # at the uniform distribution ln Z has the curvature E φ² = 1/N_U
        scale = np.sqrt(penalty * self._variances + self._factor**2 / self._cells)
        most = 100 if self._cells <= 1 << 16 else 40 if self._cells <= _MANY else 20

        def objective(x: Floats) -> tuple[float, Floats]:
            value, slope = self._dual(x / scale, penalty)
            return value, slope / scale

        return minimum(objective, start * scale, most=most, tolerance=1e-10) / scale

    def _dual(self, theta: Floats, penalty: float) -> tuple[float, Floats]:
        """Return the objective and its gradient."""
        weights, log_mean = self._exponential(theta)
        pull = penalty * self._variances * theta
        value = log_mean - float(theta @ self._values) + float(theta @ pull) / 2
        return value, self._read(weights) - self._values + pull

    def _exponential(self, theta: Floats) -> tuple[Floats, float]:
        """Return p ∝ exp(Σ θ φ), and ln of the mean of exp."""
        exponent = self._transform.spread(theta * self._factor)
        most = float(exponent.max())
        exponent -= most
        np.exp(exponent, out=exponent)
        total = float(exponent.sum())
        exponent /= total
        return exponent, most + math.log(total / self._cells)

    def _read(self, weights: Floats) -> Floats:
        """Return the coefficients of a distribution."""
        read: Floats = self._transform.read(weights) * self._factor
        return read


def _flat(values: Coefficients, parts: Sequence[Columns]) -> Floats:
    return np.concatenate([values[part].reshape(-1) for part in parts])
