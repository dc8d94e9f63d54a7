"""A distribution over all cells that agrees with noisy coefficients: post-processing.

Of all distributions that fit, the one of largest entropy: p ∝ exp(Σ θ·coefficient). θ minimizes
ln Z(θ) - θ·y + κ/2 Σ Vθ², the dual of "distance in units of the noise plus κ times the divergence
from uniform". κ falls until the fit is as close as the noise allows, or is small.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import final

import numpy as np
from scipy.special import wrightomega

from zerodelta.exact.arrays import Floats, Integers
from zerodelta.marginals.bases import MOST_CATEGORIES, margin, orbits, orthonormal
from zerodelta.marginals.domain import Columns, Domain, TableWorkload
from zerodelta.marginals.strategies import Coefficients, Estimate, column_axes
from zerodelta.value import value

_PENALTIES, _FEW_PENALTIES = (1000.0, 300.0, 100.0, 30.0, 10.0), (100.0, 30.0)
_MANY = 1 << 20
"""With more cells than this one evaluation takes a second."""
_CLOSE = 0.05
"""Mean squared distance in units of the noise's variance: the truth is at 1, the noise at 0."""
_FAR = 2.0
"""Beyond this the solver has not arrived, and the noisy coefficients are better."""
_MOST_STEPS = 200
_MEMORY, _MOST_REMEMBERED = 20, 1 << 26
"""Pairs of vectors that the curvature is learned from, and entries of all of them: 512 MB."""
_DECREASE, _HALVINGS = 1e-4, 60


@value(eq=False)
class Fit:
    """A distribution over all cells in the order of the domain."""

    domain: Domain
    weights: Floats
    close: bool

    def table(self, columns: Columns) -> Floats:
        """Return the table of these columns, adding up to 1."""
        return margin(self.weights.reshape(self.domain.sizes), columns)


@value(eq=False)
class Answers:
    """Tables from noisy coefficients, a fit to them, or both: private, as the noise is."""

    fitted: Fit | None
    estimate: Estimate | None = None

    def table(self, columns: Columns) -> Floats:
        """Return the table of a good fit, else the noisy one, brought back to a distribution.

        A table of which not all was measured can only be fitted.
        """
        fitted, estimate = self.fitted, self.estimate
        if fitted is not None and (
            fitted.close or estimate is None or not estimate.covers(columns)
        ):
            return fitted.table(columns)
        assert estimate is not None
        return simplex(estimate.table(columns))


def fit(estimate: Estimate, *, penalties: Sequence[float] | None = None) -> Fit:
    """Return the fitted distribution; never raises, whatever the noise was."""
    domain = estimate.axes.domain
    problem: _OneAxis | _Problem
    problem = _OneAxis(estimate) if _on_one_axis(estimate) else _Problem(estimate)
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


def _on_one_axis(estimate: Estimate) -> bool:
    """Tell whether all coefficients are those of one axis, with one variance."""
    if tuple(estimate.values) != ((0,),):
        return False
    variances = estimate.variances[0,]
    return bool(variances.min() == variances.max())


@final
class _OneAxis:
    """The fit to one noisy table, without a solver: cells only meet in their sum.

    With one table all coefficients are those of its cells y, in other coordinates, and the variance
    V is the same for all. So exponents e, adding up to 0, minimize ln Σexp(e) - e·y + κV/2 Σe²,
    which is p + κV·e = y + a constant, p ∝ exp(e): each cell has p = a·ω(y/a + s), a = κV,
    ω + ln ω = x, and s is where the cells add up to 1. Equal cells are counted together: noisy
    counts are often the same. Other columns are uniform.
    """

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


