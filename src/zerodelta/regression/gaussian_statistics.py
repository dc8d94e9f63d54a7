"""The exact sufficient statistics of linear regression, their noise and a ridge solution (C6).

Rows are integers, so XᵀX, Xᵀy and the integer below λ_min(XᵀX) are exact, and the noise is exactly
rounded: the joint guarantee is Gaussian DP with the sensitivities of theory A9.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from flint import fmpz_mat, fmpz_poly

from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block, whole_rows
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.exact_sums import exact_product
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.noise import rounded_gaussian
from zerodelta.mechanisms.integer_sums import add_exactly
from zerodelta.privacy.claims import GaussianDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.sufficient_statistics import statistics_mu_squared
from zerodelta.value import value

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
        numbers = {
            "row_bound_squared": STEPS**2,
            "multiplier_squared": self.multiplier_squared,
            "eigenvalue": int(self.eigenvalue),
        }
        return Step(theorem="gaussian-sufficient-statistics", numbers=numbers)

    def claim(self) -> GaussianDP:
        """Return what the noisy statistics satisfy together."""
        mu_squared = statistics_mu_squared(
            row_bound_squared=STEPS**2,
            multiplier_squared=self.multiplier_squared,
            eigenvalue=self.eigenvalue,
            neighbors=Neighbors.REPLACE,
        )
        return GaussianDP(mu_squared=mu_squared)

    def solve(
        self,
        rows: Rows,
        bits: BitSource,
        *,
        ridge: float,
        caution: float = 0.0,
        prepare: Callable[[Block], Block] | None = None,
    ) -> Floats:
        """Return the ridge solution on noisy statistics, 0 where there is none: internal.

        The target is the last column; `prepare` makes the features of the others. The penalty lifts
        the smallest eigenvalue to ridge·m·A: as seen by the noisy λ_min less `caution`·m·A if it
        was queried, else by the noisy matrix itself (post-processing).
        """
        gram, moments = self._exact(rows, prepare)
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

    def _exact(
        self, rows: Rows, prepare: Callable[[Block], Block] | None = None
    ) -> tuple[Integers, Integers]:
        x_lattice = FixedPoint.ball(dimension=self.dimension, bound=self.data_norm, steps=STEPS)
        y_lattice = FixedPoint.ball(
            dimension=1, bound=self.target_bound, norm=math.inf, steps=STEPS
        )
        d, both = self.dimension, (STEPS, STEPS)

        def products(block: Block) -> Any:  # may run elsewhere
            if prepare is not None:
                block = np.column_stack([prepare(block[:, :-1]), block[:, -1]])
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
