"""Fit a distribution over all cells to noisy coefficients, and round it to whole rows.

Both are post-processing. The fit has the largest entropy: p ∝ exp(Σ θ·coefficient), where θ
minimizes ln Z(θ) - θ·y + κ/2 Σ Vθ², the dual of "squared distance in units of the noise plus κ
times the divergence from uniform". The penalty κ is lowered until the fit is as close as the noise
allows.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import final

import numpy as np
from scipy.special import wrightomega

from zerodelta.exact.arrays import Floats, Integers
from zerodelta.marginals.bases import MAXIMUM_CATEGORIES, margin, orbits, orthonormal
from zerodelta.marginals.domain import Columns, Domain, TableWorkload
from zerodelta.marginals.strategies import Coefficients, Estimate, column_axes
from zerodelta.value import value

# Penalties and limits were chosen by hand; no script fits them. `bench/tasks_marginals.py` prints
# the errors of tables.
_PENALTIES, _FEW_PENALTIES = (1000.0, 300.0, 100.0, 30.0, 10.0), (100.0, 30.0)
_MANY_CELLS = 1 << 20
"""With more cells than this one evaluation takes a second."""
_CLOSE = 0.05
"""Lower penalties are not tried below this mean squared distance from the noisy coefficients, in
units of the noise's variance. The true table is at about 1, the noisy one at 0."""
_FAR = 2.0
"""Beyond this distance the solver has not converged, and the noisy coefficients are better."""
_NEWTON_STEPS = 200
_MEMORY, _MAXIMUM_MEMORY = 20, 1 << 26
"""The number of past steps that BFGS keeps, and the largest number of entries of all: 512 MB."""
_DECREASE, _HALVINGS = 1e-4, 60
"""The decrease that a step must reach, as a part of the predicted one (Armijo), and the tries."""


@value(eq=False)
class Fit:
    """A distribution over all cells in the order of the domain."""

    domain: Domain
    weights: Floats
    close: bool
    """Whether the solver converged, so that the fit is near the noisy coefficients."""

    def table(self, columns: Columns) -> Floats:
        """Return the table of these columns, which adds up to 1."""
        return margin(self.weights.reshape(self.domain.sizes), columns)


@value(eq=False)
class Answers:
    """Tables from noisy coefficients, from a distribution fitted to them, or both."""

    fitted: Fit | None
    estimate: Estimate | None = None

    def table(self, columns: Columns) -> Floats:
        """Return the fitted table if the fit is close, else the noisy one projected to the simplex.

        If some coefficients of the table were not measured there is only the fitted table.
        """
        fitted, estimate = self.fitted, self.estimate
        if fitted is not None and (
            fitted.close or estimate is None or not estimate.covers(columns)
        ):
            return fitted.table(columns)
        assert estimate is not None
        return simplex(estimate.table(columns))


def fit(estimate: Estimate, *, penalties: Sequence[float] | None = None) -> Fit:
    """Return the distribution fitted to an estimate; it raises for no noise."""
    domain = estimate.axes.domain
    problem: _OneAxis | _Problem
    problem = _OneAxis(estimate) if _on_one_axis(estimate) else _Problem(estimate)
    if penalties is None:
        slow = domain.cells > _MANY_CELLS and isinstance(problem, _Problem)
        penalties = _FEW_PENALTIES if slow else _PENALTIES
    point, distance = problem.start, math.inf
    for penalty in penalties:
        next_point = problem.solved(point, penalty)
        next_distance = problem.distance(next_point)
        if not next_distance < distance:  # the solver did not converge: keep the last point
            break
        point, distance = next_point, next_distance
        if distance < _CLOSE:
            break
    weights = estimate.axes.in_order(problem.distribution(point))
    return Fit(domain=domain, weights=weights, close=distance < _FAR)


