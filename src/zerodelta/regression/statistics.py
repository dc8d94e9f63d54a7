"""Linear regression from noisy XᵀX and Xᵀy: K-norm noise, Gaussian noise, AdaSSP (C10.5, A9).

Rows are integers, so the statistics are exact; statistics and noise are rounded as one sum to a
public lattice (Lemma R). The penalty and the solution are computed from noisy numbers only.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from flint import fmpz_mat, fmpz_poly

from zerodelta.channels.mixes import GaussianMix
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block, whole_rows
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.noise import rounded_gaussian, rounded_k_norm
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.exact.sums import IntegerArray, exact_product
from zerodelta.mechanisms.sum_noise import add_exactly
from zerodelta.privacy.claims import GaussianDP, calibrate
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Step
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.privacy.theorems.regression import (
    HALF_ROOT,
    GaussianSufficientStatistics,
    KNormSufficientStatistics,
)
from zerodelta.regression.features import Features
from zerodelta.regression.objective import TARGETS, Shape, limited
from zerodelta.spaces import Ball, BallLattice
from zerodelta.value import value

# -- Gaussian statistics --------------------------------------------------------------------------
# The exact sufficient statistics of linear regression, their noise and a ridge solution (C6).
#
# Rows are integers, so XᵀX, Xᵀy and the integer below λ_min(XᵀX) are exact, and the noise is
# exactly rounded: the joint guarantee is Gaussian DP with the sensitivities of theory A9.

Integers: TypeAlias = npt.NDArray[Any]

STEPS = 1 << 16
"""The public bounds of rows and targets in quanta."""


def below_smallest_eigenvalue(gram: Integers) -> int:
    """Return the largest integer strictly below λ_min of a positive semidefinite integer matrix.

    Exact: all roots of the characteristic polynomial p exceed k iff the coefficients of p(x + k)
    alternate in sign, none 0 (all roots are real). Its sensitivity is at most that of λ_min + 1.

    >>> below_smallest_eigenvalue(np.array([[2, 1], [1, 2]]))
    0
    """
    polynomial = fmpz_mat([[int(entry) for entry in row] for row in gram]).charpoly()
    degree = polynomial.degree()

    def above(k: int) -> bool:
        shifted = polynomial(fmpz_poly([k, 1]))
        return all(int(shifted[i]) * (-1) ** (degree - i) > 0 for i in range(degree + 1))

    low, step = -1, 1  # λ_min >= 0 > -1
    while above(low + step):
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return low


@value
class GaussianStatistics:
    """The exact integer sufficient statistics of bounded rows, and how they are noised.

    ‖x‖² <= A = steps² and |y| <= steps, in integers (theory C6).
    """

    dimension: int
    data_norm: Fraction
    target_bound: Fraction
    multiplier_squared: Fraction
    eigenvalue: bool

    @property
    def scale(self) -> float:
        """The bound of a target over that of a row."""
        return float(self.target_bound / self.data_norm)

    def step(self) -> Step:
        """Return C6 with its numbers."""
        return _theorem(self.multiplier_squared, self.eigenvalue).step()

    def claim(self) -> GaussianDP:
        """Return what the noisy statistics satisfy together."""
        theorem = _theorem(self.multiplier_squared, self.eigenvalue)
        return cast(GaussianDP, theorem.claim(Neighbors.REPLACE))

    def solve(
        self,
        rows: Rows,
        bits: BitSource,
        *,
        ridge: float,
        caution: float = 0.0,
    ) -> Floats:
        """Return the ridge solution on noisy statistics, 0 where there is none: internal.

        The target is the last column. The penalty lifts the smallest eigenvalue to ridge·m·A: as
        seen by the noisy λ_min less `caution`·m·A if it was queried, else by the noisy matrix
        itself (post-processing).
        """
        gram, moments = self._exact(rows)
        squared, d = self.multiplier_squared, self.dimension
        bound = STEPS**2
        upper_triangle = np.triu_indices(d, 1)
        diagonal = _noised(np.diagonal(gram), squared * bound**2, bits)
        beside = _noised(gram[upper_triangle], squared * bound**2 / 2, bits)
        noisy_moments = _noised(moments, squared * bound * STEPS**2, bits)
        unit = math.sqrt(squared) * bound
        matrix = np.zeros((d, d))
        matrix[upper_triangle] = beside.astype(np.float64)
        matrix = matrix + matrix.T + np.diag(diagonal.astype(np.float64))
        if self.eigenvalue:
            smallest = np.array([below_smallest_eigenvalue(gram)])
            seen = float(_noised(smallest, squared * bound**2, bits)[0]) - caution * unit
        else:
            seen = None
        return self._ridge(matrix, noisy_moments.astype(np.float64), seen, ridge * unit)

    def _ridge(
        self, matrix: Floats, moments: Floats, smallest: float | None, wanted: float
    ) -> Floats:
        """Post-processing; what cannot be solved becomes 0 (theory A9)."""
        try:
            with np.errstate(all="ignore"):
                if smallest is None:
                    smallest = float(np.linalg.eigvalsh(matrix)[0])
                else:
                    smallest = max(0.0, smallest)
                penalty = max(0.0, wanted - smallest)
                theta = np.linalg.solve(matrix + penalty * np.eye(self.dimension), moments)
        except Exception:  # singular: an exception would be an output
            return np.zeros(self.dimension)
        solved = np.asarray(theta * self.scale, dtype=np.float64)
        return solved if np.isfinite(solved).all() else np.zeros(self.dimension)

    def _exact(self, rows: Rows) -> tuple[Integers, Integers]:
        x_lattice = FixedPoint.ball(dimension=self.dimension, bound=self.data_norm, steps=STEPS)
        y_lattice = FixedPoint.ball(
            dimension=1, bound=self.target_bound, norm=math.inf, steps=STEPS
        )
        d, both = self.dimension, (STEPS, STEPS)

        def products(block: Block) -> Any:  # may run elsewhere
            whole = whole_rows(block)  # with a missing cell: the zero row
            x, y = x_lattice.quantize(whole[:, :-1]), y_lattice.quantize(whole[:, -1:])
            return exact_product(x, np.column_stack([x, y]), bounds=both)

        every = range(len(rows.columns))
        total = rows.total(products, every, shape=(d, d + 1), bound=STEPS**2)
        return total[:, :-1], total[:, -1]


def _noised(sums: Integers, variance: Fraction, bits: BitSource) -> Integers:
    return add_exactly(
        np.ascontiguousarray(sums), rounded_gaussian(variance=variance, size=len(sums), bits=bits)
    )


# -- Adassp ---------------------------------------------------------------------------------------
# AdaSSP through a lattice: Gaussian noise on XᵀX and Xᵀy, purified without extra ε (theory C6).


@value
class LatticeAdassp:
    """The plan: statistics with noise, a penalty, and the lattice on which coefficients leave.

    The penalty comes from the noisy matrix itself, so there is no eigenvalue query.
    """

    statistics: GaussianStatistics
    channel: GaussianMix
    ridge: float
    """What the penalty lifts the smallest eigenvalue to, in units of the noise."""

    @staticmethod
    def plan(
        *,
        rows: int,
        dimension: int,
        data_norm: Rational,
        target_bound: Rational,
        epsilon: Rational,
        mixing_weight: Rational,
        resolution: int | None = None,
        ridge_factor: float = 2.0,
    ) -> LatticeAdassp:
        """Calibrate; `resolution` is the trust radius in lattice spacings (default: the rows).

        μ² = (9/2)/m² and ln δ(ε) + ln(1/q_min) <= ln(w/(1-w)) + ln(e^ε-1) (theory C6, R(v)).
        """
        exact, weight = as_positive(epsilon, "epsilon"), as_weight(mixing_weight)
        ridge_factor = float(as_positive(ridge_factor, "ridge_factor"))
        steps = max(rows, 16) if resolution is None else resolution
        steps = as_count(steps, "resolution", minimum=1)
        # the net in units of its spacing does not depend on the radius: δ comes before the noise
        unit = BallLattice(ball=Ball(dimension, steps), spacing=Fraction(1))
        net = GaussianMix(lattice=unit, mixing_weight=weight)
        statistics = calibrated_statistics(
            dimension,
            data_norm,
            target_bound,
            epsilon=exact,
            log_delta=min(net.log_delta_required(exact), -(2.0**-20)),
            eigenvalue=False,
        )
        radius = trust_radius(
            rows=rows,
            dimension=dimension,
            multiplier=math.sqrt(statistics.multiplier_squared),
            ridge_factor=ridge_factor,
            scale=statistics.scale,
        )
        lattice = BallLattice(ball=Ball(dimension, radius), spacing=radius / steps)
        return LatticeAdassp(
            statistics=statistics,
            channel=GaussianMix(lattice=lattice, mixing_weight=weight),
            ridge=ridge_factor * math.sqrt(dimension),
        )

    @property
    def steps(self) -> tuple[Step, Step]:
        """The two steps of the certificate."""
        return self.statistics.step(), self.channel.step()

    def answer(self, rows: Rows, bits: BitSource) -> Floats:
        """Return the published coefficients; the target is the last column of the rows."""
        solved = self.statistics.solve(rows, bits, ridge=self.ridge)
        return self.channel.apply(solved, bits)


def trust_radius(
    *, rows: int, dimension: int, multiplier: float, ridge_factor: float, scale: float
) -> Fraction:
    """Return R̃ = (n + m(√d+3))/(C√d·m)·‖Y‖/‖X‖: with high probability ‖θ̃‖ is below it.

    theory A9: a formula of public quantities only; a bad radius costs accuracy, never privacy.
    `scale` is ‖Y‖/‖X‖, `ridge_factor` the C with which the penalized matrix is at least C√d·m·A.
    """
    top = rows + multiplier * (math.sqrt(dimension) + 3)
    return Fraction(top / (ridge_factor * math.sqrt(dimension) * multiplier) * scale)


def _theorem(multiplier_squared: Fraction, eigenvalue: bool) -> GaussianSufficientStatistics:
    """Return C6 for rows in steps."""
    return GaussianSufficientStatistics(
        row_bound_squared=STEPS**2,
        multiplier_squared=multiplier_squared,
        eigenvalue=int(eigenvalue),
    )


def calibrated_statistics(
    dimension: int,
    data_norm: Rational,
    target_bound: Rational,
    *,
    epsilon: Rational,
    log_delta: float,
    eigenvalue: bool,
) -> GaussianStatistics:
    """Return the statistics with the smallest noise that meets (ε, ln δ)."""
    # theory A9: joint sensitivity² 16/3 (9/2 without the eigenvalue), and the exact Gaussian
    # profile, instead of three add-remove mechanisms of (ε/3, δ/3)
    shift = _theorem(Fraction(1), eigenvalue).sensitivity_squared(Neighbors.REPLACE)
    allowed = calibrate(epsilon=epsilon, log_delta=log_delta).mu_squared
    return GaussianStatistics(
        dimension=dimension,
        data_norm=as_positive(data_norm, "data_norm"),
        target_bound=as_positive(target_bound, "target_bound"),
        multiplier_squared=shift / allowed,
        eigenvalue=eigenvalue,
    )


def adassp_error(
    statistics: GaussianStatistics,
    *,
    rows: int,
    ridge: float,
    caution: float = 0.0,
    added: Fraction | int = 0,
    random: Fraction | int = 0,
) -> float:
    """Return the excess of the mean squared error to expect, from public numbers.

    For rows and targets as in `Expected`: XᵀX = v·I. With the penalty λ it is what the noise of
    variance m²(1 + ‖θ‖²/2) makes of (XᵀX + λI)⁻¹, and the bias λθ/(v + λ). `added` is the squared
    length of what purification adds to θ, `random` that of a random point, times its probability.
    """
    d, noise = statistics.dimension, math.sqrt(statistics.multiplier_squared)
    variance = TARGETS.row_length**2 / d  # of a row in any direction
    v = rows * variance
    penalty = max(0.0, ridge * noise - max(0.0, v - caution * noise))
    length = TARGETS.explained / variance
    spread = d * variance * noise**2 * (1 + length / 2) / (v + penalty) ** 2
    bias = TARGETS.explained * (penalty / (v + penalty)) ** 2
    inner = (spread + bias) * float(statistics.target_bound) ** 2
    return inner + variance * float(statistics.data_norm) ** 2 * float(added + random)


LENGTH = 1 << 20
"""A row of length `data_norm`, and a target at its bound, in steps."""

_MOST_ROWS = (1 << 53) // LENGTH**2
"""A block of so many rows has products whose partial sums are exact in float64."""

_ROOT_WEIGHT = Fraction(5, 4)
"""√κ: between 1, best for large coefficients, and √2, best for small ones."""

_NOISE_STEPS = 12
"""The scale of the noise is at least 2^12 lattice spacings: rounding adds nothing to it."""

_RIDGE = 1.0
"""The penalty lifts the smallest eigenvalue to so many times the noise's typical norm."""


