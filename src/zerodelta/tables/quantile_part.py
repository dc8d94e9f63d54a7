"""Quantiles of one column of a table, drawn together from each group (theory Q).

They are points of a public grid. Their errors are ranks: by how many rows of its group a value is
off; how much that is in the unit of the column depends on rows that nobody sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from zerodelta.data.group_keys import GroupKeys
from zerodelta.data.rows import Rows
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.noise_law import NoisySums
from zerodelta.mechanisms.quantile_plan import QuantilePlan, plan_quantiles
from zerodelta.mechanisms.ranks import as_points
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.step import Step
from zerodelta.tables.asked_columns import AskedColumn, level_name
from zerodelta.value import value


@value
class DrawnQuantiles:
    """What was released of one column, by group: no counts, and no noisy sums."""

    columns: Mapping[str, tuple[Floats, Floats]]
    rows: None = None
    sums: tuple[NoisySums, ...] = ()


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

    def answer(self, rows: Rows, bits: BitSource) -> DrawnQuantiles:
        """Draw from opened rows."""
        name = self.column.name
        if self.keys.keys:
            found = self.quantiles.by_group(rows, bits, keys=self.keys, column=name)
        else:
            place = rows.columns.index(name)
            found = self.quantiles.answer(rows, bits, column=place)[None, :]
        error = np.full(len(found), self.quantiles.error)
        return DrawnQuantiles(
            columns={
                self.column.named(level_name(level)): (found[:, place], error)
                for place, level in enumerate(self.column.levels)
            }
        )
