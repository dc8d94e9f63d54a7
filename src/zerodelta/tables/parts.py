"""Measure the parts of a table: moments of some columns together, or quantiles of one column.

Moments come from one table of noisy sums (`plan_moments`). Known ranges are applied afterwards:
counts are integers and not negative, means lie within the bounds, and variances lie between 0 and a
quarter of the squared width.
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
from zerodelta.exact.sums import Form
from zerodelta.mechanisms.moments import MomentPlan, Summands, plan_moments
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.mechanisms.quantile_plan import QuantilePlan, plan_quantiles
from zerodelta.mechanisms.ranks import as_level, as_points
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.statistics import (
    COLUMN_STATISTICS,
    ColumnStatistic,
    LazyForms,
    Measurement,
    expected_count,
    floats_of,
)
from zerodelta.privacy.steps import Step
from zerodelta.value import value

# -- Columns of a table, their statistics, and what is public about them --------------------------

StatisticOrLevel: TypeAlias = str | Fraction
"""The name of a statistic, or the level of a quantile."""

_MOST_LEVELS = 10_000
_LEAST = 1e-300
"""The unit that replaces one that is rounded to 0, such as the square of a tiny width."""

_EXAMPLE = 'pass of={"income": ["mean", "std"]}'


@value
class TableColumn:
    """A column of numbers between public bounds, and the statistics of it in a table."""

    name: str
    bounds: tuple[Fraction, Fraction]
    missing: bool
    statistics: tuple[str, ...]
    levels: tuple[Fraction, ...] = ()
    """The levels of the quantiles."""
    grid: int | None = None
    """The number of points of the grid of quantiles, if the values are integers."""

    def by_summand(self) -> list[TableColumn]:
        """Return a copy of the column for each function of its values that is summed."""
        groups: dict[Any, list[str]] = {}
        for name in self.statistics:
            groups.setdefault(type(COLUMN_STATISTICS[name]).summands, []).append(name)
        return [replace(self, statistics=tuple(names)) for names in groups.values()]

    @property
    def summed(self) -> ColumnStatistic:
        """A statistic that knows the summed function; all of the column sum the same one."""
        return COLUMN_STATISTICS[self.statistics[0]]

    @property
    def key(self) -> str:
        """The name of its sums."""
        return self.name if self.summed.sums_values else f"{self.summed.name} of {self.name}"

    @property
    def summands(self) -> Summands | None:
        """The function of the values that is summed; None if the values themselves are."""
        if self.summed.sums_values:
            return None
        lower, upper = self.bounds
        return Summands(of=self.summed.summands, center=(lower + upper) / 2)

    @property
    def degree(self) -> int:
        """The highest power of the values whose sum is needed."""
        return max((COLUMN_STATISTICS[name].degree for name in self.statistics), default=0)

    @property
    def numbers(self) -> list[str]:
        """The names of all columns of the result, with those of their errors."""
        sums = [self.named(name) + end for name in self.statistics for end in ("", "_error")]
        quantiles = [self.named(level_name(level)) for level in self.levels]
        return sums + [name + end for name in quantiles for end in ("", "_rank_error")]

    @property
    def results(self) -> list[str]:
        """The names of the columns of the result, without those of their errors."""
        levels = [level_name(level) for level in self.levels]
        return [self.named(name) for name in (*self.statistics, *levels)]

    @property
    def width(self) -> float:
        """The width of the bounds."""
        return float(self.bounds[1] - self.bounds[0])

    def named(self, statistic: str) -> str:
        """Return the name of a column of the result."""
        return f"{self.name}_{statistic}"

    def unit(self, statistic: str, rows: float) -> float:
        """Return the public size that an error is relative to, for a group of `rows` rows."""
        return max(COLUMN_STATISTICS[statistic].unit(self.width, rows), _LEAST)


def level_name(level: Fraction) -> str:
    """Return the name of a quantile in a table, by its percentage.

    >>> level_name(Fraction(1, 10)), level_name(Fraction(1, 2)), level_name(Fraction(1, 40))
    ('q10', 'median', 'q2.5')
    """
    return "median" if level == Fraction(1, 2) else f"q{float(100 * level):.10g}"


def as_statistics(of: Any) -> dict[str, tuple[StatisticOrLevel, ...]]:
    """Return the statistics of each column, quantiles by their levels; refuse unknown ones.

    >>> as_statistics({"income": ["mean", "std"], "age": ["mean", "median"]})
    {'income': ('mean', 'std'), 'age': ('mean', Fraction(1, 2))}
    """
    require(
        isinstance(of, Mapping) and of,
        "of",
        of,
        expected="statistics of one column or more",
        remedy=f"{_EXAMPLE}; for the number of rows call zd.count(data, by=…)",
    )
    statistics = {}
    for column, entry in of.items():
        require(isinstance(column, str), "of", column, "names of columns", _EXAMPLE)
        items = [entry] if isinstance(entry, (str, Mapping)) else entry
        listed = isinstance(items, Sequence) and len(items) > 0
        require(listed, f"of[{column!r}]", entry, "one statistic or more", _EXAMPLE)
        of_column = [statistic for item in items for statistic in _statistics(column, item)]
        statistics[column] = tuple(dict.fromkeys(of_column))
    return statistics


def _statistics(column: str, item: Any) -> list[StatisticOrLevel]:
    """Return the statistics that one entry of the list of a column stands for."""
    if isinstance(item, str) and item in COLUMN_STATISTICS:
        return [item]
    if isinstance(item, str) and item == "median":
        return [Fraction(1, 2)]
    if isinstance(item, Mapping) and set(item) == {"quantiles"}:
        return list(_levels(column, item["quantiles"]))
    choices = (*COLUMN_STATISTICS, "median")
    names = ", ".join(f'"{name}"' for name in choices)
    remedy = did_you_mean(item, choices, "pass some of these names")
    expected = f'some of {names}, {{"quantiles": [0.1, 0.9]}}'
    raise ParameterError(f"of[{column!r}]", item, expected=expected, remedy=remedy)


def _levels(column: str, levels: Any) -> list[Fraction]:
    """Return the exact levels of quantiles."""
    listed = isinstance(levels, (Sequence, np.ndarray)) and not isinstance(levels, (str, bytes))
    require(
        listed and 0 < len(levels) <= _MOST_LEVELS,
        f"of[{column!r}]",
        levels if not listed else len(levels),
        expected=f"a list of 1 to {_MOST_LEVELS} levels from 0 to 1",
        remedy='pass {"quantiles": [0.1, 0.5, 0.9]}',
    )
    return [as_level(level) for level in levels]


@value
class TableAnswer:
    """The numbers of a table by group, or of one of its parts."""

    values: Mapping[str, Floats]
    """The columns of the result and of their errors, without the counts of rows."""
    counts: Sequence[tuple[Floats, float]] = ()
    """For each part that counts rows, the unbiased counts by group and their standard error."""
    sums: tuple[Measurement, ...] = ()
    """The noisy integers behind the columns, where the law of the noise is public."""


@value
class MomentPart:
    """Columns that share one table of noisy sums, at one share of ε."""

    columns: tuple[TableColumn, ...]
    keys: GroupKeys
    moments: MomentPlan
    epsilon: Fraction
    rows: int | None
    """The public number of all rows, if these are one group."""
    counted: bool
    """Whether rows are counted, too."""
    errors: Mapping[str, tuple[float, float]]
    """For each column its expected absolute error, and the size that it is relative to."""

    @classmethod
    def of(
        cls,
        columns: tuple[TableColumn, ...],
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
            # noise is drawn only for the groups that are found, so it must be independent
            method="auto" if keys.possible is None else "laplace",
        )
        typical = moments
        if keys.possible is not None:
            typical = moments.for_groups(1, expected_rows=max(1, round(group_rows)))
        return cls(
            columns=columns,
            keys=keys,
            moments=moments,
            epsilon=epsilon,
            rows=rows,
            counted=counted,
            errors=_expected_errors(columns, typical, group_rows, counted=counted),
        )

    @property
    def in_ranks(self) -> bool:
        """False: errors are in the unit of the statistic."""
        return False

    @property
    def steps(self) -> tuple[Step, ...]:
        """The proof steps of the part."""
        return self.moments.steps

    @property
    def text(self) -> str:
        """A line that names the columns and their noise."""
        noise = self.moments.noise
        names = ", ".join(column.key for column in self.columns) or "rows"
        if isinstance(noise, PartitionNoise):
            sums = noise.cells // self.keys.count
            kind = "Laplace noise" if noise.method == "laplace" else "one draw of noise"
        else:
            sums, kind = noise.dimension, "l∞ noise"
        of = "a group" if self.keys.keys else "all rows"
        return f"{names}, {kind} on {sums} sum{'s' if sums != 1 else ''} of {of}"

    def of_groups(self, keys: GroupKeys) -> MomentPart:
        """Return the part with the same noise for some of the groups."""
        return replace(self, keys=keys, moments=self.moments.for_groups(keys.count))

    def answer(self, rows: Rows, bits: BitSource) -> TableAnswer:
        """Add noise to the exact sums of opened rows, and compute the statistics from them."""
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
        sums = Measurement(
            law=moments.law,
            integers=noisy.reshape(self.keys.count, -1),
            forms=LazyForms([*keys, *([None] if self.counted else [])], self._forms),
            bounds=dict(zip(keys, ends, strict=True)),
            statistics={**({"count": (None, "count")} if self.counted else {}), **statistics},
            resolution=moments.lattice.resolution,
            rows=self.rows,
        )
        values = {}
        for column, noise in zip(self.columns, moments.covariances, strict=True):
            powers = sums.column(column.key)
            for name in column.statistics:
                statistic, place = COLUMN_STATISTICS[name], column.named(name)
                values[place] = statistic.value(powers)
                values[f"{place}_error"] = statistic.error(powers, noise)
        counts = []
        if self.counted:
            counts = [(floats_of(sums.forms[None][0], sums.integers), moments.rows_deviation)]
        return TableAnswer(values=values, counts=counts, sums=(sums,))

    def _forms(self, place: int) -> tuple[Form, ...]:
        """Return the forms of a column; the place after the last is for the number of rows."""
        return self.moments.forms(place if place < len(self.columns) else None)


def _expected_errors(
    columns: Sequence[TableColumn], moments: MomentPlan, group_rows: float, *, counted: bool
) -> dict[str, tuple[float, float]]:
    """Return the forecast for each column of the result, for a group of `group_rows` rows."""
    errors = {"count": (expected_count(moments.rows_deviation), group_rows)} if counted else {}
    rows = moments.expected_rows / moments.groups
    for place, (column, noise) in enumerate(zip(columns, moments.covariances, strict=True)):
        center, half = map(float, moments.lattice.place(place))
        for name in column.statistics:
            statistic = COLUMN_STATISTICS[name]
            error = statistic.forecast(noise, rows=rows, center=center, half=half)
            errors[column.named(name)] = (error, column.unit(name, group_rows))
    return errors


# -- Quantiles of one column of a table, drawn together from each group (theory Q) ----------------
# They are points of a public grid. Their errors are ranks: the number of rows of the group by which
# a quantile is off. The error in the unit of the column depends on the private rows.


@value
class QuantilePart:
    """Quantiles of one column at one share of ε."""

    column: TableColumn
    keys: GroupKeys
    quantiles: QuantilePlan
    epsilon: Fraction
    group_rows: float

    @classmethod
    def of(
        cls,
        column: TableColumn,
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
            # quantiles are drawn only for the groups that are found, each group by itself
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
        """The proof steps of the part."""
        return self.quantiles.steps

    @property
    def text(self) -> str:
        """A line that names the column, its number of quantiles, and the method."""
        number = len(self.column.levels)
        of = "a group" if self.keys.keys else "all rows"
        quantiles = f"{number} quantile{'s' if number != 1 else ''} of {of}"
        how = "counts of all points" if self.quantiles.methods[0].name == "counts" else "one draw"
        return f"{self.column.name}, {quantiles} by {how}"

    @property
    def errors(self) -> dict[str, tuple[float, float]]:
        """The expected rank error of each quantile, and the number of rows of a group."""
        error = (self.quantiles.error, max(self.group_rows, 1.0))
        return {self.column.named(level_name(level)): error for level in self.column.levels}

    def of_groups(self, keys: GroupKeys) -> QuantilePart:
        """Return the part with the same mechanism for some of the groups."""
        return replace(self, keys=keys)

    def answer(self, rows: Rows, bits: BitSource) -> TableAnswer:
        """Draw the quantiles of each group from opened rows."""
        name = self.column.name
        if self.keys.keys:
            quantiles = self.quantiles.by_group(rows, bits, keys=self.keys, column=name)
        else:
            place = rows.columns.index(name)
            quantiles = self.quantiles.answer(rows, bits, column=place)[None, :]
        error = np.full(len(quantiles), self.quantiles.error)
        values: dict[str, Floats] = {}
        for place, level in enumerate(self.column.levels):
            quantile = self.column.named(level_name(level))
            values |= {quantile: quantiles[:, place], f"{quantile}_rank_error": error}
        return TableAnswer(values=values)


TablePart: TypeAlias = MomentPart | QuantilePart
"""Statistics of some columns that are measured together, at their share of ε."""