@value
class StatisticsPlan:
    """The noise on the statistics of rows with `columns` numbers, the intercept's included."""

    columns: int
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
        places = combinations_with_replacement(range(self.columns), 2)  # as np.triu_indices
        scales = [diagonal if i == j else beside for i, j in places]
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
    """Return the excess of the mean squared error to expect of noisy statistics.

    Of (XᵀX)⁻¹(E₂ - E₁θ), for rows spread evenly over all directions and coefficients that explain
    a typical part of the targets; never more than that part, which the penalty sees to.
    """
    expected = shape.expected or TARGETS
    variances = expected.variances(shape.columns, intercept=shape.intercept)
    noise = moment_deviation**2 + gram_deviation**2 * expected.explained / variances[0] / 2
    excess = sum(noise / variance for variance in variances) / max(1, shape.rows) ** 2
    return limited(excess, expected.explained)


def exact_statistics(features: Features, rows: Rows) -> IntegerArray:
    """Return the upper triangle of XᵀX, line by line, and Xᵀy, as exact integers.

    Targets, the last column, lie in [-1, 1]; a NaN makes its row count as empty. Rows are integers
    of length at most 2^20 and so are targets, so every partial sum of at most 8192 rows is below
    2^53: exact in BLAS.
    """
    d, width = features.dimension, features.width

    def products(block: Floats) -> IntegerArray:  # may run elsewhere
        total = np.zeros((width + 1, width + 1), dtype=np.int64)
        for start in range(0, len(block), _MOST_ROWS):
            given = block[start : start + _MOST_ROWS]
            target = given[:, -1]
            part, rest = np.empty((len(given), d)), np.empty((width + 1 - d, len(given)))
            empty = features.quantize(given[:, :-1], part) | np.isnan(target)
            rest[0] = features.constant  # overwritten by the targets if there is no intercept
            rest[-1] = np.trunc(target * LENGTH)
            if empty.any():
                part[empty], rest[:, empty] = 0.0, 0.0
            total[:d, :d] += (part.T @ part).astype(np.int64)
            total[:d, d:] += (rest @ part).T.astype(np.int64)
            total[d:, d:] += (rest @ rest.T).astype(np.int64)
        return total

    shape = (width + 1, width + 1)
    total = rows.total(products, range(d + 1), shape=shape, bound=LENGTH**2)
    return np.concatenate([total[:-1, :-1][np.triu_indices(width)], total[:-1, -1]])
