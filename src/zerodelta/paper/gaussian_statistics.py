"""Compute AdaSSP's sufficient statistics with Gaussian noise, and the ridge solution (A9, C6).

Rows are integers, so XᵀX, Xᵀy and the integer below λ_min(XᵀX) are exact, and the noise is exactly
rounded: the joint guarantee is Gaussian DP with the sensitivities of theory A9. The penalty and the
solution are computed from noisy numbers only.
"""

from __future__ import annotations

import math
from fractions import Fraction
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
from zerodelta.exact.noise import rounded_gaussian
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.exact.sums import exact_product
from zerodelta.mechanisms.sum_noise import add_exactly
from zerodelta.privacy.claims import GaussianDP, calibrate
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Step
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.privacy.theorems.regression import GaussianSufficientStatistics
from zerodelta.regression.objective import TARGETS
from zerodelta.spaces import Ball, BallLattice
from zerodelta.value import value

Integers: TypeAlias = npt.NDArray[Any]

STEPS = 1 << 16
"""The public bounds of rows and targets in quanta."""


def below_smallest_eigenvalue(gram: Integers) -> int:
    """Return the largest integer strictly below λ_min of a positive semidefinite integer matrix.

    It is exact: as all roots of the characteristic polynomial p are real, they exceed k if and only
    if the coefficients of p(x + k) are nonzero and alternate in sign. Its sensitivity is at most
    that of λ_min plus 1.

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
    """The public parameters of noisy sufficient statistics.

    Rows are integers with ‖x‖² <= A = steps² and |y| <= steps (theory C6).
    """

    dimension: int
    data_norm: Fraction
    target_bound: Fraction
    multiplier_squared: Fraction
    """m²: the noise on the diagonal of XᵀX has standard deviation m·A."""
    eigenvalue: bool
    """Whether λ_min(XᵀX) is measured, too."""

    @property
    def scale(self) -> float:
        """The bound of a target over that of a row."""
        return float(self.target_bound / self.data_norm)

    def step(self) -> Step:
        """Return C6 with its numbers."""
        return _theorem(self.multiplier_squared, self.eigenvalue).step()

    def claim(self) -> GaussianDP:
        """Return the joint claim of the noisy statistics."""
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
        """Return the ridge solution from noisy statistics, an internal answer; 0 if it fails.

        The target is the last column. The penalty raises the smallest eigenvalue to ridge·m·A. The
        eigenvalue is estimated by the noisy λ_min less `caution`·m·A if it is measured, else by
        that of the noisy matrix (post-processing).
        """
        gram, moments = self._exact(rows)
        squared, d = self.multiplier_squared, self.dimension
        bound = STEPS**2
        upper_triangle = np.triu_indices(d, 1)
        diagonal = _noised(np.diagonal(gram), squared * bound**2, bits)
        off_diagonal = _noised(gram[upper_triangle], squared * bound**2 / 2, bits)
        noisy_moments = _noised(moments, squared * bound * STEPS**2, bits)
        unit = math.sqrt(squared) * bound
        matrix = np.zeros((d, d))
        matrix[upper_triangle] = off_diagonal.astype(np.float64)
        matrix = matrix + matrix.T + np.diag(diagonal.astype(np.float64))
        if self.eigenvalue:
            exact = np.array([below_smallest_eigenvalue(gram)])
            smallest = float(_noised(exact, squared * bound**2, bits)[0]) - caution * unit
        else:
            smallest = None
        return self._ridge(matrix, noisy_moments.astype(np.float64), smallest, ridge * unit)

    def _ridge(
        self, matrix: Floats, moments: Floats, smallest: float | None, target: float
    ) -> Floats:
        """Solve with a penalty that raises the smallest eigenvalue to `target`; 0 if it fails.

        This is post-processing of noisy numbers (theory A9).
        """
        try:
            with np.errstate(all="ignore"):
                if smallest is None:
                    smallest = float(np.linalg.eigvalsh(matrix)[0])
                else:
                    smallest = max(0.0, smallest)
                penalty = max(0.0, target - smallest)
                theta = np.linalg.solve(matrix + penalty * np.eye(self.dimension), moments)
        except Exception:  # a singular matrix: an exception would be an output
            return np.zeros(self.dimension)
        solved = np.asarray(theta * self.scale, dtype=np.float64)
        return solved if np.isfinite(solved).all() else np.zeros(self.dimension)

    def _exact(self, rows: Rows) -> tuple[Integers, Integers]:
        """Return XᵀX and Xᵀy as exact integers."""
        x_lattice = FixedPoint.ball(dimension=self.dimension, bound=self.data_norm, steps=STEPS)
        y_lattice = FixedPoint.ball(
            dimension=1, bound=self.target_bound, norm=math.inf, steps=STEPS
        )
        d, both = self.dimension, (STEPS, STEPS)

        def products(block: Block) -> Any:  # may run on a cluster
            complete = whole_rows(block)  # a row with a missing cell becomes the zero row
            x, y = x_lattice.quantize(complete[:, :-1]), y_lattice.quantize(complete[:, -1:])
            return exact_product(x, np.column_stack([x, y]), bounds=both)

        columns = range(len(rows.columns))
        total = rows.total(products, columns, shape=(d, d + 1), bound=STEPS**2)
        return total[:, :-1], total[:, -1]


def _noised(sums: Integers, variance: Fraction, bits: BitSource) -> Integers:
    """Add rounded Gaussian noise to integers."""
    return add_exactly(
        np.ascontiguousarray(sums), rounded_gaussian(variance=variance, size=len(sums), bits=bits)
    )


# -- AdaSSP through a lattice: Gaussian noise on XᵀX and Xᵀy, purified without extra ε (theory C6) -


@value
class LatticeAdassp:
    """The plan of `lattice_adassp`: noisy statistics, a penalty, and the lattice of the output.

    The penalty is computed from the noisy matrix, without a query for its smallest eigenvalue.
    """

    statistics: GaussianStatistics
    channel: GaussianMix
    ridge: float
    """The value to which the penalty raises the smallest eigenvalue, in units of the noise."""

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
        """Calibrate Gaussian noise on the sums, and the lattice of the solution, to ε.

        `resolution` is the trust radius in lattice spacings, by default the number of rows. The
        condition is μ² = (9/2)/m² and ln δ(ε) + ln(1/q_min) <= ln(w/(1-w)) + ln(e^ε-1) (theory C6,
        R(v)).
        """
        exact, weight = as_positive(epsilon, "epsilon"), as_weight(mixing_weight)
        ridge_factor = float(as_positive(ridge_factor, "ridge_factor"))
        steps = max(rows, 16) if resolution is None else resolution
        steps = as_count(steps, "resolution", minimum=1)
        # δ depends on the lattice in units of its spacing only, so it is known before the noise and
        # the radius that follows from the noise
        unit_lattice = BallLattice(ball=Ball(dimension, steps), spacing=Fraction(1))
        unit_channel = GaussianMix(lattice=unit_lattice, mixing_weight=weight)
        statistics = calibrated_statistics(
            dimension,
            data_norm,
            target_bound,
            epsilon=exact,
            log_delta=min(unit_channel.log_delta_required(exact), -(2.0**-20)),
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
    """Return R̃ = (n + m(√d+3))/(C√d·m)·‖Y‖/‖X‖, which exceeds ‖θ̃‖ with high probability.

    It is a function of public numbers, and a bad radius costs accuracy, never privacy (theory A9).
    `scale` is ‖Y‖/‖X‖, and C = `ridge_factor` such that the penalized matrix is at least C√d·m·A.
    """
    numerator = rows + multiplier * (math.sqrt(dimension) + 3)
    return Fraction(numerator / (ridge_factor * math.sqrt(dimension) * multiplier) * scale)


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
    # theory A9: the joint squared sensitivity is 16/3 (9/2 without the eigenvalue), with the exact
    # Gaussian profile, where the paper has three add-remove mechanisms of (ε/3, δ/3)
    sensitivity = _theorem(Fraction(1), eigenvalue).sensitivity_squared(Neighbors.REPLACE)
    allowed = calibrate(epsilon=epsilon, log_delta=log_delta).mu_squared
    return GaussianStatistics(
        dimension=dimension,
        data_norm=as_positive(data_norm, "data_norm"),
        target_bound=as_positive(target_bound, "target_bound"),
        multiplier_squared=sensitivity / allowed,
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
    """Forecast the excess of the mean squared error from public numbers.

    Rows and targets are as in `Expected`, with XᵀX = v·I. With the penalty λ the excess has two
    parts: noise of variance m²(1 + ‖θ‖²/2) times (v + λ)⁻², and the bias λθ/(v + λ). `added` is the
    squared length of the error that purification adds to θ, and `random` the squared length of a
    random point times its probability.
    """
    d, noise = statistics.dimension, math.sqrt(statistics.multiplier_squared)
    variance = TARGETS.row_length**2 / d  # of a row in any direction
    v = rows * variance
    penalty = max(0.0, ridge * noise - max(0.0, v - caution * noise))
    squared_length = TARGETS.explained / variance
    spread = d * variance * noise**2 * (1 + squared_length / 2) / (v + penalty) ** 2
    bias = TARGETS.explained * (penalty / (v + penalty)) ** 2
    internal = (spread + bias) * float(statistics.target_bound) ** 2
    return internal + variance * float(statistics.data_norm) ** 2 * float(added + random)
