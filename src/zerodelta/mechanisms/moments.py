"""Counts, sums, means and variances of columns by group, from one table of noisy integer sums.

How to use it, from public numbers to the estimates (theory P1, P2, G2)::

    plan = plan_moments(epsilon=1, bounds=[(0, 200_000)], groups=12, expected_rows=10_000)
    sums = plan.measure(rows, ["income"], by=["city"], sizes=[12])  # exact, (groups, cells)
    moments = plan.apply(sums, bits)                                # noise, then post-processing

One column is a partition of unity (`BernsteinCells`), several are an l∞ block for each group
(`ChebyshevBlock`, whose method is `coordinates`). For counts alone take `PartitionNoise` itself.
Where the number of rows is private no public bound keeps a sum below 2^63: add up batches in
Python integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.rowwise import Column, as_function
from zerodelta.data.source import Rows
from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.noise_law import NoiseLaw
from zerodelta.exact.rational import Rational, as_count, inner_ends
from zerodelta.exact.row_polynomials import BernsteinCells, ChebyshevBlock, Form
from zerodelta.mechanisms.partition_noise import BlockNoise, PartitionNoise
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.step import Step

__all__ = [
    "EXPECTED",
    "MomentPlan",
    "Moments",
    "plan_moments",
    "present_counts",
    "steps_for",
    "value_of",
]

Floats: TypeAlias = npt.NDArray[np.float64]

EXPECTED = 0.75
"""The expected absolute error over the standard error: 0.71 for Laplace noise, 0.75 for two."""

_LEAST_STEPS, _MOST_STEPS = 1 << 10, 1 << 52
_SUM_BITS = 62


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Moments:
    """Statistics of every group: values, or their standard errors.

    `rows` has one number for each group (NaN if rows were not counted), all others one for each
    group and column. `count` is the number of rows with a value, `variance` divides by it; without
    degree 2 it is None.
    """

    rows: Floats
    count: Floats
    sum: Floats
    mean: Floats
    variance: Floats | None


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class MomentPlan:
    """What a row adds, the noise on the sums, and how estimates follow from noisy sums.

    **Neighbors**, **Guarantee**: those of `noise`. Estimates are post-processing.
    **Public**: everything stored here.
    **Error**: `forecast`.
    """

    lattice: FixedPoint
    row: BernsteinCells | ChebyshevBlock
    noise: PartitionNoise | BlockNoise
    groups: int
    expected_rows: int

    @property
    def claim(self) -> PureDP:
        """What one release costs."""
        return self.noise.claim

    @property
    def steps(self) -> tuple[Step, ...]:
        """The proof."""
        return (self.noise.step(),)

    @property
    def law(self) -> NoiseLaw:
        """The law of the noise on the integer sums."""
        return self.noise.law(unit=Fraction(1))

    def measure(
        self,
        rows: Rows,
        of: Sequence[Column],
        *,
        by: Sequence[Column] = (),
        sizes: Sequence[int] = (),
    ) -> IntegerArray:
        """Return the exact (groups, cells) sums of opened rows; `by` as in `Rows.group_sums`."""
        row = self.row
        if isinstance(row, ChebyshevBlock) and not by and row.degree == 1 and not row.count_rows:
            # two passes over the rows, however many columns
            found = np.stack([present_counts(rows, of), rows.sum(list(of), self.lattice)], axis=1)
            return row.from_power_sums(list(found[:, None, :]), np.zeros(1, dtype=np.int64))
        each = [
            rows.group_sums(by, sizes, column, self._lattice_of(place), degree=self.row.degree)
            for place, column in enumerate(of)
        ]
        powers = [found[:, 1:] for found in each]
        if isinstance(row, ChebyshevBlock):
            return row.from_power_sums(powers, each[0][:, 0])
        absent = [(each[0][:, 0] - each[0][:, 1])[:, None]] if row.missing_cell else []
        return row.from_power_sums(np.concatenate([powers[0], *absent], axis=1))

    def _lattice_of(self, column: int) -> FixedPoint:
        center, half = self._place(column)
        return FixedPoint.box(
            dimension=1, lower=center - half, upper=center + half, steps=self.lattice.steps
        )

    def apply(self, sums: npt.NDArray[Any], bits: BitSource) -> Moments:
        """Return the estimates from the exact (groups, cells) sums, with fresh noise."""
        return self.estimate(self.noise.apply(np.asarray(sums).reshape(-1), bits))

    def estimate(self, noisy: IntegerArray) -> Moments:
        """Return the estimates from noisy sums: post-processing.

        Counts and sums are unbiased. A mean lies within the bounds and a variance between 0 and
        the square of half their width; where the noisy count is not positive both are the middle.
        """
        table = noisy.reshape(self.groups, -1)
        each = [self._column(table, column) for column in range(self.lattice.dimension)]
        count, total, mean, variance = (
            np.stack(found, axis=1) for found in zip(*each, strict=True)
        )
        rows = value_of(self.row.rows_form(), table)
        return Moments(
            rows=rows if any(self.row.rows_form()) else np.full(self.groups, math.nan),
            count=count,
            sum=total,
            mean=mean,
            variance=variance if self.row.degree == 2 else None,
        )

    def forecast(self) -> Moments:
        """Return the standard errors for one group of expected_rows / groups rows with values.

        Those of a mean and a variance depend on where the mean lies; they are averaged (squared)
        over all places between the bounds, for values close together. None exceeds what the
        middle would do. Quantizing moves a mean by at most half a quantum.
        """
        cov = self._covariances()
        each = [self._errors(column, cov) for column in range(self.lattice.dimension)]
        count, total, mean, variance = (np.array(found) for found in zip(*each, strict=True))
        form = self.row.rows_form()
        rows = math.sqrt(self.noise.covariance(form, form)) if any(form) else math.nan
        return Moments(
            rows=np.array(rows),
            count=count,
            sum=total,
            mean=mean,
            variance=variance if self.row.degree == 2 else None,
        )

    def _column(self, table: IntegerArray, column: int) -> tuple[Floats, ...]:
        center, half = self._place(column)
        powers = [self._power(j, column, table) for j in range(self.row.degree + 1)]
        count, first, second = (*powers, np.zeros(self.groups))[:3]
        known = count > 0
        divisor = np.where(known, count, 1.0)
        with np.errstate(all="ignore"):
            middle = np.where(known, np.clip(first / divisor, -1, 1), 0.0)
            spread = np.where(known, np.clip(second / divisor - middle**2, 0, 1), 0.5)
            total = float(center) * count + float(half) * first
            variance = spread * float(half) * float(half)  # a power of a large float would raise
        mean = np.clip(
            float(center) + float(half) * middle, *inner_ends(center - half, center + half)
        )
        return count, total, mean, variance

    def _power(self, power: int, column: int, table: IntegerArray) -> Floats:
        if isinstance(self.row, BernsteinCells):
            return value_of(self.row.form(power, column), table)
        places = self.row.places(power, column)
        return value_of(tuple(places.values()), table[:, list(places)])

    def _covariances(self) -> list[list[float]]:
        """Return those of the noise on the powers of a column: the same for all columns."""
        forms = [self.row.form(power, 0) for power in range(self.row.degree + 1)]
        return [[self.noise.covariance(a, b) for b in forms] for a in forms]

    def _errors(self, column: int, cov: list[list[float]]) -> tuple[float, ...]:
        center, half = map(float, self._place(column))
        n = self.expected_rows / self.groups
        large = max(abs(center), half)  # its square may be beyond all floats
        c, h = center / large, half / large
        total = c * c * cov[0][0] + 2 * c * h * cov[0][1] + h * h * cov[1][1]
        # y around μ: the mean errs by (z₁ - μz₀)/n, the variance by (z₂ - 2μz₁ + μ²z₀)/n; over μ
        # in [-1, 1] the means of μ² and μ⁴ are 1/3 and 1/5, and odd powers vanish
        mean = math.sqrt(cov[1][1] + cov[0][0] / 3) / n
        variance = 0.0
        if self.row.degree == 2:
            square = cov[2][2] + (4 * cov[1][1] + 2 * cov[0][2]) / 3 + cov[0][0] / 5
            variance = math.sqrt(square) / n
        return (
            math.sqrt(cov[0][0]),
            large * math.sqrt(max(total, 0.0)),
            half * min(mean, 1.0),
            half * half * min(variance, 0.5),
        )

    def _place(self, column: int) -> tuple[Fraction, Fraction]:
        """Return the middle of a column's bounds and half their width."""
        center, bound = self.lattice.center, self.lattice.bound
        return (
            center[column] if isinstance(center, tuple) else center,
            bound[column] if isinstance(bound, tuple) else bound,
        )