def simplex(values: Floats) -> Floats:
    """Return the nearest nonnegative numbers that add up to 1, like a projection to the simplex.

    >>> simplex(np.array([0.9, 0.3, -0.2]))
    array([0.8, 0.2, 0. ])
    """
    shifted = values - values.max()  # subtracting one number changes no result, avoids overflow
    rising, times = np.unique(shifted, return_counts=True)  # noisy counts are often equal
    falling, times = rising[::-1], times[::-1]
    # if the k largest values stay positive, each is lowered by shifts[k] so that they add up to 1
    shifts = (np.cumsum(falling * times) - 1) / np.cumsum(times)
    last = int(np.flatnonzero(falling > shifts)[-1])
    shifted -= shifts[last]
    nearest: Floats = np.maximum(shifted, 0.0, out=shifted)
    return nearest


@final
class _Problem:
    """The fit to coefficients of several tables, solved in θ by BFGS."""

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
        """Return the mean squared distance from noisy coefficients, in units of the variance."""
        gap = self._read(self.distribution(theta)) - self._values
        return float(np.mean(gap**2 / self._variances))

    def solved(self, start: Floats, penalty: float) -> Floats:
        """Return the θ that minimizes the penalized dual, by quasi-Newton steps."""
        # coordinates in which the Hessian is nearly the identity: at the uniform distribution ln Z
        # has the curvature E φ² = 1/N_U
        scale = np.sqrt(penalty * self._variances + self._factor**2 / self._cells)
        steps = 100 if self._cells <= 1 << 16 else 40 if self._cells <= _MANY_CELLS else 20

        def objective(x: Floats) -> tuple[float, Floats]:
            value, slope = self._dual(x / scale, penalty)
            return value, slope / scale

        return minimum(objective, start * scale, steps=steps, tolerance=1e-10) / scale

    def _dual(self, theta: Floats, penalty: float) -> tuple[float, Floats]:
        """Return the penalized dual objective at θ, and its gradient."""
        weights, log_mean = self._exponential(theta)
        pull = penalty * self._variances * theta
        value = log_mean - float(theta @ self._values) + float(theta @ pull) / 2
        return value, self._read(weights) - self._values + pull

    def _exponential(self, theta: Floats) -> tuple[Floats, float]:
        """Return p ∝ exp(Σ θ φ), and the logarithm of the mean of exp."""
        exponent = self._transform.spread(theta * self._factor)
        largest = float(exponent.max())
        exponent -= largest
        np.exp(exponent, out=exponent)
        total = float(exponent.sum())
        exponent /= total
        return exponent, largest + math.log(total / self._cells)

    def _read(self, weights: Floats) -> Floats:
        """Return the coefficients of a distribution."""
        coefficients: Floats = self._transform.read(weights) * self._factor
        return coefficients


def _flat(values: Coefficients, parts: Sequence[Columns]) -> Floats:
    """Return the arrays of all parts as one vector."""
    return np.concatenate([values[part].reshape(-1) for part in parts])


def _on_one_axis(estimate: Estimate) -> bool:
    """Return whether all coefficients belong to one axis and have the same variance."""
    if tuple(estimate.values) != ((0,),):
        return False
    variances = estimate.variances[0,]
    return bool(variances.min() == variances.max())


