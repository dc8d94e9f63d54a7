"""Linear regression from XᵀX and Xᵀy with one draw of K-norm noise (theory C10.5).

Rows are integers, so the statistics are exact; statistics and noise are rounded as one sum to a
public lattice (Lemma R). The penalty and the solution are computed from noisy numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any, final

import numpy as np

from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.exact_sums import IntegerArray, arithmetic
from zerodelta.exact.k_norm import rounded_k_norm
from zerodelta.exact.rational import Rational, as_count
from zerodelta.mechanisms.integer_sums import add_exactly
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.issue import issue
from zerodelta.privacy.parameters import as_flag, as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.sufficient_statistics import (
    HALF_ROOT,
    k_norm_statistics_scale,
)
from zerodelta.regression.expected import TARGETS, Expected
from zerodelta.regression.fit import LinearModel
from zerodelta.regression.integer_rows import Floats
from zerodelta.regression.objective_plan import limited
from zerodelta.regression.reading import (
    Features,
    Rows,
    as_target_bounds,
    read_targets,
    target_scale,
)

__all__ = [
    "LENGTH",
    "StatisticsPlan",
    "exact_statistics",
    "fit_statistics",
    "plan_statistics",
    "statistics_error",
]

LENGTH = 1 << 20
"""A row of length `data_norm`, and a target at its bound, in steps."""

_MOST_ROWS = (1 << 53) // LENGTH**2
"""A block of so many rows has products whose partial sums are exact in float64."""

_BLOCK_ENTRIES = 1 << 17
_ROOT_WEIGHT = Fraction(5, 4)
"""√κ: between 1, best for large coefficients, and √2, best for small ones."""

_NOISE_STEPS = 12
"""The scale of the noise is at least 2^12 lattice spacings: rounding adds nothing to it."""

_RIDGE = 1.0
"""The penalty lifts the smallest eigenvalue to so many times the noise's typical norm."""


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class StatisticsPlan:
    """The noise on the statistics of rows with `columns` numbers, the intercept's included."""

    rows: int
    columns: int
    epsilon: Fraction
    scale: Fraction
    """b: the noise has density ∝ exp(-‖z‖/b), in units of the rows' and the targets' bounds."""
    predicted_error: float
    """Expected excess of the mean squared error for targets in [-1, 1] and rows spread evenly."""

    @property
    def dimension(self) -> int:
        """The number D of different entries."""
        return self.columns * (self.columns + 3) // 2

    @property
    def deviation(self) -> float:
        """The standard deviation b√(D+1) of a coordinate of z."""
        return float(self.scale) * math.sqrt(self.dimension + 1)

    @property
    def spacing(self) -> int:
        """The lattice on which noisy statistics are published, in units of squared steps."""
        return max(1, 1 << (math.frexp(float(self.scale * LENGTH**2))[1] - 1 - _NOISE_STEPS))

    @property
    def step(self) -> Step:
        """Theorem C10.5 with its numbers."""
        numbers = {"target_weight": _ROOT_WEIGHT**2, "scale": self.scale}
        return Step(theorem="k-norm-sufficient-statistics", numbers=numbers)

    def noised(self, statistics: IntegerArray, bits: BitSource) -> IntegerArray:
        """Return round((statistics + noise)/spacing): triangle of XᵀX, then Xᵀy (theory R)."""
        diagonal = self.scale * Fraction(LENGTH**2, self.spacing)
        beside, moment = diagonal * HALF_ROOT, diagonal / _ROOT_WEIGHT
        scales = [diagonal if i == j else beside for i, j in _triangle(self.columns)]
        whole, rest = statistics // self.spacing, statistics % self.spacing
        drawn = rounded_k_norm(
            norm=2,
            dimension=self.dimension,
            scale=scales + [moment] * self.columns,
            size=1,
            bits=bits,
            center=[Fraction(int(part), self.spacing) for part in rest],
        )
        return add_exactly(whole, drawn[0])

    def solve(self, noisy: IntegerArray) -> Floats:
        """Return the ridge solution, targets and rows in units of their bounds; 0 if there is none.

        Noise with this deviation has a norm of about deviation·√(2·columns); the penalty lifts the
        smallest eigenvalue to that, so that no direction of mere noise is inverted.
        """
        values = noisy.astype(np.float64) * (self.spacing / LENGTH**2)
        matrix = np.zeros((self.columns, self.columns))
        matrix[np.triu_indices(self.columns)] = values[: -self.columns]
        matrix = np.triu(matrix) + np.triu(matrix, 1).T
        least = _RIDGE * self.deviation * math.sqrt(2 * self.columns)
        try:
            with np.errstate(all="ignore"):
                penalty = max(0.0, least - float(np.linalg.eigvalsh(matrix)[0]))
                matrix[np.diag_indices(self.columns)] += penalty
                solved = np.linalg.solve(matrix, values[-self.columns :])
                theta = np.asarray(solved, dtype=np.float64)
        except Exception:  # an exception would be an output
            return np.zeros(self.columns)
        return theta if np.isfinite(theta).all() else np.zeros(self.columns)


