"""Measure sums of products of columns with noise, for covariances and axes (theory R, W2).

A row k of integers, with a public constant as its last entry, adds the matrix k kᵀ, of which matrix
Laplace noise needs the largest trace, the squared length of a row. In the Frobenius norm two such
matrices differ by at most √2 times the largest squared length, because
‖k kᵀ - l lᵀ‖² = |k|⁴ + |l|⁴ - 2 (k·l)². Each entry differs by at most twice the largest entry.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block, whole_rows
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_rational, bounds_by_column
from zerodelta.exact.sums import IntegerArray, exact_product
from zerodelta.mechanisms.sum_noise import (
    DIAGONAL,
    OFF_DIAGONAL,
    OFF_DIAGONAL_OVER_ROOT,
    KNorm,
    MatrixLaplace,
)
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors, as_usable_epsilon
from zerodelta.privacy.steps import Step
from zerodelta.regression.encoded_columns import ColumnBounds, variance_kept
from zerodelta.spine.plan import Facts, Method, choose, ranked
from zerodelta.tasks.statistics import check_one_bound
from zerodelta.value import value

_Noise: TypeAlias = Literal["matrix", "frobenius", "max"]

STEPS = 1 << 16
"""Half the width of the bounds, or the length of the longest row, in steps."""

_MOST_COLUMNS = 1000


@value(eq=False)
class Products:
    """The map from rows to integers: rows of a box, of a ball, or of a box cut to a ball."""

    lattice: FixedPoint
    scaled: ColumnBounds | None
    """The bounds by which columns are scaled to [-1, 1] before they are cut to the ball."""
    unit: Floats
    """One step of each column, in the unit of the data."""
    middle: Floats

    @staticmethod
    def of(
        columns: int, *, bounds: Any, data_norm: Rational | None, radius: float | None = None
    ) -> Products:
        """Return the map for public bounds or a public norm; with `radius` a box is cut to a ball.

        The radius of the ball is a fraction of the distance from the middle of the bounds to a
        corner, but at least the distance to the faces.
        """
        require(
            1 <= columns <= _MOST_COLUMNS,
            "columns",
            columns,
            expected=f"1 to {_MOST_COLUMNS} columns",
            remedy="name some of them",
        )
        check_one_bound(bounds, data_norm)
        if data_norm is not None:
            _check_size(abs(as_rational(data_norm, "data_norm")), "data_norm", data_norm)
            lattice = FixedPoint.ball(dimension=columns, bound=data_norm, steps=STEPS)
            unit = np.full(columns, float(lattice.bound) / STEPS)  # type: ignore[arg-type]
            return Products(lattice=lattice, scaled=None, unit=unit, middle=np.zeros(columns))
        lower, upper = zip(*bounds_by_column(bounds, columns), strict=True)
        ends = ColumnBounds(lower=_floats(lower), upper=_floats(upper))
        for low, high in zip(lower, upper, strict=True):
            _check_size(high - low, "bounds", bounds)
        length = math.sqrt(max(1.0, (radius or 1.0) ** 2 * columns))
        if radius is None or length >= math.sqrt(columns):
            lattice = FixedPoint.box(
                dimension=columns, lower=list(lower), upper=list(upper), steps=STEPS
            )
            return Products(
                lattice=lattice, scaled=None, unit=ends.half / STEPS, middle=ends.middle
            )
        lattice = FixedPoint.ball(dimension=columns, bound=length, steps=STEPS)
        unit = ends.half * (length / STEPS)
        return Products(lattice=lattice, scaled=ends, unit=unit, middle=ends.middle)

    @property
    def columns(self) -> int:
        """The number of columns."""
        return self.lattice.dimension

    @property
    def norm(self) -> Fraction | None:
        """The largest length of scaled rows, to which longer ones are cut; None without a ball."""
        return None if self.scaled is None else self.lattice.bound  # type: ignore[return-value]

    @property
    def bias(self) -> float:
        """The average loss of a covariance by cutting rows that lie in a corner of the bounds.

        These rows fill a quarter of each column's bounds, at an end, and differ in length only
        (`RowBox`).
        """
        if self.scaled is None:
            return 0.0
        reach = float(self.lattice.bound) / math.sqrt(self.columns)  # type: ignore[arg-type]
        loss = variance_kept(1.0) - variance_kept(reach)
        return loss * float(np.mean(np.outer(self.scaled.half, self.scaled.half)))

    def beyond(self, rows: Block) -> npt.NDArray[np.bool_]:
        """Tell which rows lie beyond the ball, and are cut."""
        if self.scaled is None:
            return np.zeros(len(rows), dtype=np.bool_)
        scaled = self.scaled.scaled(rows)
        # cumsum adds in the order of the columns: rounding does not depend on a row's position
        squares = np.cumsum(scaled * scaled, axis=1)[:, -1]
        return np.asarray(squares > float(self.lattice.bound) ** 2)  # type: ignore[arg-type]

    @property
    def square(self) -> int:
        """The largest squared length of an integer row."""
        return STEPS**2 * (self.columns if self.lattice.norm == math.inf else 1)

    def integers(self, rows: Block, *, counted: bool) -> npt.NDArray[np.int64]:
        """Return rows quantized on the lattice, missing cells left out or at the center.

        A row with a missing cell is left out if rows are `counted`, else it is at the center.
        """
        if counted:
            rows = rows[~np.isnan(rows).any(axis=1)]
        complete = whole_rows(rows)
        if self.scaled is not None:
            complete = self.scaled.scaled(complete)
        return self.lattice.quantize(complete)


@value(eq=False)
class ProductNoise:
    """Noise on the sums of products, on the sums, and on the number of rows if that is private."""

    products: Products
    kind: _Noise
    counted: bool
    expected_rows: int
    mechanism: KNorm | MatrixLaplace

    @staticmethod
    def of(
        products: Products,
        kind: _Noise,
        *,
        epsilon: Fraction,
        counted: bool,
        expected_rows: int,
        neighbors: Neighbors,
    ) -> ProductNoise:
        """Return the noise of one kind with exactly this ε."""
        width, replaced = products.columns + 1, neighbors is Neighbors.REPLACE
        squared_length = products.square + _constant(products, kind) ** 2
        factor = Fraction(OFF_DIAGONAL) if replaced else OFF_DIAGONAL_OVER_ROOT
        mechanism: KNorm | MatrixLaplace
        if kind == "matrix":
            mechanism = MatrixLaplace.for_epsilon(
                epsilon=epsilon,
                dimension=width,
                squared_length=Fraction(squared_length),
                neighbors=neighbors,
            )
        else:
            mechanism = KNorm.for_epsilon(
                epsilon=epsilon,
                norm=math.inf if kind == "max" else 2,
                dimension=width * (width + 1) // 2 - (not counted),
                sensitivity=Fraction(STEPS**2 * (2 if replaced else 1))
                if kind == "max"
                else squared_length * factor,
                neighbors=neighbors,
            )
        return ProductNoise(
            products=products,
            kind=kind,
            counted=counted,
            expected_rows=expected_rows,
            mechanism=mechanism,
        )

    @staticmethod
    def best(
        products: Products,
        facts: Facts,
        epsilon: Rational,
        method: str,
        *,
        off_diagonal: bool = False,
    ) -> tuple[ProductNoise, tuple[Method, ...]]:
        """Return the noise of the named method or, with "auto", of the one with the least error.

        With `off_diagonal` the errors are those of the entries off the diagonal.
        """
        kinds: tuple[_Noise, ...] = ("matrix", "frobenius", "max")
        noises = {
            kind: ProductNoise.of(
                products,
                kind,
                epsilon=as_usable_epsilon(epsilon),
                counted=facts.may_miss or facts.rows is None,
                expected_rows=max(1, facts.planned_rows),
                neighbors=facts.neighbors,
            )
            for kind in kinds
        }
        why = {
            "matrix": "the difference of two random Gram matrices",
            "frobenius": "noise in the norm of rows of bounded length",
            "max": "noise in the norm of columns with separate bounds",
        }
        methods = ranked(
            *(
                Method(
                    name=name,
                    error=noise.off_diagonal_error if off_diagonal else noise.error,
                    spends=f"ε on {len(noise.weights)} sums together",
                    why=why[name],
                )
                for name, noise in noises.items()
            )
        )
        return noises[choose(methods, method).name], methods  # type: ignore[index]

    @property
    def constant(self) -> int:
        """The last entry of every row."""
        return _constant(self.products, self.kind)

    @property
    def quantum(self) -> int:
        """The size of a released integer, in weighted sums."""
        return self.mechanism.quantum if isinstance(self.mechanism, MatrixLaplace) else 1

    def step(self) -> Step:
        """Return the proof step of one release."""
        if isinstance(self.mechanism, MatrixLaplace):
            return self.mechanism.step()
        return self.mechanism.step(quantum=None)

    @property
    def weights(self) -> npt.NDArray[np.int64]:
        """The factors of the entries of the upper triangle before noise is added."""
        first, second = np.triu_indices(self.products.columns + 1)
        if self.kind == "max":  # squares are measured as 2k² - s², which has the range of k·l
            weights = np.where((first == second) & (second < self.products.columns), 2, 1)
        else:
            weights = np.where(first == second, DIAGONAL, OFF_DIAGONAL)
        return weights if self.counted or self.kind == "matrix" else weights[:-1]

    def exact_sums(self, rows: Rows) -> IntegerArray:
        """Return the weighted upper triangle of the sums, line by line, to which noise is added."""
        width, constant = self.products.columns + 1, self.constant

        def part(block: Block) -> IntegerArray:
            """Return a block's exact products of all pairs of columns, and a constant."""
            integers = self.products.integers(block, counted=self.counted)
            extended = np.column_stack([integers, np.full(len(integers), constant, dtype=np.int64)])
            largest = max(STEPS, constant)
            return exact_product(extended, extended, bounds=(largest, largest)).reshape(-1)

        total = rows.total(
            part,
            list(range(width - 1)),
            shape=(width * width,),
            bound=max(STEPS, constant) ** 2,
        )
        exact: Any = total.reshape(width, width).astype(object)
        triangle = exact[np.triu_indices(width)]
        vector = triangle[: len(self.weights)] * self.weights
        if self.kind == "max":  # the last entry is the sum of s² over the rows that count
            vector = vector - exact[-1, -1] * self._squares[: len(vector)]
        sums: IntegerArray = vector
        return sums

    @property
    def _squares(self) -> npt.NDArray[np.int64]:
        """1 for the squares of columns in the upper triangle, else 0."""
        first, second = np.triu_indices(self.products.columns + 1)
        squares = (first == second) & (second < self.products.columns)
        return np.asarray(squares, dtype=np.int64)

    def release(self, rows: Rows, bits: BitSource) -> NoisyMoments:
        """Measure opened rows, add noise, and return means and covariances."""
        return self.moments(self.mechanism.apply(self.exact_sums(rows), bits))

    def moments(self, noisy_sums: IntegerArray) -> NoisyMoments:
        """Return means and covariances from the noisy sums of products of columns."""
        noisy = noisy_sums.astype(np.float64) * float(self.quantum)
        width, steps = self.products.columns + 1, float(STEPS)
        count = float(self.expected_rows)
        if self.counted:
            count = float(noisy[-1]) / self.weights[-1] / self.constant**2
        triangle = np.zeros(width * (width + 1) // 2)
        triangle[: len(noisy)] = noisy
        if self.kind == "max":
            triangle += self._squares * (count * steps**2)
        triangle[: len(noisy)] /= self.weights
        matrix = np.zeros((width, width))
        matrix[np.triu_indices(width)] = triangle
        matrix = np.triu(matrix) + np.triu(matrix, 1).T
        unit = self.products.unit * steps
        if count < 1:  # no rows seem to be there: the middle of the bounds, and no spread
            zeros = np.zeros((width - 1, width - 1))
            return NoisyMoments(
                mean=self.products.middle, scaled=zeros, unit=unit, noise=np.ones_like(zeros)
            )
        mean = np.clip(matrix[:-1, -1] / self.constant / count / steps, -1.0, 1.0)
        spread = matrix[:-1, :-1] / count / steps**2 - np.outer(mean, mean)
        return NoisyMoments(
            mean=self.products.middle + unit * mean,
            scaled=positive_part(spread),
            unit=unit,
            noise=self._noise_of_pairs(mean) / count,
        )

    def _noise_of_pairs(self, mean: Floats) -> Floats:
        """Return the standard deviation of the noise on Σ(y - μ)(z - ν) for means in [-1, 1].

        All weighted sums have the same variance, and are uncorrelated.
        """
        on, off = (1, 1) if self.kind == "max" else (DIAGONAL, OFF_DIAGONAL)
        shorter, one = STEPS / self.constant, (Fraction(1),)
        squares = mean**2
        of_sums = (squares[:, None] + squares) * shorter**2
        of_count = np.outer(squares, squares) * (shorter**2 * off / on) ** 2 * self.counted
        variance = self.mechanism.noise_law.on(Fraction(1)).noise.covariance(one, one)
        unit = self.quantum / off / float(STEPS) ** 2
        return np.asarray(np.sqrt(variance * (1 + of_sums + of_count)) * unit)

    @property
    def deviations(self) -> Floats:
        """The standard deviation of the noise on each variance, before negative ones are raised."""
        d = self.mechanism.dimension
        spread = math.sqrt((d + 1) * (d + 2) / 3 if self.kind == "max" else d + 1)
        weight = {"matrix": 1, "frobenius": DIAGONAL, "max": 2}[self.kind]
        of_square = float(self.mechanism.scale) * spread / weight / self.expected_rows
        return np.asarray(of_square * self.products.unit**2)

    @property
    def error(self) -> float:
        """The expected absolute error of a covariance, averaged, for rows around the middle."""
        return float(np.mean(self._errors))

    @property
    def off_diagonal_error(self) -> float:
        """The same for pairs of different columns: the diagonal of correlations is known."""
        above = self.products.columns > 1
        return float(np.mean(self._errors[np.triu_indices_from(self._errors, int(above))]))

    @property
    def _errors(self) -> Floats:
        """The expected absolute error of each entry of the covariance matrix."""
        unit, columns = self.products.unit, self.products.columns
        diagonal, off_diagonal = (2, 1) if self.kind == "max" else (DIAGONAL, OFF_DIAGONAL)
        weights = np.where(np.eye(columns, dtype=np.bool_), 1 / diagonal, 1 / off_diagonal)
        if isinstance(self.mechanism, MatrixLaplace):
            law, rows = self.mechanism.noise_law, self.expected_rows / self.quantum
            on, off = law.diagonal_error() / rows, law.error() / rows
            of_sum: Any = np.where(np.eye(columns, dtype=np.bool_), on, off)
        else:
            of_sum = self.mechanism.error() / self.expected_rows
        return np.asarray(np.outer(unit, unit) * weights * of_sum)

    @property
    def claim(self) -> PureDP:
        """The privacy claim of one release."""
        return self.mechanism.claim


def _check_size(width: Fraction, name: str, bound: Any) -> None:
    """Refuse bounds whose squares do not fit into floats."""
    require(
        Fraction(1, 10**100) <= width <= 10**100,
        name,
        bound,
        expected="widths from 1e-100 to 1e100, so that products of columns fit into floats",
        remedy="rescale the columns",
    )


def _constant(products: Products, kind: _Noise) -> int:
    """Return the last entry of every row: half the longest row, or the largest entry for "max"."""
    return STEPS if kind == "max" else math.isqrt(products.square) // 2


@value(eq=False)
class NoisyMoments:
    """Noisy means, and a noisy covariance matrix without negative eigenvalues."""

    mean: Floats
    scaled: Floats
    """The covariances of the columns divided by `unit`."""
    unit: Floats
    """Half the width of the bounds, or the longest row."""
    noise: Floats
    """The standard deviation of the noise on each covariance of two columns, divided by `unit`."""

    @property
    def covariance(self) -> Floats:
        """The covariances, in the unit of the data."""
        return np.asarray(self.scaled * np.outer(self.unit, self.unit))


def positive_part(matrix: Floats) -> Floats:
    """Return the nearest positive semi-definite matrix, with variances of at most 1.

    >>> positive_part(np.array([[0.5, 0.0], [0.0, -0.1]])).round(6).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    values, vectors = eigenvectors((matrix + matrix.T) / 2)
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    # values in [-1, 1] have a variance of at most 1
    shrink = 1 / np.sqrt(np.maximum(1.0, np.diag(positive)))
    return np.asarray(positive * np.outer(shrink, shrink))


def eigenvectors(matrix: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues, smallest first, and eigenvectors of a symmetric matrix.

    If the solver fails, the result is that of the zero matrix: an exception would be an output that
    depends on the data.
    """
    try:
        values, vectors = np.linalg.eigh(matrix)
    except np.linalg.LinAlgError:
        return np.zeros(len(matrix)), np.eye(len(matrix))
    return np.asarray(values), np.asarray(vectors)


def _floats(exact: Any) -> Floats:
    return np.array([float(value) for value in exact])