@final
class _OneAxis:
    """The fit to one noisy table, solved by one equation in one unknown.

    The coefficients of one table are its cells y in other orthonormal coordinates, all with the
    same variance V. So the exponents e, which add up to 0, minimize ln Σexp(e) - e·y + κV/2 Σe².
    The minimum has p + κV·e = y + constant, with p ∝ exp(e). Hence each cell is p = a·ω(y/a + s),
    where a = κV and ω = ω(x) solves ω + ln ω = x, and s is chosen such that the cells add up to 1.
    Equal cells are computed once: noisy counts are often equal. Other columns are uniform.
    """

    def __init__(self, estimate: Estimate) -> None:
        axes = estimate.axes
        self._others = axes.domain.cells // axes.functions[0].size
        self._cells = estimate.table(axes.columns[0]).reshape(-1)
        self._variance = max(float(estimate.variances[0,].flat[0]), 1e-30)
        self._values, self._times = np.unique(self._cells, return_counts=True)
        self.start = np.full(len(self._values), 1 / len(self._cells))

    def distribution(self, point: Floats) -> Floats:
        """Return the probabilities of all cells of all columns, those of the axis first."""
        probabilities = point[np.searchsorted(self._values, self._cells)]
        return np.repeat(probabilities / self._others, self._others)

    def distance(self, point: Floats) -> float:
        """Return the mean squared distance from noisy coefficients, in units of the variance."""
        squares = float((self._times * (point - self._values) ** 2).sum())
        return squares / self._variance / (len(self._cells) - 1)

    def solved(self, start: Floats, penalty: float) -> Floats:
        """Return the minimizer, by Newton's method for the shift s; `start` is not needed.

        The sum of cells is a convex, increasing function of s. Newton's method starts where it is
        at least 1, so that it falls monotonically to the solution.
        """
        scale = penalty * self._variance
        # there the largest cell alone is 1
        shift = (1 - float(self._values[-1])) / scale - math.log(scale)
        for _ in range(_NEWTON_STEPS):
            omega = wrightomega(self._values / scale + shift)
            masses = self._times * omega
            excess = float(masses.sum()) - 1 / scale
            lower = shift - excess / float((masses / (1 + omega)).sum())
            if not lower < shift:
                break
            shift = lower
        return np.asarray(omega / float(masses.sum()))