def minimum(
    objective: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    *,
    most: int,
    tolerance: float,
) -> Floats:
    """Return the minimum of a smooth convex function by limited-memory BFGS.

    After at most `most` steps, or when a step gains less than the tolerance. SciPy's spends most
    of a small problem waiting for BLAS threads, several times the work itself.

    >>> found = minimum(lambda x: (float(x @ x) - 2 * x[0], 2 * x - [2, 0]), np.ones(2) * 9,
    ...                 most=50, tolerance=1e-12)
    >>> found.round(5) + 0.0
    array([1., 0.])
    """
    point = start
    value, slope = objective(point)
    memory = max(1, min(_MEMORY, _MOST_REMEMBERED // (2 * len(start))))
    pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=memory)
    for _ in range(most):
        direction = _direction(slope, pairs)
        descent = float((direction * slope).sum())
        length = 1.0 if pairs else min(1.0, 1.0 / max(float(np.abs(slope).sum()), 1e-300))
        found = None
        for _ in range(_HALVINGS if descent < 0 else 0):
            trial = point + length * direction
            reached, there = objective(trial)
            if reached <= value + _DECREASE * length * descent:  # False for NaN
                found = trial, reached, there
                break
            length /= 2
        if found is None:
            break
        moved, turned = found[0] - point, found[2] - slope
        curvature = float((moved * turned).sum())
        if curvature > 0:
            pairs.append((moved, turned, curvature))
        gain, scale = value - found[1], max(1.0, abs(value))
        point, value, slope = found
        if gain <= tolerance * scale:
            break
    return point


def _direction(slope: Floats, pairs: deque[tuple[Floats, Floats, float]]) -> Floats:
    """Return minus the inverse curvature of the last steps, applied to the slope."""
    direction = -slope
    shares = []
    for moved, turned, curvature in reversed(pairs):
        share = float((moved * direction).sum()) / curvature
        direction = direction - share * turned
        shares.append(share)
    if pairs:
        _, turned, curvature = pairs[-1]
        direction = direction * (curvature / float((turned * turned).sum()))
    for (moved, turned, curvature), share in zip(pairs, reversed(shares), strict=True):
        back = float((turned * direction).sum()) / curvature
        direction = direction + (share - back) * moved
    return direction


# -- Rounding -------------------------------------------------------------------------------------
# A distribution as whole rows, without sampling noise: rounding, then swaps that repair tables.
#
# Both are deterministic functions of what is already private (post-processing).

_MOST_SWAPS = 400
_MOST_FEATURES = 1 << 25
"""Entries of the table of features that swaps look at: 128 MB."""
_MOST_WIDTH = 1 << 16
"""Features of a row; for more it would take longer to list them than to fit the tables."""


def whole_rows(weights: Floats, domain: Domain, workload: TableWorkload, size: int) -> Integers:
    """Return `size` rows as codes whose tables are those of the distribution, almost exactly."""
    counts = rounded_cells(weights, size)
    width = sum(orbit.coefficients for orbit in orbits(domain, workload))
    used = np.flatnonzero((weights > 0) | (counts > 0))
    if width * len(used) > _MOST_FEATURES:
        used = np.flatnonzero(counts)
    times = counts[used]
    few = width <= _MOST_WIDTH and max(domain.sizes) <= MOST_CATEGORIES
    if few and width * len(used) <= _MOST_FEATURES:
        times = _repaired(weights, domain, workload.closure, used, times)
    cells = np.repeat(used, times)
    codes = np.unravel_index(cells, domain.sizes)
    return np.stack(codes, axis=1).astype(np.int64)


def rounded_cells(weights: Floats, size: int) -> Integers:
    """Return whole counts that add up to `size`.

    With few cells the largest remainders are rounded up; with many, where most hold less than a
    row, a row is set whenever the running total passes a half: neighbors in the order of cells
    stand in for each other.

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
    times: Integers,
) -> Integers:
    """Move rows between these cells, one at a time, while their tables come closer."""
    features = _features(domain, parts, cells)
    normed = weights * (math.sqrt(domain.cells) / float(weights.sum()))
    wanted = column_axes(domain).transform_of(parts).read(normed)
    gap = wanted * int(times.sum()) - features.T @ times.astype(np.float32)
    lengths = (features**2).sum(axis=1)
    times = times.copy()
    for _ in range(_MOST_SWAPS):
        pull = features @ gap.astype(np.float32)
        to = int(np.argmax(pull - lengths / 2))
        away = int(np.argmin(np.where(times > 0, pull + lengths / 2, np.inf)))
        change = (features[to] - features[away]).astype(np.float64)
        if float(gap @ change) <= float(change @ change) / 2:
            break
        times[to] += 1
        times[away] -= 1
        gap = gap - change
    return times


def _features(
    domain: Domain, parts: Sequence[Columns], cells: Integers
) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Return the normalized coefficients of single rows."""
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
