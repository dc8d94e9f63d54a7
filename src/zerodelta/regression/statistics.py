"""Fit a linear regression from XᵀX and Xᵀy with matrix Laplace (W2) or K-norm noise (C10.5).

Rows are integers, so the statistics are exact; statistics and noise are rounded as one sum to a
public lattice (Lemma R). The penalty and the solution are computed from noisy numbers only.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np

from zerodelta.data.rows import Rows
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.noise import rounded_k_norm
from zerodelta.exact.sums import IntegerArray
from zerodelta.mechanisms.sum_noise import MatrixLaplace, add_exactly
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Step
from zerodelta.privacy.theorems.regression import (
    HALF_ROOT,
    KNormSufficientStatistics,
)
from zerodelta.regression.features import Features
from zerodelta.regression.objective import TARGETS, Shape, limited
from zerodelta.value import value

LENGTH = 1 << 20
"""A row of length `data_norm`, and a target at its bound, in steps."""

_EXACT_ROWS = (1 << 53) // LENGTH**2
"""The most rows of a block: the partial sums of their products stay below 2^53, so float64 adds
them exactly in any order."""

_ROOT_WEIGHT = Fraction(5, 4)
"""√κ, the weight of targets against rows: between 1, best for large coefficients, and √2, best for
small ones. The value between the two was chosen by hand."""

_NOISE_STEPS = 12
"""The noise scale is at least 2^12 lattice spacings, so that rounding adds almost no error."""


@value
class StatisticsPlan:
    """The noise on XᵀX and Xᵀy of rows with `columns` numbers, the intercept's included."""

    columns: int
    scale: Fraction
    """b: the noise has density ∝ exp(-‖z‖/b), in units of the rows' and the targets' bounds."""
    predicted_error: float
    """Expected excess of the mean squared error for targets in [-1, 1] and rows spread evenly."""

    @property
    def dimension(self) -> int:
        """The number D of distinct entries of XᵀX and Xᵀy."""
        return self.columns * (self.columns + 3) // 2

    @property
    def deviation(self) -> float:
        """The standard deviation b√(D+1) of a coordinate of z."""
        return float(self.scale) * math.sqrt(self.dimension + 1)

    @property
    def spacing(self) -> int:
        """The spacing of the lattice on which noisy statistics are published, in squared steps."""
        return max(1, 1 << (math.frexp(float(self.scale * LENGTH**2))[1] - 1 - _NOISE_STEPS))

    @property
    def step(self) -> Step:
        """Theorem C10.5 with its numbers."""
        numbers = {"target_weight": _ROOT_WEIGHT**2, "scale": self.scale}
        return Step(theorem="k-norm-sufficient-statistics", numbers=numbers)

    def noised(self, statistics: IntegerArray, bits: BitSource) -> IntegerArray:
        """Return round((statistics + noise)/spacing): triangle of XᵀX, then Xᵀy (theory R)."""
        diagonal = self.scale * Fraction(LENGTH**2, self.spacing)
        off_diagonal, moment = diagonal * HALF_ROOT, diagonal / _ROOT_WEIGHT
        entries = combinations_with_replacement(range(self.columns), 2)  # as np.triu_indices
        scales = [diagonal if i == j else off_diagonal for i, j in entries]
        # round(statistic + noise) is quotient + round(remainder/spacing + noise): Lemma R draws
        # the second term for a center in [0, 1)
        quotients, remainders = statistics // self.spacing, statistics % self.spacing
        drawn = rounded_k_norm(
            norm=2,
            dimension=self.dimension,
            scale=scales + [moment] * self.columns,
            size=1,
            bits=bits,
            center=[Fraction(int(remainder), self.spacing) for remainder in remainders],
        )
        return add_exactly(quotients, drawn[0])

    def solve(self, noisy: IntegerArray) -> Floats:
        """Return the ridge solution in units of the bounds."""
        values = noisy.astype(np.float64) * (self.spacing / LENGTH**2)
        matrix = np.zeros((self.columns, self.columns))
        matrix[np.triu_indices(self.columns)] = values[: -self.columns]
        return solved(matrix, values[-self.columns :], self.deviation)

    def fit(self, features: Features, rows: Rows, bits: BitSource) -> Floats:
        """Measure opened rows, and solve."""
        return self.solve(self.noised(exact_statistics(features, rows), bits))