def minimum(
    objective: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    *,
    steps: int,
    tolerance: float,
) -> Floats:
    """Return the minimizer of a smooth convex function by limited-memory BFGS.

    It stops after `steps` steps, or when a step gains less than the tolerance. SciPy's version
    spends several times as long on small problems, waiting for BLAS threads.

    >>> point = minimum(lambda x: (float(x @ x) - 2 * x[0], 2 * x - [2, 0]), np.ones(2) * 9,
    ...                 steps=50, tolerance=1e-12)
    >>> point.round(5) + 0.0
    array([1., 0.])
    """
    point = start
    value, slope = objective(point)
    memory = max(1, min(_MEMORY, _MAXIMUM_MEMORY // (2 * len(start))))
    pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=memory)
    for _ in range(steps):
        direction = _direction(slope, pairs)
        descent = float((direction * slope).sum())
        length = 1.0 if pairs else min(1.0, 1.0 / max(float(np.abs(slope).sum()), 1e-300))
        accepted = None
        for _ in range(_HALVINGS if descent < 0 else 0):
            trial = point + length * direction
            trial_value, trial_slope = objective(trial)
            if trial_value <= value + _DECREASE * length * descent:  # False for NaN
                accepted = trial, trial_value, trial_slope
                break
            length /= 2
        if accepted is None:
            break
        step, change = accepted[0] - point, accepted[2] - slope
        curvature = float((step * change).sum())
        if curvature > 0:
            pairs.append((step, change, curvature))
        gain, scale = value - accepted[1], max(1.0, abs(value))
        point, value, slope = accepted
        if gain <= tolerance * scale:
            break
    return point


def _direction(slope: Floats, pairs: deque[tuple[Floats, Floats, float]]) -> Floats:
    """Return the quasi-Newton direction, by the two-loop recursion over past steps."""
    direction = -slope
    weights = []
    for step, change, curvature in reversed(pairs):
        weight = float((step * direction).sum()) / curvature
        direction = direction - weight * change
        weights.append(weight)
    if pairs:
        _, change, curvature = pairs[-1]
        direction = direction * (curvature / float((change * change).sum()))
    for (step, change, curvature), weight in zip(pairs, reversed(weights), strict=True):
        correction = float((change * direction).sum()) / curvature
        direction = direction + (weight - correction) * step
    return direction


# -- Rounding -------------------------------------------------------------------------------------
# Round a distribution to whole rows without sampling noise, then swap rows to repair its tables.
# Both are deterministic functions of a private distribution (post-processing).

_MAXIMUM_SWAPS = 400
_MAXIMUM_FEATURES = 1 << 25
"""The largest number of entries of the array of features that swaps use: 128 MB."""
_MAXIMUM_WIDTH = 1 << 16
"""The largest number of features of a row; listing more takes longer than fitting the tables."""


def whole_rows(weights: Floats, domain: Domain, workload: TableWorkload, size: int) -> Integers:
    """Return `size` rows as codes whose tables are nearly those of the distribution."""
    counts = rounded_cells(weights, size)
    width = sum(orbit.coefficients for orbit in orbits(domain, workload))
    used = np.flatnonzero((weights > 0) | (counts > 0))
    if width * len(used) > _MAXIMUM_FEATURES:
        used = np.flatnonzero(counts)
    used_counts = counts[used]
    few = width <= _MAXIMUM_WIDTH and max(domain.sizes) <= MAXIMUM_CATEGORIES
    if few and width * len(used) <= _MAXIMUM_FEATURES:
        used_counts = _repaired(weights, domain, workload.closure, used, used_counts)
    cells = np.repeat(used, used_counts)
    codes = np.unravel_index(cells, domain.sizes)
    return np.stack(codes, axis=1).astype(np.int64)


def rounded_cells(weights: Floats, size: int) -> Integers:
    """Round a distribution to integer counts that add up to `size`.

    With few cells the largest remainders are rounded up. With many, most of which hold less than
    one row, a row is placed in the cell where the running total passes k + 1/2, k = 0, 1, …: it
    represents its neighbors in the order of cells.

    >>> rounded_cells(np.array([0.5, 0.26, 0.24]), 5)
    array([3, 1, 1])
    >>> rounded_cells(np.full(8, 1 / 8), 2)
    array([0, 1, 0, 0, 0, 1, 0, 0])
    """
    if len(weights) > 2 * size:
        steps = np.floor(np.cumsum(weights) * (size / float(weights.sum())) + 0.5)
        steps[-1] = size
        return np.diff(np.minimum(steps, size), prepend=0).astype(np.int64)
    shares = weights * (size / float(weights.sum()))
    counts = np.floor(shares).astype(np.int64)
    missing = size - int(counts.sum())
    order = np.argsort(counts - shares, kind="stable")
    counts[order[:missing]] += 1
    return counts


def _repaired(
    weights: Floats,
    domain: Domain,
    parts: Sequence[Columns],
    cells: Integers,
    counts: Integers,
) -> Integers:
    """Move rows between these cells, one at a time, while that brings the tables closer.

    The distance is that of all coefficients. Each swap adds the best row and removes the worst.
    """
    features = _features(domain, parts, cells)
    normed = weights * (math.sqrt(domain.cells) / float(weights.sum()))
    target = column_axes(domain).transform_of(parts).read(normed)
    gap = target * int(counts.sum()) - features.T @ counts.astype(np.float32)
    squared_lengths = (features**2).sum(axis=1)
    counts = counts.copy()
    for _ in range(_MAXIMUM_SWAPS):
        pull = features @ gap.astype(np.float32)
        added = int(np.argmax(pull - squared_lengths / 2))
        removed = int(np.argmin(np.where(counts > 0, pull + squared_lengths / 2, np.inf)))
        change = (features[added] - features[removed]).astype(np.float64)
        if float(gap @ change) <= float(change @ change) / 2:
            break
        counts[added] += 1
        counts[removed] -= 1
        gap = gap - change
    return counts


def _features(
    domain: Domain, parts: Sequence[Columns], cells: Integers
) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Return the normalized coefficients of a single row in each cell, one array row for each."""
    codes = np.unravel_index(cells, domain.sizes)
    blocks = []
    for part in parts:
        block = np.ones((len(cells), 1))
        for column in part:
            size = domain.sizes[column]
            values = math.sqrt(size) * orthonormal(size)[1:].T[codes[column]]  # mean square 1
            block = (block[:, :, None] * values[:, None, :]).reshape(len(cells), -1)
        blocks.append(block.astype(np.float32))
    return np.concatenate(blocks, axis=1)
