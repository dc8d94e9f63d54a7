"""Sums of products of columns with K-norm noise, for covariances and principal axes (theory R).

A row k of integers, with a public constant as its last entry, adds k kᵀ. In the Frobenius norm two
such matrices differ by at most √2 times the largest squared length, for one is never minus the
other: ‖k kᵀ - l lᵀ‖² = |k|⁴ + |l|⁴ - 2 (k·l)². Entry by entry they differ by at most twice the
largest entry.
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
from zerodelta.exact.rational import Rational, as_rational
from zerodelta.exact.sums import IntegerArray, exact_product
from zerodelta.mechanisms.sum_noise import KNorm
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors, as_usable_epsilon
from zerodelta.regression.encoded_columns import ColumnBounds, variance_kept
from zerodelta.spine.plan import Facts, Method, choose, ranked
from zerodelta.spine.public_inputs import bounds_by_column
from zerodelta.value import value

_Norm: TypeAlias = Literal["frobenius", "max"]

STEPS = 1 << 16
"""Half the width of the bounds, or the length of the longest row, in steps."""

DIAGONAL, BESIDE = 70, 99
"""The Frobenius norm counts what is beside the diagonal twice: there integers are larger by 99/70,
which exceeds √2 by less than 1/10000, so √2 times a matrix norm is at most 99 of theirs."""

_HALF_ROOT = Fraction(BESIDE, 1) * Fraction(7072, 10_000)
"""An upper limit of 99/√2."""

_MOST_COLUMNS = 1000


@value(eq=False)
class Products:
    """How rows become integers: of a box, of a ball, or of a box and then of a ball."""

    lattice: FixedPoint
    scaled: ColumnBounds | None
    """Columns are scaled to [-1, 1] by these bounds first."""
    unit: Floats
    """One step of each column, in the unit of the data."""
    middle: Floats

    @staticmethod
    def of(
        columns: int, *, bounds: Any, data_norm: Rational | None, radius: float | None = None
    ) -> Products:
        """Check what is public of the rows; with `radius` a box is cut to a ball.

        The ball ends so far on the way from the middle of the bounds to a corner, but not before
        the faces.
        """
        require(
            1 <= columns <= _MOST_COLUMNS,
            "columns",
            columns,
            expected=f"1 to {_MOST_COLUMNS} columns",
            remedy="name some of them",
        )
        require(
            (bounds is None) != (data_norm is None),
            "bounds, data_norm",
            (bounds, data_norm),
            expected="exactly one public bound on the rows",
            remedy="pass bounds=(lower, upper), or data_norm= the largest l2 norm a row can have",
        )
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
    def bias(self) -> float:
        """What a covariance loses, averaged, if rows in a corner that are cut differ in size only.

        Those rows fill a quarter of each column's bounds, at an end (`RowBox`).
        """
        if self.scaled is None:
            return 0.0
        reach = float(self.lattice.bound) / math.sqrt(self.columns)  # type: ignore[arg-type]
        lost = variance_kept(1.0) - variance_kept(reach)
        return lost * float(np.mean(np.outer(self.scaled.half, self.scaled.half)))

    def beyond(self, rows: Block) -> npt.NDArray[np.bool_]:
        """Tell which rows are longer than the ball, and cut; each is added up by itself."""
        if self.scaled is None:
            return np.zeros(len(rows), dtype=np.bool_)
        scaled = self.scaled.scaled(rows)
        squares = np.cumsum(scaled * scaled, axis=1)[:, -1]
        return np.asarray(squares > float(self.lattice.bound) ** 2)  # type: ignore[arg-type]

    @property
    def square(self) -> int:
        """The largest squared length of an integer row."""
        return STEPS**2 * (self.columns if self.lattice.norm == math.inf else 1)

    def integers(self, rows: Block, *, counted: bool) -> npt.NDArray[np.int64]:
        """Return integer rows; one with a missing cell is left out, or at the center."""
        if counted:
            rows = rows[~np.isnan(rows).any(axis=1)]
        whole = whole_rows(rows)
        return self.lattice.quantize(whole if self.scaled is None else self.scaled.scaled(whole))


@value(eq=False)
class ProductNoise:
    """Noise on all sums of products, of sums, and of the number of rows where that is private."""

    products: Products
    norm: _Norm
    counted: bool
    expected_rows: int
    mechanism: KNorm

    @staticmethod
    def of(
        products: Products,
        norm: _Norm,
        *,
        epsilon: Fraction,
        counted: bool,
        expected_rows: int,
        neighbors: Neighbors,
    ) -> ProductNoise:
        """Calibrate it."""
        width, replaced = products.columns + 1, neighbors is Neighbors.REPLACE
        dimension = width * (width + 1) // 2 - (not counted)
        if norm == "max":
            sensitivity: Fraction = Fraction(STEPS**2 * (2 if replaced else 1))
        else:
            length = products.square + _constant(products, norm) ** 2
            sensitivity = length * (Fraction(BESIDE) if replaced else _HALF_ROOT)
        mechanism = KNorm.for_epsilon(
            epsilon=epsilon,
            norm=math.inf if norm == "max" else 2,
            dimension=dimension,
            sensitivity=sensitivity,
            neighbors=neighbors,
        )
        return ProductNoise(
            products=products,
            norm=norm,
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
        beside: bool = False,
    ) -> tuple[ProductNoise, tuple[Method, ...]]:
        """Return the noise by the method of this name or, with "auto", of the least error.

        With `beside` that of the entries beside the diagonal alone.
        """
        norms: tuple[_Norm, ...] = ("frobenius", "max")
        each = {
            norm: ProductNoise.of(
                products,
                norm,
                epsilon=as_usable_epsilon(epsilon),
                counted=facts.may_miss or facts.rows is None,
                expected_rows=max(1, facts.planned_rows),
                neighbors=facts.neighbors,
            )
            for norm in norms
        }
        why = {
            "frobenius": "noise in the norm of rows of bounded length",
            "max": "noise in the norm of columns within bounds of their own",
        }
        methods = ranked(
            *(
                Method(
                    name=name,
                    error=noise.error_beside if beside else noise.error,
                    spends=f"ε on {noise.mechanism.dimension} sums together",
                    why=why[name],
                )
                for name, noise in each.items()
            )
        )
        return each[choose(methods, method).name], methods  # type: ignore[index]

    @property
    def constant(self) -> int:
        """The last entry of every row."""
        return _constant(self.products, self.norm)

    @property
    def _weights(self) -> npt.NDArray[np.int64]:
        """What the entries of the upper triangle are multiplied by before there is noise."""
        first, second = np.triu_indices(self.products.columns + 1)
        if self.norm == "max":  # 2k² - s² has the range of k l
            found = np.where((first == second) & (second < self.products.columns), 2, 1)
        else:
            found = np.where(first == second, DIAGONAL, BESIDE)
        return found if self.counted else found[:-1]

    def handed(self, rows: Rows) -> IntegerArray:
        """Return what the noise is added to: the upper triangle, line by line."""
        width, constant = self.products.columns + 1, self.constant

        def part(block: Block) -> IntegerArray:
            found = self.products.integers(block, counted=self.counted)
            whole = np.column_stack([found, np.full(len(found), constant, dtype=np.int64)])
            most = max(STEPS, constant)
            return exact_product(whole, whole, bounds=(most, most)).reshape(-1)

        total = rows.total(
            part,
            list(range(width - 1)),
            shape=(width * width,),
            bound=max(STEPS, constant) ** 2,
        )
        exact: Any = total.reshape(width, width).astype(object)
        triangle = exact[np.triu_indices(width)]
        vector = triangle[: len(self._weights)] * self._weights
        if self.norm == "max":  # a row that counts has the constant s: its square is s²
            vector = vector - exact[-1, -1] * self._squares[: len(vector)]
        handed: IntegerArray = vector
        return handed

    @property
    def _squares(self) -> npt.NDArray[np.int64]:
        first, second = np.triu_indices(self.products.columns + 1)
        squares = (first == second) & (second < self.products.columns)
        return np.asarray(squares, dtype=np.int64)

    def release(self, rows: Rows, bits: BitSource) -> NoisyMoments:
        """Measure, add noise, and read means and covariances off it."""
        return self.moments(self.mechanism.apply(self.handed(rows), bits))

    def moments(self, drawn: IntegerArray) -> NoisyMoments:
        """Read means and covariances off noisy integers."""
        noisy = drawn.astype(np.float64)
        width, steps = self.products.columns + 1, float(STEPS)
        count = float(self.expected_rows)
        if self.counted:
            count = float(noisy[-1]) / self._weights[-1] / self.constant**2
        triangle = np.zeros(width * (width + 1) // 2)
        triangle[: len(noisy)] = noisy
        if self.norm == "max":
            triangle += self._squares * (count * steps**2)
        triangle[: len(noisy)] /= self._weights
        matrix = np.zeros((width, width))
        matrix[np.triu_indices(width)] = triangle
        matrix = np.triu(matrix) + np.triu(matrix, 1).T
        unit = self.products.unit * steps
        if count < 1:  # nothing is known: the middle of the bounds, and no spread
            nothing = np.zeros(width - 1)
            return NoisyMoments(mean=self.products.middle, scaled=np.diag(nothing), unit=unit)
        mean = np.clip(matrix[:-1, -1] / self.constant / count / steps, -1.0, 1.0)
        spread = matrix[:-1, :-1] / count / steps**2 - np.outer(mean, mean)
        return NoisyMoments(
            mean=self.products.middle + unit * mean, scaled=positive_part(spread), unit=unit
        )

    @property
    def deviations(self) -> Floats:
        """The standard deviation of the noise on each variance, before it is made positive."""
        d = self.mechanism.dimension
        spread = math.sqrt((d + 1) * (d + 2) / 3 if self.norm == "max" else d + 1)
        weight = 2 if self.norm == "max" else DIAGONAL
        each = float(self.mechanism.scale) * spread / weight / self.expected_rows
        return np.asarray(each * self.products.unit**2)

    @property
    def error(self) -> float:
        """The expected absolute error of a covariance, averaged, for rows around the middle."""
        return float(np.mean(self._errors))

    @property
    def error_beside(self) -> float:
        """The same of two columns that differ: of correlations the diagonal is known."""
        several = self.products.columns > 1
        return float(np.mean(self._errors[np.triu_indices_from(self._errors, int(several))]))

    @property
    def _errors(self) -> Floats:
        unit, columns = self.products.unit, self.products.columns
        inside, beside = (2, 1) if self.norm == "max" else (DIAGONAL, BESIDE)
        each = self.mechanism.error() / self.expected_rows
        weights = np.where(np.eye(columns, dtype=np.bool_), 1 / inside, 1 / beside)
        return np.asarray(np.outer(unit, unit) * weights * each)

    @property
    def claim(self) -> PureDP:
        """What one release costs."""
        return self.mechanism.claim


def _check_size(width: Fraction, name: str, given: Any) -> None:
    """Refuse bounds whose squares are no floats."""
    require(
        Fraction(1, 10**100) <= width <= 10**100,
        name,
        given,
        expected="widths from 1e-100 to 1e100: products of columns are to be floats",
        remedy="rescale the columns",
    )


def _constant(products: Products, norm: _Norm) -> int:
    """Return the last entry of every row: half the longest row, or one among equals."""
    return STEPS if norm == "max" else math.isqrt(products.square) // 2


@value(eq=False)
class NoisyMoments:
    """Noisy means, and a noisy covariance matrix without negative eigenvalues."""

    mean: Floats
    scaled: Floats
    """The covariances of the columns divided by `unit`."""
    unit: Floats
    """Half the width of the bounds, or the longest row."""

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
    found = (vectors * np.maximum(values, 0.0)) @ vectors.T
    # values inside [-1, 1] have no larger variance
    shrink = 1 / np.sqrt(np.maximum(1.0, np.diag(found)))
    return np.asarray(found * np.outer(shrink, shrink))


def eigenvectors(matrix: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues, smallest first, and eigenvectors of a symmetric matrix.

    An exception would be an output: where they cannot be found they are those of no matrix.
    """
    try:
        values, vectors = np.linalg.eigh(matrix)
    except np.linalg.LinAlgError:
        return np.zeros(len(matrix)), np.eye(len(matrix))
    return np.asarray(values), np.asarray(vectors)


def _floats(exact: Any) -> Floats:
    return np.array([float(value) for value in exact])