@value
class MatrixStatisticsPlan:
    """Matrix Laplace noise on the products of all numbers of a row, its target included."""

    columns: int
    noise: MatrixLaplace
    predicted_error: float
    """As in `StatisticsPlan`."""

    @property
    def dimension(self) -> int:
        """The number of distinct products, yᵀy included."""
        return (self.columns + 1) * (self.columns + 2) // 2

    @property
    def step(self) -> Step:
        """Theorem W2 with its numbers."""
        return self.noise.step()

    def solve(self, noisy: IntegerArray) -> Floats:
        """Return the ridge solution in units of the bounds."""
        width = self.columns + 1
        values = noisy.astype(np.float64) * (self.noise.quantum / LENGTH**2) / self.noise.weights
        matrix = np.zeros((width, width))
        matrix[np.triu_indices(width)] = values
        moments = matrix[:-1, -1] / float(_TARGET_WEIGHT)
        return solved(matrix[:-1, :-1], moments, _deviation(self.noise) / LENGTH**2)

    def fit(self, features: Features, rows: Rows, bits: BitSource) -> Floats:
        """Measure opened rows, and solve."""
        products = exact_products(features, rows, _TARGET_WEIGHT)
        triangle = products[np.triu_indices(self.columns + 1)]
        return self.solve(self.noise.apply(triangle * self.noise.weights.astype(object), bits))


def _deviation(noise: MatrixLaplace) -> float:
    """Return the standard deviation of the noise on an entry of the diagonal."""
    return float(noise.scale) * math.sqrt(noise.dimension + 1)


def solved(triangle: Floats, moments: Floats, deviation: float) -> Floats:
    """Return the ridge solution for a noisy upper triangle, or zeros if it cannot be computed.

    Noise with this deviation on the diagonal, and 1/√2 of it elsewhere, has a norm of about
    deviation·√(2·columns). The penalty raises the smallest eigenvalue to that norm, so that no
    direction of noise alone is inverted.
    """
    columns = len(moments)
    matrix = np.triu(triangle) + np.triu(triangle, 1).T
    noise_norm = deviation * math.sqrt(2 * columns)
    try:
        with np.errstate(all="ignore"):
            penalty = max(0.0, noise_norm - float(np.linalg.eigvalsh(matrix)[0]))
            matrix[np.diag_indices(columns)] += penalty
            theta = np.asarray(np.linalg.solve(matrix, moments), dtype=np.float64)
    except Exception:  # whether this fails depends on released numbers: publish, never raise
        return np.zeros(columns)
    return theta if np.isfinite(theta).all() else np.zeros(columns)


_TARGET_WEIGHT = Fraction(3, 4)
"""The factor of targets under matrix noise: smaller, it leaves less noise on XᵀX and more on Xᵀy.
The noise of Xᵀy is least at 1, and 4 % larger here. Chosen by hand."""

_FEW_COLUMNS = 3
"""Up to this many columns K-norm noise on Xᵀy is smaller than matrix Laplace noise."""


def plan_statistics(shape: Shape) -> StatisticsPlan | MatrixStatisticsPlan:
    """Return the plan of the method "statistics" with the smaller noise, for targets in [-1, 1].

    >>> plans = [
    ...     plan_statistics(Shape.of(rows=10_000, dimension=d, epsilon=1)) for d in (1, 9)
    ... ]
    >>> [type(plan).__name__ for plan in plans]
    ['StatisticsPlan', 'MatrixStatisticsPlan']
    """
    return plan_k_norm(shape) if shape.columns <= _FEW_COLUMNS else plan_matrix(shape)


