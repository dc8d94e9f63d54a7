"""Counts, sums, means, variances and stds of some columns of a table, measured together.

They come from one table of noisy sums (`plan_moments`). What is known of them without the rows is
used afterwards: counts are whole and not negative, means lie within the bounds, variances between
0 and a quarter of the squared width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, cast

import numpy as np

from zerodelta.data.group_keys import GroupKeys
from zerodelta.data.rows import Rows
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.noise_law import NoisySums, Statistic
from zerodelta.exact.whole_counts import whole_counts
from zerodelta.mechanisms.moment_estimates import MomentPlan, Moments
from zerodelta.mechanisms.moments import EXPECTED, expected_count, plan_moments
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.step import Step
from zerodelta.tables.asked_columns import AskedColumn
from zerodelta.value import value

_SPREAD = 1 / 6
"""Of the width of the bounds: the std that a forecast assumes, bounds being three of them away."""


@value
class MeasuredMoments:
    """What was released of some columns, by group."""

    columns: Mapping[str, tuple[Floats, Floats]]
    rows: tuple[Floats, float] | None
    sums: tuple[NoisySums, ...]


@value
class MomentPart:
    """Columns that share one table of noisy sums, at one share of ε."""

    columns: tuple[AskedColumn, ...]
    keys: GroupKeys
    moments: MomentPlan
    epsilon: Fraction
    rows: int | None
    group_rows: float
    """Of a group, for a forecast."""

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
    ) -> MomentPart:
        """Calibrate the noise; `rows` is the public number of all rows, if these are one group."""
        moments = plan_moments(
            epsilon=epsilon,
            bounds=[column.bounds for column in columns],
            degree=[column.degree for column in columns],
            groups=keys.count,
            expected_rows=expected_rows,
            missing=[column.missing for column in columns],
            count_rows=rows is None,
            known_rows=rows,
            neighbors=neighbors,
            # of keys that are found later, each has noise of its own
            method="auto" if keys.possible is None else "laplace",
        )
        return cls(
            columns=columns,
            keys=keys,
            moments=moments,
            epsilon=epsilon,
            rows=rows,
            group_rows=group_rows,
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
        names = ", ".join(column.name for column in self.columns) or "rows"
        if isinstance(noise, PartitionNoise):
            each = noise.cells // self.keys.count
            kind = "Laplace noise" if noise.method == "laplace" else "one draw of noise"
        else:
            each, kind = noise.dimension, "l∞ noise"
        of = "a group" if self.keys.keys else "all rows"
        return f"{names}, {kind} on {each} sum{'s' if each != 1 else ''} of {of}"

    @property
    def errors(self) -> dict[str, tuple[float, float]]:
        """The expected absolute error of each column of the result, and what it is relative to."""
        moments, rows = self.moments, self.group_rows
        if self.keys.possible is not None:
            moments = moments.for_groups(1, expected_rows=max(1, round(rows)))
        forecast = moments.forecast()
        found = {}
        if self.rows is None:
            found["count"] = (expected_count(float(forecast.rows)), rows)
        for place, column in enumerate(self.columns):
            for statistic in column.statistics:
                wrong = self._forecast(forecast, place, statistic)
                error = expected_count(wrong) if statistic == "count" else EXPECTED * wrong
                found[column.named(statistic)] = (error, column.unit(statistic, rows))
        return found

    def _forecast(self, forecast: Moments, place: int, statistic: str) -> float:
        column = self.columns[place]
        if statistic == "std" and forecast.variance is not None:
            spread = _SPREAD * column.width
            return min(float(forecast.variance[place]) / (2 * spread), column.width / 2)
        return float(getattr(forecast, statistic)[place])

    def of_groups(self, keys: GroupKeys) -> MomentPart:
        """Return the same noise on some of the groups."""
        return replace(self, keys=keys, moments=self.moments.for_groups(keys.count))

    def answer(self, rows: Rows, bits: BitSource) -> MeasuredMoments:
        """Add noise to the exact sums of opened rows, and estimate."""
        moments, names = self.moments, [column.name for column in self.columns]
        noisy = moments.noisy(moments.measure(rows, names, keys=self.keys), bits)
        found = moments.estimate(noisy)
        errors = moments.errors(found)
        columns = {
            column.named(statistic): _statistic(column, statistic, found, errors, place)
            for place, column in enumerate(self.columns)
            for statistic in column.statistics
        }
        forms: dict[str | None, Any] = {
            column.name: moments.forms(place) for place, column in enumerate(self.columns)
        }
        counted = self.rows is None
        sums = NoisySums(
            law=moments.law,
            integers=noisy.reshape(self.keys.count, -1),
            forms={**forms, **({None: moments.forms(None)} if counted else {})},
            bounds={column.name: column.bounds for column in self.columns},
            statistics={
                **({"count": (None, "count")} if counted else {}),
                **{
                    column.named(statistic): (column.name, cast(Statistic, statistic))
                    for column in self.columns
                    for statistic in column.statistics
                },
            },
            resolution=Fraction(1, 2 * moments.lattice.steps),
            rows=self.rows,
        )
        return MeasuredMoments(
            columns=columns,
            rows=(found.rows, float(errors.rows[0])) if counted else None,
            sums=(sums,),
        )


def _statistic(
    column: AskedColumn, statistic: str, found: Moments, errors: Moments, place: int
) -> tuple[Any, Floats]:
    if statistic == "std" and found.variance is not None and errors.variance is not None:
        variance, wrong = found.variance[:, place], EXPECTED * errors.variance[:, place]
        std = np.sqrt(variance)
        with np.errstate(all="ignore"):  # where the variance is near 0, its root errs by more
            error = np.where(std > 0, wrong / (2 * std), np.inf)
        return std, np.minimum(np.minimum(error, np.sqrt(wrong)), column.width / 2)
    values, wrong = (getattr(each, statistic)[:, place] for each in (found, errors))
    if statistic == "count":
        return whole_counts(values), np.array([expected_count(float(each)) for each in wrong])
    return values, EXPECTED * wrong