def plan_moments(
    *,
    epsilon: Rational,
    bounds: Sequence[tuple[Rational, Rational]],
    degree: int = 1,
    groups: int = 1,
    expected_rows: int,
    missing: bool = True,
    count_rows: bool = False,
    unit_rows: int = 1,
    neighbors: Neighbors = Neighbors.REPLACE,
    method: str = "auto",
) -> MomentPlan:
    """Plan means (degree 1), or means and variances (degree 2), of columns by group.

    `bounds` has one public pair for each column. `expected_rows` is the number of rows where it is
    public, else a public guess: it sets the resolution and the forecast, never the noise. With
    `missing`, values may be; ``count_rows=True`` then counts the rows without one as well.
    `unit_rows` is how many rows a unit has at most. `method` is that of `PartitionNoise`, for one
    column.

    >>> plan = plan_moments(epsilon=1, bounds=[(0, 100)], groups=10, expected_rows=10_000)
    >>> plan.steps[0].theorem, plan.row.cells
    ('partition-laplace', 2)
    >>> errors = plan.forecast()
    >>> float(errors.count.round(2)[0]), float(errors.mean.round(2)[0])
    (4.0, 0.23)
    """
    exact, n = as_usable_epsilon(epsilon), as_count(expected_rows, "expected_rows", minimum=1)
    blocks, columns = as_count(groups, "groups", minimum=1), len(bounds)
    require(
        columns >= 1 and degree in (1, 2),
        "bounds, degree",
        (len(bounds), degree),
        expected="at least one pair of bounds, and degree 1 or 2",
        remedy="count rows with PartitionNoise",
    )
    steps = steps_for(n, exact, degree=degree)
    lower, upper = zip(*bounds, strict=True)
    lattice = FixedPoint.box(dimension=columns, lower=lower, upper=upper, steps=steps)
    if columns == 1:
        cells = BernsteinCells(degree=degree, steps=steps, missing_cell=missing and count_rows)
        noise = PartitionNoise.for_epsilon(
            epsilon=exact,
            cells=blocks * cells.cells,
            row_total=cells.row_total,
            unit_rows=unit_rows,
            neighbors=neighbors,
            method=method,
        )
        return MomentPlan(lattice=lattice, row=cells, noise=noise, groups=blocks, expected_rows=n)
    block = ChebyshevBlock(
        columns=columns,
        degree=degree,
        steps=steps,
        missing=missing,
        count_rows=count_rows or not missing,
    )
    together = BlockNoise.for_epsilon(
        epsilon=exact,
        blocks=blocks,
        dimension=block.dimension,
        row_bound=block.row_bound,
        unit_rows=unit_rows,
        neighbors=neighbors,
    )
    return MomentPlan(lattice=lattice, row=block, noise=together, groups=blocks, expected_rows=n)