def plan_matrix(shape: Shape) -> MatrixStatisticsPlan:
    """Return the plan with matrix Laplace noise."""
    noise = MatrixLaplace.for_epsilon(
        epsilon=shape.epsilon,
        dimension=shape.columns + 1,
        squared_length=LENGTH**2 * (1 + _TARGET_WEIGHT**2),
    )
    deviation = _deviation(noise) / LENGTH**2
    return MatrixStatisticsPlan(
        columns=shape.columns,
        noise=noise,
        predicted_error=statistics_error(
            shape,
            gram_deviation=deviation,
            moment_deviation=deviation / math.sqrt(2) / float(_TARGET_WEIGHT),
        ),
    )


def plan_k_norm(shape: Shape) -> StatisticsPlan:
    """Return the plan with K-norm noise."""
    unit = KNormSufficientStatistics(target_weight=_ROOT_WEIGHT**2, scale=Fraction(1))
    scale = unit.cost(Neighbors.REPLACE) / shape.epsilon
    columns = shape.columns
    deviation = float(scale) * math.sqrt(columns * (columns + 3) // 2 + 1)
    return StatisticsPlan(
        columns=columns,
        scale=scale,
        predicted_error=statistics_error(
            shape, gram_deviation=deviation, moment_deviation=deviation / float(_ROOT_WEIGHT)
        ),
    )


def statistics_error(shape: Shape, *, gram_deviation: float, moment_deviation: float) -> float:
    """Return the expected excess of the mean squared error of a fit from noisy statistics.

    With noise E₁ on XᵀX and E₂ on Xᵀy, θ errs by (XᵀX)⁻¹(E₂ - E₁θ). Rows are taken to be spread
    evenly over all directions, and θ to explain a typical part of the targets. The excess never
    exceeds that part, because of the penalty.
    """
    expected = shape.expected or TARGETS
    variances = expected.variances(shape.columns, intercept=shape.intercept)
    noise = moment_deviation**2 + gram_deviation**2 * expected.explained / variances[0] / 2
    excess = sum(noise / variance for variance in variances) / max(1, shape.rows) ** 2
    return limited(excess, expected.explained)


def exact_statistics(features: Features, rows: Rows) -> IntegerArray:
    """Return the upper triangle of XᵀX, row by row, and Xᵀy, as exact integers."""
    total = exact_products(features, rows)
    return np.concatenate([total[:-1, :-1][np.triu_indices(features.width)], total[:-1, -1]])


def exact_products(
    features: Features, rows: Rows, target_weight: Fraction = Fraction(1)
) -> IntegerArray:
    """Return the sums of products of all integers of a row, its target the last, as a matrix.

    Targets, the last column, lie in [-1, 1], and are multiplied by 2^20 times their weight, at most
    1; a NaN makes its row the zero row. Rows and targets are integers of length at most 2^20, so
    every partial sum of at most 8192 products is at most 2^53: BLAS adds them exactly in any order.
    """
    d, width = features.dimension, features.width
    target_length = float(LENGTH * target_weight)

    def products(block: Floats) -> IntegerArray:  # may run on a cluster
        """Return XᵀX, Xᵀy and yᵀy of a block, as exact integers."""
        total = np.zeros((width + 1, width + 1), dtype=np.int64)
        for start in range(0, len(block), _EXACT_ROWS):
            chunk = block[start : start + _EXACT_ROWS]
            target = chunk[:, -1]
            part, others = np.empty((len(chunk), d)), np.empty((width + 1 - d, len(chunk)))
            unusable = features.quantize(chunk[:, :-1], part) | np.isnan(target)
            others[0] = features.constant  # overwritten by the targets if there is no intercept
            others[-1] = np.trunc(target * target_length)
            if unusable.any():
                part[unusable], others[:, unusable] = 0.0, 0.0
            total[:d, :d] += (part.T @ part).astype(np.int64)
            total[:d, d:] += (others @ part).T.astype(np.int64)
            total[d:, d:] += (others @ others.T).astype(np.int64)
        return total

    shape = (width + 1, width + 1)
    return rows.total(products, range(d + 1), shape=shape, bound=LENGTH**2)