def plan_statistics(
    *,
    rows: int,
    dimension: int,
    epsilon: Rational,
    intercept: bool = True,
    expected: Expected = TARGETS,
) -> StatisticsPlan:
    """Return the plan of `fit_statistics`, for targets scaled to [-1, 1].

    >>> plan_statistics(rows=10_000, dimension=2, epsilon=1).dimension
    9
    """
    count, exact = as_count(rows, "rows"), as_usable_epsilon(epsilon)
    columns = as_count(dimension, "dimension", minimum=1) + as_flag(intercept, "intercept")
    scale = k_norm_statistics_scale(target_weight=_ROOT_WEIGHT**2, epsilon=exact)
    deviation = float(scale) * math.sqrt(columns * (columns + 3) // 2 + 1)
    return StatisticsPlan(
        rows=count,
        columns=columns,
        epsilon=exact,
        scale=scale,
        predicted_error=statistics_error(
            rows=count,
            columns=columns,
            gram_deviation=deviation,
            moment_deviation=deviation / float(_ROOT_WEIGHT),
            intercept=intercept,
            expected=expected,
        ),
    )


def fit_statistics(
    rows: Any,
    targets: Any,
    *,
    epsilon: Rational,
    data_norm: Rational | None = None,
    bounds_y: tuple[Rational, Rational] | None = None,
    intercept: bool = True,
    bits: BitSource | None = None,
) -> Release:
    """Fit a linear regression by least squares on noisy sufficient statistics.

    **Releases** a `LinearModel` with one line of coefficients.
    **Neighbors**: replace-one; the number of rows is public.
    **Guarantee**: pure ε-DP (theorem C10.5), proven: exact integer statistics with K-norm noise;
    penalty and solution follow from the noisy ones.
    **Public**: ε, `data_norm`, `bounds_y`, the shape of the data. Longer rows are shortened to
    `data_norm`, targets are cut to `bounds_y`, rows with a missing cell or a target that is
    no number count as empty.
    **Error**: the expected excess of the mean squared error if rows were spread evenly; the true
    one depends on unseen data.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.uniform(-0.7, 0.7, size=(5000, 2))
    >>> release = fit_statistics(rows, 3 * rows[:, 0] + 1, epsilon=1, data_norm=1, bounds_y=(-2, 4))
    >>> bool(abs(release.value.coefficients[0, 0] - 3) < 1), release.certificate.status.value
    (True, 'proven')
    """
    bounds = as_target_bounds(bounds_y)
    features, source = Features.of(rows, data_norm, intercept)
    features = replace(features, length=LENGTH)
    plan = plan_statistics(
        rows=source.count, dimension=features.dimension, epsilon=epsilon, intercept=intercept
    )
    bits = SystemBits() if bits is None else bits
    certificate = issue(
        claim=PureDP(plan.epsilon),
        steps=(plan.step,),
        bits=bits,
        row="one row: all of its features and its target",
        public=("the number of rows", "the number of features", "data_norm", "bounds_y"),
    )
    scaled = read_targets(targets, bounds, source.count, intercept=features.intercept)
    theta = plan.solve(plan.noised(exact_statistics(features, source, scaled), bits))
    middle, half = target_scale(bounds, features.intercept)
    lines, constants = features.coefficients(theta[:, None] * half)
    model = LinearModel(coefficients=lines, intercept=constants + middle)
    return Release(value=model, certificate=certificate, error=plan.predicted_error * half**2)


def statistics_error(
    *,
    rows: int,
    columns: int,
    gram_deviation: float,
    moment_deviation: float,
    intercept: bool,
    expected: Expected,
) -> float:
    """Return the excess of the mean squared error to expect of noisy statistics.

    Of (XᵀX)⁻¹(E₂ - E₁θ), for rows spread evenly over all directions and coefficients that explain
    a typical part of the targets; never more than that part, which the penalty sees to.
    """
    variances = expected.variances(columns, intercept=intercept)
    noise = moment_deviation**2 + gram_deviation**2 * expected.explained / variances[0] / 2
    excess = sum(noise / variance for variance in variances) / max(1, rows) ** 2
    return limited(excess, expected.explained)


def exact_statistics(features: Features, source: Rows, targets: Floats) -> IntegerArray:
    """Return the upper triangle of XᵀX, line by line, and Xᵀy, as exact integers.

    `targets` lie in [-1, 1]; a NaN makes its row count as empty. Rows are integers of length at
    most 2^20 and so are targets, so every partial sum of a block is below 2^53: exact in BLAS.
    """
    d, width = features.dimension, features.dimension + features.intercept
    fits = arithmetic(source.count, LENGTH**2) != "python"
    total: Any = np.zeros((width + 1, width + 1), dtype=np.int64 if fits else np.object_)
    size = min(_MOST_ROWS, max(64, _BLOCK_ENTRIES // d))
    buffer, beside = np.empty((size, d)), np.empty((width + 1 - d, size))
    start = 0
    for block in source.blocks(size):
        target = targets[start : start + len(block)]
        part, rest = buffer[: len(block)], beside[:, : len(block)]
        empty = features.quantize(block, part) | np.isnan(target)
        rest[0] = features.constant  # overwritten by the targets if there is no intercept
        rest[-1] = np.trunc(target * LENGTH)
        if empty.any():
            part[empty], rest[:, empty] = 0.0, 0.0
        total[:d, :d] += (part.T @ part).astype(np.int64)
        total[:d, d:] += (rest @ part).T.astype(np.int64)
        total[d:, d:] += (rest @ rest.T).astype(np.int64)
        start += len(block)
    return np.concatenate([total[:-1, :-1][np.triu_indices(width)], total[:-1, -1]])


def _triangle(columns: int) -> Iterator[tuple[int, int]]:
    """Return the places of the upper triangle in the order of `np.triu_indices`."""
    return combinations_with_replacement(range(columns), 2)