def present_counts(rows: Rows, of: Sequence[Column]) -> IntegerArray:
    """Return in how many rows each of some columns has a value, in one pass."""
    columns = as_function(list(of), rows.columns)
    ones = FixedPoint.box(dimension=len(of), lower=-1, upper=1, steps=1)
    return rows.sum(lambda block: (~np.isnan(columns(block))).astype(np.float64), ones)


def steps_for(n: int, epsilon: Fraction, *, degree: int) -> int:
    """Return L: 2^8·n·ε makes half a quantum 2^-10 of the noise on a mean.

    At most so many that n rows, each adding (2L)^degree, add up in 64 bits.
    """
    wanted = 1 << math.ceil(math.log2(max(1.0, min(float(256 * n * epsilon), 2.0**60))))
    total = (1 << _SUM_BITS) // n
    most = total // 2 if degree == 1 else math.isqrt(total) // 2
    return max(_LEAST_STEPS, min(wanted, most, _MOST_STEPS))


def value_of(form: Form, table: IntegerArray) -> Floats:
    """Return a linear form of every line, added up in integers, as floats: post-processing.

    >>> value_of((Fraction(1, 4), Fraction(-1, 4)), np.array([[2**62, -(2**62)], [3, 1]])).tolist()
    [2.305843009213694e+18, 0.5]
    """
    denominator = math.lcm(*(each.denominator for each in form))
    coefficients = [int(each * denominator) for each in form]
    if not any(coefficients):
        return np.zeros(len(table))
    small = table.dtype != np.object_ and _largest(table) * sum(map(abs, coefficients)) < 1 << 63
    exact = table if small else table.astype(np.object_)
    total = sum(each * exact[:, place] for place, each in enumerate(coefficients) if each)
    if small:
        return np.asarray(total, dtype=np.float64) / float(denominator)
    # noise is never beyond the range of floats: ε is at least 1e-9
    return np.array([float(Fraction(each, denominator)) for each in np.asarray(total)])


def _largest(table: IntegerArray) -> int:
    """Return at least the largest magnitude; that of -2^63 is no int64."""
    return 2 * int(np.abs(table // 2).max(initial=0)) + 2
