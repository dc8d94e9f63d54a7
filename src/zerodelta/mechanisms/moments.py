"""Measure sums of powers of columns by group, in one table of noisy integers (theory P1, P2, G2).

From public numbers to noisy sums::

    plan = plan_moments(epsilon=1, bounds=[(0, 200_000)], groups=12, expected_rows=10_000)
    sums = plan.measure(rows, ["income"], keys=keys)   # exact, (groups, cells)
    noisy = plan.noisy(sums, bits)                     # `plan.forms` turn them into power sums

The values of one column are spread over cells by a partition of unity (`BernsteinCells`); several
columns are an l∞ block of sums for each group (`ChebyshevBlock`); without columns, rows are
counted. Where the number of rows is private, no public bound keeps a sum below 2^63: add up batches
in Python integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from zerodelta.data.keys import GroupKeys
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Column
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.fixed_point import FixedPoint, wanted_steps
from zerodelta.exact.noise_tails import NoiseLaw
from zerodelta.exact.rational import Rational, as_count
from zerodelta.exact.sums import BernsteinCells, ChebyshevBlock, Form, IntegerArray
from zerodelta.mechanisms.partition_noise import (
    BlockNoise,
    PartitionNoise,
    power_sums,
    present_counts,
)
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors, as_usable_epsilon
from zerodelta.privacy.statistics import Covariances
from zerodelta.privacy.steps import Step
from zerodelta.value import value


@value
class Summands:
    """A function of the values of a column that is summed in place of the values."""

    of: Callable[[Floats], Floats]
    """Applied elementwise: each result depends on one value only, to the last bit."""
    center: Fraction
    """The value that replaces an absent one, unless the column may have missing values."""


@value
class MomentPlan:
    """Public plan: what a row adds to the sums, their noise, and the forms that give power sums.

    **Neighbors**, **Guarantee**: those of `noise`. Evaluating the forms is post-processing.
    **Public**: everything stored here.
    **Error**: `covariances`, from which each statistic has its forecast.
    """

    lattice: FixedPoint
    row: BernsteinCells | ChebyshevBlock
    noise: PartitionNoise | BlockNoise
    columns: int
    groups: int
    expected_rows: int
    missing: tuple[bool, ...] = ()
    """Whether each column may have missing values; if not, an absent value counts as the middle."""
    known_rows: int | None = None
    """The public number of rows of the only group. Then one of the sums follows from the others
    and is not measured (theory P, known total)."""

    @property
    def claim(self) -> PureDP:
        """The privacy claim of one release."""
        return self.noise.claim

    @property
    def steps(self) -> tuple[Step, ...]:
        """The proof steps of one release."""
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
        keys: GroupKeys | None = None,
        summands: Sequence[Summands | None] = (),
    ) -> IntegerArray:
        """Return the exact sums of opened rows, of shape (groups, cells); `keys` give the groups.

        `summands` has for each column the function that is summed, or None for the values.
        """
        row, group_keys = self.row, GroupKeys() if keys is None else keys
        only_means = row.degree == 1 and not group_keys.keys and not any(summands)
        if (
            isinstance(row, ChebyshevBlock)
            and only_means
            and row.missing is True
            and not row.count_rows
        ):
            # two passes over the rows for any number of columns, instead of work for each column
            table = np.stack([present_counts(rows, of), rows.sum(list(of), self.lattice)], axis=1)
            return row.from_power_sums(list(table[:, None, :]), np.zeros(1, dtype=np.int64))
        lattices: list[Any] = [self._lattice_of(place) for place in range(len(of))]
        for place, summand in enumerate(summands):
            if summand is not None:
                lattices[place] = _SummandLattice(lattice=lattices[place], summands=summand)
        group_rows, powers = power_sums(
            rows, group_keys, of, lattices, self.row.degrees[: len(of)], missing=self.missing
        )
        if isinstance(row, ChebyshevBlock):
            return row.from_power_sums(powers, group_rows)
        if not powers:  # without columns rows are counted
            return row.from_power_sums(group_rows[:, None])
        absent = [(group_rows - powers[0][:, 0])[:, None]] if row.missing_cell else []
        return row.from_power_sums(np.concatenate([powers[0], *absent], axis=1))

    def _lattice_of(self, column: int) -> FixedPoint:
        """Return the lattice of one column."""
        center, half = self.lattice.place(column)
        return FixedPoint.box(
            dimension=1, lower=center - half, upper=center + half, steps=self.lattice.steps
        )

    def for_groups(self, groups: int, *, expected_rows: int | None = None) -> MomentPlan:
        """Return the plan for `groups` of the groups, with noise of the same scale.

        Where keys are selected first, noise is planned for every group of the universe, and drawn
        only for the selected ones. That takes independent noise for each group: one joint draw over
        all cells cannot be drawn in part.
        """
        noise: PartitionNoise | BlockNoise
        if isinstance(self.noise, BlockNoise):
            noise = replace(self.noise, blocks=groups)
        else:
            if self.noise.method != "laplace":
                raise AssertionError("one draw over all groups")  # pragma: no cover
            group_cells = self.noise.cells // self.groups
            noise = replace(self.noise, cells=groups * group_cells)
        rows = self.expected_rows if expected_rows is None else expected_rows
        return replace(self, groups=groups, noise=noise, expected_rows=rows)

    def noisy(self, sums: npt.NDArray[Any], bits: BitSource) -> IntegerArray:
        """Add noise to all sums but those that the public number of rows implies."""
        free = np.asarray(sums)
        if self.known_rows is not None:
            free = np.delete(free, self._implied_sum, axis=1)
        return self.noise.apply(free.reshape(-1), bits)

    @property
    def rows_deviation(self) -> float:
        """The standard error of the number of rows of a group."""
        (form,) = self.forms(None)
        return math.sqrt(self._covariance(form, form))

    @property
    def covariances(self) -> list[Covariances]:
        """The covariances of the noise on the power sums of each column.

        They are computed once for all columns with the same forms.
        """
        first_column: dict[object, int] = {}
        for column in range(self.columns):
            first_column.setdefault(self._same_forms(column), column)
        computed = {shape: self._covariances(column) for shape, column in first_column.items()}
        return [computed[self._same_forms(column)] for column in range(self.columns)]

    def forms(self, column: int | None) -> tuple[Form, ...]:
        """Return the linear forms of the noisy sums of a group that estimate Σ y^0, Σ y, Σ y².

        The last coefficient is a constant; y is -1 and 1 at the bounds of the column. For None
        return the form of the number of rows.
        """
        if column is None:
            return (self._free(self.row.rows_form()),)
        powers = range(self.row.degrees[column] + 1)
        return tuple(self._free(self.row.form(power, column)) for power in powers)

    # -- forms without the sum that is implied by a public number of rows ----------------------

    @property
    def _implied_sum(self) -> int:
        """The place of the sum that follows from the others and the public number of rows."""
        return int(isinstance(self.row, BernsteinCells) and self.row.degree == 2)

    def _free(self, form: Form) -> Form:
        """Return a form of all sums as a form of the measured ones, and a constant.

        The implied cell of a partition is the known total less all others; the implied sum of a
        block is the count itself.
        """
        if self.known_rows is None:
            return (*form, Fraction(0))
        place = self._implied_sum
        implied, others = form[place], (*form[:place], *form[place + 1 :])
        if isinstance(self.row, BernsteinCells):
            total = self.known_rows * self.row.row_total
            return (*(coefficient - implied for coefficient in others), implied * total)
        return (*others, implied * self.known_rows * self.row.row_bound)

    def _covariance(self, first: Form, second: Form) -> float:
        return self.noise.covariance(first[:-1], second[:-1])  # the last is a constant

    def _covariances(self, column: int) -> Covariances:
        """Return the covariances of the noise on Σ y^0, Σ y, Σ y²; 0 beyond the degree."""
        forms = self.forms(column)
        zero: Form = (Fraction(0),) * len(forms[0])
        powers = (*forms, zero, zero)[:3]
        return [[self._covariance(a, b) for b in powers] for a in powers]

    def _same_forms(self, column: int) -> object:
        """Return the forms of a column relative to the place where its sums begin."""
        if isinstance(self.row, BernsteinCells):
            return column
        powers = range(self.row.degrees[column] + 1)
        forms = [self.row.places(power, column) for power in powers]
        first = min((place for form in forms for place in form if place), default=0)
        return tuple(
            tuple((place and place - first + 1, value) for place, value in form.items())
            for form in forms
        )


@value
class _SummandLattice:
    """The lattice of a column whose values pass through a function before they are summed."""

    lattice: FixedPoint
    summands: Summands

    @property
    def steps(self) -> int:
        return self.lattice.steps

    @property
    def center(self) -> Fraction:
        return self.summands.center

    def quantize(self, values: Floats) -> npt.NDArray[np.int64]:
        return self.lattice.quantize(self.summands.of(values))


T = TypeVar("T")

_LEAST_STEPS, _MOST_STEPS = 1 << 10, 1 << 52
_SUM_BITS = 62


def plan_moments(
    *,
    epsilon: Rational,
    bounds: Sequence[tuple[Rational, Rational]],
    degree: int | Sequence[int] = 1,
    groups: int = 1,
    expected_rows: int,
    missing: bool | Sequence[bool] = True,
    count_rows: bool = False,
    known_rows: int | None = None,
    unit_rows: int = 1,
    neighbors: Neighbors = Neighbors.REPLACE,
    method: str = "auto",
) -> MomentPlan:
    """Plan means (degree 1), or means and variances (degree 2), of columns by group.

    `bounds` has one public pair for each column; without any, rows are counted. `degree` and
    `missing` are one value for all columns, or one for each; degree 0 counts values, and `missing`
    says whether values may be absent. With ``count_rows=True`` rows without a value are counted,
    too. `expected_rows` is the number of rows where it is public, else a public guess: it sets the
    resolution and the forecast, never the noise. `known_rows` is the public number of rows of the
    only group, which saves some noise. A unit has at most `unit_rows` rows. `method` is that of
    `PartitionNoise`, for one column.

    >>> plan = plan_moments(epsilon=1, bounds=[(0, 100)], groups=10, expected_rows=10_000)
    >>> plan.steps[0].theorem, plan.row.cells
    ('partition-laplace', 2)
    >>> [round(noise[i][i], 1) for noise in plan.covariances for i in (0, 1)]
    [16.0, 16.0]
    """
    exact, n = as_usable_epsilon(epsilon), as_count(expected_rows, "expected_rows", minimum=1)
    blocks, columns = as_count(groups, "groups", minimum=1), len(bounds)
    degrees = (degree,) * columns if isinstance(degree, int) else tuple(degree)
    absent = (missing,) * columns if isinstance(missing, bool) else tuple(missing)
    require(
        len(degrees) == columns == len(absent) and all(power in (0, 1, 2) for power in degrees),
        "bounds, degree, missing",
        (columns, degree, missing),
        expected="one entry for each column, and degrees 0, 1 or 2",
        remedy="pass degree=1 for means, 2 for variances",
    )
    require(
        known_rows is None or (blocks == 1 and neighbors is Neighbors.REPLACE),
        "known_rows",
        known_rows,
        expected="None, unless there is one group under replace-one",
        remedy="leave it out",
    )
    highest = max(degrees, default=0)
    steps = 1 if highest == 0 else steps_for(n, exact, degree=highest)
    lower, upper = zip(*bounds, strict=True) if columns else ((-1,), (1,))
    lattice = FixedPoint.box(dimension=len(lower), lower=lower, upper=upper, steps=steps)
    total_is_known = known_rows is not None
    row: BernsteinCells | ChebyshevBlock
    noise: PartitionNoise | BlockNoise
    if columns <= 1 or highest == 0:
        require(columns <= 1, "degree", degree, "1 or 2 for some column", "plan one column by one")
        row = BernsteinCells(degree=highest, steps=steps, missing_cell=any(absent) and count_rows)
        # the total is known only if each row adds to some cell, also one without a value
        total_is_known = total_is_known and highest > 0 and (row.missing_cell or not any(absent))
        noise = PartitionNoise.for_epsilon(
            epsilon=exact,
            cells=blocks * row.cells - total_is_known,
            row_total=row.row_total,
            unit_rows=unit_rows,
            neighbors=neighbors,
            method=method,
        )
    else:
        row = ChebyshevBlock(
            columns=columns,
            degree=_once_if_equal(degrees),
            steps=steps,
            missing=_once_if_equal(absent),
            count_rows=count_rows or not all(absent),
        )
        total_is_known = total_is_known and row.count_rows
        noise = BlockNoise.for_epsilon(
            epsilon=exact,
            blocks=blocks,
            dimension=row.dimension - total_is_known,
            row_bound=row.row_bound,
            unit_rows=unit_rows,
            neighbors=neighbors,
        )
    return MomentPlan(
        lattice=lattice,
        row=row,
        noise=noise,
        columns=columns,
        groups=blocks,
        expected_rows=n,
        missing=absent,
        known_rows=known_rows if total_is_known else None,
    )


def _once_if_equal(entries: tuple[T, ...]) -> T | tuple[T, ...]:
    """Return the common entry of all columns, or all entries if they differ."""
    return entries[0] if len(set(entries)) == 1 else entries


def steps_for(n: int, epsilon: Fraction, *, degree: int) -> int:
    """Return the number L of lattice steps in half the width of the bounds.

    L = 2^8·n·ε makes half a quantum 2^-10 of the noise on a mean; it is lowered so that the sums of
    n rows, each adding up to (2L)^degree, fit into 64 bits.
    """
    total = (1 << _SUM_BITS) // n
    fitting = total // 2 if degree == 1 else math.isqrt(total) // 2
    return max(_LEAST_STEPS, min(wanted_steps(n, epsilon), fitting, _MOST_STEPS))
