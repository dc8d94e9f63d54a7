"""Fit a linear regression from XᵀX and Xᵀy with K-norm noise (C10.5).

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
from zerodelta.mechanisms.sum_noise import add_exactly
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
        """Return the ridge solution in units of the bounds, or zeros if it cannot be computed.

        Noise with this deviation has a norm of about deviation·√(2·columns). The penalty raises the
        smallest eigenvalue to that norm, so that no direction of noise alone is inverted.
        """
        values = noisy.astype(np.float64) * (self.spacing / LENGTH**2)
        matrix = np.zeros((self.columns, self.columns))
        matrix[np.triu_indices(self.columns)] = values[: -self.columns]
        matrix = np.triu(matrix) + np.triu(matrix, 1).T
        noise_norm = self.deviation * math.sqrt(2 * self.columns)
        try:
            with np.errstate(all="ignore"):
                penalty = max(0.0, noise_norm - float(np.linalg.eigvalsh(matrix)[0]))
                matrix[np.diag_indices(self.columns)] += penalty
                solved = np.linalg.solve(matrix, values[-self.columns :])
                theta = np.asarray(solved, dtype=np.float64)
        except Exception:  # whether this fails depends on released numbers: publish, never raise
            return np.zeros(self.columns)
        return theta if np.isfinite(theta).all() else np.zeros(self.columns)


def plan_statistics(shape: Shape) -> StatisticsPlan:
    """Return the plan of the method "statistics", for targets scaled to [-1, 1].

    >>> plan_statistics(Shape.of(rows=10_000, dimension=2, epsilon=1)).dimension
    9
    """
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
    """Return the upper triangle of XᵀX, row by row, and Xᵀy, as exact integers.

    Targets, the last column, lie in [-1, 1]; a NaN makes its row the zero row. Rows and targets are
    integers of length at most 2^20, so every partial sum of at most 8192 products is at most 2^53:
    BLAS adds them exactly in any order.
    """
    d, width = features.dimension, features.width

    def products(block: Floats) -> IntegerArray:  # may run on a cluster
        """Return XᵀX, Xᵀy and yᵀy of a block, as exact integers."""
        total = np.zeros((width + 1, width + 1), dtype=np.int64)
        for start in range(0, len(block), _EXACT_ROWS):
            chunk = block[start : start + _EXACT_ROWS]
            target = chunk[:, -1]
            part, others = np.empty((len(chunk), d)), np.empty((width + 1 - d, len(chunk)))
            unusable = features.quantize(chunk[:, :-1], part) | np.isnan(target)
            others[0] = features.constant  # overwritten by the targets if there is no intercept
            others[-1] = np.trunc(target * LENGTH)
            if unusable.any():
                part[unusable], others[:, unusable] = 0.0, 0.0
            total[:d, :d] += (part.T @ part).astype(np.int64)
            total[:d, d:] += (others @ part).T.astype(np.int64)
            total[d:, d:] += (others @ others.T).astype(np.int64)
        return total

    shape = (width + 1, width + 1)
    total = rows.total(products, range(d + 1), shape=shape, bound=LENGTH**2)
    return np.concatenate([total[:-1, :-1][np.triu_indices(width)], total[:-1, -1]])
