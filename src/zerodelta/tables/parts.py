"""The parts of a table that are measured together: moments of some columns, quantiles of one.

They come from one table of noisy sums (`plan_moments`). What is known of them without the rows is
used afterwards: counts are whole and not negative, means lie within the bounds, variances between
0 and a quarter of the squared width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from zerodelta.data.keys import GroupKeys
from zerodelta.data.rows import Rows
from zerodelta.errors import ParameterError, did_you_mean, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.noise_tails import LazyForms, NoisySums
from zerodelta.exact.sums import Form
from zerodelta.mechanisms.moments import MomentPlan, Summands, plan_moments
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.mechanisms.quantile_plan import QuantilePlan, plan_quantiles
from zerodelta.mechanisms.ranks import as_level, as_points
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.statistics import (
    COLUMN_STATISTICS,
    ColumnStatistic,
    PowerSums,
    expected_count,
    floats_of,
)
from zerodelta.privacy.steps import Step
from zerodelta.value import value

# -- Asked columns --------------------------------------------------------------------------------
# Which statistics of which columns a table is asked for, and what is public of these columns.

AskedStatistic: TypeAlias = str | Fraction
"""The name of a statistic, or the level of a quantile."""

_MOST_LEVELS = 10_000
_LEAST = 1e-300
"""What a width counts as whose square is 0 for a float."""

_EXAMPLE = 'pass of={"income": ["mean", "std"]}'


@value
class AskedColumn:
    """A column of numbers between public bounds, and the statistics that are asked of it."""

    name: str
    bounds: tuple[Fraction, Fraction]
    missing: bool
    statistics: tuple[str, ...]
    levels: tuple[Fraction, ...] = ()
    """Of the quantiles that are asked."""
    grid: int | None = None
    """How many points quantiles may be, if the values are whole."""

    def by_summand(self) -> list[AskedColumn]:
        """Return it once for each function of its values that is summed."""
        groups: dict[Any, list[str]] = {}
        for name in self.statistics:
            groups.setdefault(type(COLUMN_STATISTICS[name]).summands, []).append(name)
        return [replace(self, statistics=tuple(names)) for names in groups.values()]

    @property
    def summed(self) -> ColumnStatistic:
        """A statistic that says what is summed, if that is the same for all of them."""
        return COLUMN_STATISTICS[self.statistics[0]]

    @property
    def key(self) -> str:
        """What its sums are called."""
        return self.name if self.summed.sums_values else f"{self.summed.name} of {self.name}"

    @property
    def summands(self) -> Summands | None:
        """How its values become what is summed, if these are not the values."""
        if self.summed.sums_values:
            return None
        lower, upper = self.bounds
        return Summands(of=self.summed.summands, center=(lower + upper) / 2)

    @property
    def degree(self) -> int:
        """The highest power of the values whose sum is needed."""
        return max((COLUMN_STATISTICS[each].degree for each in self.statistics), default=0)

    @property
    def numbers(self) -> list[str]:
        """The names of all columns of the result, and of their errors."""
        found = [self.named(each) + end for each in self.statistics for end in ("", "_error")]
        levels = [self.named(level_name(each)) for each in self.levels]
        return found + [name + end for name in levels for end in ("", "_rank_error")]

    @property
    def results(self) -> list[str]:
        """The names of the columns of the result, without those of their errors."""
        levels = [level_name(each) for each in self.levels]
        return [self.named(each) for each in (*self.statistics, *levels)]

    @property
    def width(self) -> float:
        """How far the bounds are apart."""
        return float(self.bounds[1] - self.bounds[0])

    def named(self, statistic: str) -> str:
        """Return the name of a column of the result."""
        return f"{self.name}_{statistic}"

    def unit(self, statistic: str, rows: float) -> float:
        """Return what an error is relative to, for a group of so many rows: public numbers."""
        return max(COLUMN_STATISTICS[statistic].unit(self.width, rows), _LEAST)


def level_name(level: Fraction) -> str:
    """Return what a quantile is called, by its percentage.

    >>> level_name(Fraction(1, 10)), level_name(Fraction(1, 2)), level_name(Fraction(1, 40))
    ('q10', 'median', 'q2.5')
    """
    return "median" if level == Fraction(1, 2) else f"q{float(100 * level):.10g}"


def as_statistics(of: Any) -> dict[str, tuple[AskedStatistic, ...]]:
    """Return the statistics of each column, quantiles by their levels; what is none is refused.

    >>> as_statistics({"income": ["mean", "std"], "age": ["mean", "median"]})
    {'income': ('mean', 'std'), 'age': ('mean', Fraction(1, 2))}
    """
    require(
        isinstance(of, Mapping) and of,
        "of",
        of,
        expected="statistics of one column or more",
        remedy=f"{_EXAMPLE}; for rows alone ask zd.count(data, by=…)",
    )
    found = {}
    for column, given in of.items():
        require(isinstance(column, str), "of", column, "names of columns", _EXAMPLE)
        listed = [given] if isinstance(given, (str, Mapping)) else given
        several = isinstance(listed, Sequence) and len(listed) > 0
        require(several, f"of[{column!r}]", given, "one statistic or more", _EXAMPLE)
        every = [each for one in listed for each in _statistics(column, one)]
        found[column] = tuple(dict.fromkeys(every))
    return found


def _statistics(column: str, given: Any) -> list[AskedStatistic]:
    if isinstance(given, str) and given in COLUMN_STATISTICS:
        return [given]
    if isinstance(given, str) and given == "median":
        return [Fraction(1, 2)]
    if isinstance(given, Mapping) and set(given) == {"quantiles"}:
        return list(_levels(column, given["quantiles"]))
    known = (*COLUMN_STATISTICS, "median")
    names = ", ".join(f'"{each}"' for each in known)
    remedy = did_you_mean(given, known, "pass some of these names")
    expected = f'some of {names}, {{"quantiles": [0.1, 0.9]}}'
    raise ParameterError(f"of[{column!r}]", given, expected=expected, remedy=remedy)


def _levels(column: str, given: Any) -> list[Fraction]:
    listed = isinstance(given, (Sequence, np.ndarray)) and not isinstance(given, (str, bytes))
    require(
        listed and 0 < len(given) <= _MOST_LEVELS,
        f"of[{column!r}]",
        given if not listed else len(given),
        expected=f"a list of 1 to {_MOST_LEVELS} levels from 0 to 1",
        remedy='pass {"quantiles": [0.1, 0.5, 0.9]}',
    )
    return [as_level(level) for level in given]


@value
class PartAnswer:
    """What a part made of rows: columns of the table, each with its errors, by group."""

    columns: Mapping[str, tuple[Floats, Floats]]
    """The values and their expected absolute errors, by the name of the column."""
    rows: tuple[Floats, float] | None = None
    """The number of rows of each group, unbiased, and its standard error; if counted."""
    sums: tuple[NoisySums, ...] = ()
    """What it was made of, where the law of its noise is public."""


@value
class MomentPart:
    """Columns that share one table of noisy sums, at one share of ε."""

    columns: tuple[AskedColumn, ...]
    keys: GroupKeys
    moments: MomentPlan
    epsilon: Fraction
    rows: int | None
    """The public number of all rows, if these are one group."""
    counted: bool
    """Whether rows are counted, too."""
    errors: Mapping[str, tuple[float, float]]
    """The expected absolute error of each column of the result, and what it is relative to."""

    @classmethod
    def of(
        cls,
        columns: tuple[AskedColumn, ...],
        *,
        epsilon: Fraction,
        keys: GroupKeys,
        expected_rows: int,
        group_rows: float,
        rows: int | None,
        neighbors: Neighbors,
        counted: bool = True,
    ) -> MomentPart:
        """Calibrate the noise; `rows` is the public number of all rows, if these are one group."""
        counted = counted and rows is None
        moments = plan_moments(
            epsilon=epsilon,
            bounds=[column.summed.summand_bounds(*column.bounds) for column in columns],
            degree=[column.degree for column in columns],
            groups=keys.count,
            expected_rows=expected_rows,
            missing=[column.missing for column in columns],
            count_rows=counted,
            known_rows=rows,
            neighbors=neighbors,
            # of keys that are found later, each has noise of its own
            method="auto" if keys.possible is None else "laplace",
        )
        one = moments
        if keys.possible is not None:
            one = moments.for_groups(1, expected_rows=max(1, round(group_rows)))
        return cls(
            columns=columns,
            keys=keys,
            moments=moments,
            epsilon=epsilon,
            rows=rows,
            counted=counted,
            errors=_expected_errors(columns, one, group_rows, counted=counted),
        )

    @property
    def in_ranks(self) -> bool:
        """False: errors are in the unit of the statistic."""
        return False

    @property
    def steps(self) -> tuple[Step, ...]:
        """The proof."""
        return self.moments.steps

    @property
    def text(self) -> str:
        """Which columns, and which noise."""
        noise = self.moments.noise
        names = ", ".join(column.key for column in self.columns) or "rows"
        if isinstance(noise, PartitionNoise):
            each = noise.cells // self.keys.count
            kind = "Laplace noise" if noise.method == "laplace" else "one draw of noise"
        else:
            each, kind = noise.dimension, "l∞ noise"
        of = "a group" if self.keys.keys else "all rows"
        return f"{names}, {kind} on {each} sum{'s' if each != 1 else ''} of {of}"

    def of_groups(self, keys: GroupKeys) -> MomentPart:
        """Return the same noise on some of the groups."""
        return replace(self, keys=keys, moments=self.moments.for_groups(keys.count))

    def answer(self, rows: Rows, bits: BitSource) -> PartAnswer:
        """Add noise to the exact sums of opened rows, and estimate."""
        moments, names = self.moments, [column.name for column in self.columns]
        summands = [column.summands for column in self.columns]
        exact = moments.measure(rows, names, keys=self.keys, summands=summands)
        noisy = moments.noisy(exact, bits)
        statistics = {
            column.named(name): (column.key, name)
            for column in self.columns
            for name in column.statistics
        }
        keys = [column.key for column in self.columns]
        ends = [column.summed.summand_bounds(*column.bounds) for column in self.columns]
        sums = NoisySums(
            law=moments.law,
            integers=noisy.reshape(self.keys.count, -1),
            forms=LazyForms([*keys, *([None] if self.counted else [])], self._forms),
            bounds=dict(zip(keys, ends, strict=True)),
            statistics={**({"count": (None, "count")} if self.counted else {}), **statistics},
            resolution=Fraction(1, 2 * moments.lattice.steps),
            rows=self.rows,
        )
        columns = {}
        for column, noise in zip(self.columns, moments.covariances, strict=True):
            powers = PowerSums.of(sums, column.key)
            for name in column.statistics:
                statistic = COLUMN_STATISTICS[name]
                found = statistic.value(powers), statistic.error(powers, noise)
                columns[column.named(name)] = found
        counted = None
        if self.counted:
            counted = floats_of(sums.forms[None][0], sums.integers), moments.rows_deviation
        return PartAnswer(columns=columns, rows=counted, sums=(sums,))

    def _forms(self, place: int) -> tuple[Form, ...]:
        """Return the forms of a column; after the last one that of the number of rows."""
        return self.moments.forms(place if place < len(self.columns) else None)


def _expected_errors(
    columns: Sequence[AskedColumn], moments: MomentPlan, group_rows: float, *, counted: bool
) -> dict[str, tuple[float, float]]:
    """Return the forecast of each column of the result, for a group of so many rows."""
    found = {"count": (expected_count(moments.rows_deviation), group_rows)} if counted else {}
    rows = moments.expected_rows / moments.groups
    for place, (column, noise) in enumerate(zip(columns, moments.covariances, strict=True)):
        center, half = map(float, moments.place(place))
        for name in column.statistics:
            statistic = COLUMN_STATISTICS[name]
            error = statistic.forecast(noise, rows=rows, center=center, half=half)
            found[column.named(name)] = (error, column.unit(name, group_rows))
    return found


# -- Quantiles of one column of a table, drawn together from each group (theory Q) ----------------
# They are points of a public grid. Their errors are ranks: by how many rows of its group a value
# is off; how much that is in the unit of the column depends on rows that nobody sees.


@value
class QuantilePart:
    """Quantiles of one column at one share of ε."""

    column: AskedColumn
    keys: GroupKeys
    quantiles: QuantilePlan
    epsilon: Fraction
    group_rows: float

    @classmethod
    def of(
        cls,
        column: AskedColumn,
        *,
        epsilon: Fraction,
        keys: GroupKeys,
        group_rows: float,
        rows: int | None,
        neighbors: Neighbors,
    ) -> QuantilePart:
        """Choose method and levels; `rows` is the public number of all rows, if one group."""
        quantiles = plan_quantiles(
            epsilon=epsilon,
            levels=column.levels,
            points=as_points(column.bounds, column.grid),
            expected_rows=max(1, round(group_rows)) * keys.count,
            skip=column.missing,
            groups=keys.count,
            total=None if column.missing else rows,
            neighbors=neighbors,
            # of keys that are found later, each is drawn by itself
            method="auto" if keys.possible is None else "joint",
        )
        return cls(
            column=column, keys=keys, quantiles=quantiles, epsilon=epsilon, group_rows=group_rows
        )

    @property
    def in_ranks(self) -> bool:
        """True: errors are numbers of rows."""
        return True

    @property
    def steps(self) -> tuple[Step, ...]:
        """The proof."""
        return self.quantiles.steps

    @property
    def text(self) -> str:
        """Which column, and how."""
        many = len(self.column.levels)
        of = "a group" if self.keys.keys else "all rows"
        each = f"{many} quantile{'s' if many != 1 else ''} of {of}"
        how = "counts of all points" if self.quantiles.methods[0].name == "counts" else "one draw"
        return f"{self.column.name}, {each} by {how}"

    @property
    def errors(self) -> dict[str, tuple[float, float]]:
        """The expected rank error of each quantile, and the rows of a group."""
        error = (self.quantiles.error, max(self.group_rows, 1.0))
        return {self.column.named(level_name(level)): error for level in self.column.levels}

    def of_groups(self, keys: GroupKeys) -> QuantilePart:
        """Return the same draws from some of the groups."""
        return replace(self, keys=keys)

    def answer(self, rows: Rows, bits: BitSource) -> PartAnswer:
        """Draw from opened rows."""
        name = self.column.name
        if self.keys.keys:
            found = self.quantiles.by_group(rows, bits, keys=self.keys, column=name)
        else:
            place = rows.columns.index(name)
            found = self.quantiles.answer(rows, bits, column=place)[None, :]
        error = np.full(len(found), self.quantiles.error)
        return PartAnswer(
            columns={
                self.column.named(level_name(level)): (found[:, place], error)
                for place, level in enumerate(self.column.levels)
            }
        )


TablePart: TypeAlias = MomentPart | QuantilePart
"""Statistics of some columns that are measured together, at their share of ε."""
