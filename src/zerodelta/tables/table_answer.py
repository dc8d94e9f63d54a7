"""From what the parts of a table measured to the table that is released: post-processing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.data.rows import Rows
from zerodelta.errors import printable
from zerodelta.exact.bits import BitSource
from zerodelta.exact.noise_law import NoisySums
from zerodelta.exact.whole_counts import whole_counts
from zerodelta.mechanisms.moments import expected_count
from zerodelta.privacy.step import Part
from zerodelta.spine.methods import Method
from zerodelta.tables.group_table import Table
from zerodelta.tables.table_plan import GOALS, TablePart, TablePlan
from zerodelta.value import value

_WHY = (
    "no part is much more wrong than it would be alone",
    "least by the largest relative error",
    "least by all relative errors together",
)
"""What the shares are for, by goal."""


@value
class TableAnswer:
    """What all parts of a table measured, by group."""

    values: Mapping[str, Any]
    """The columns of the result and of their errors, but for the counts of rows."""
    counts: Sequence[tuple[Any, float]]
    """The rows of each group with their standard error, from each part that counts them."""
    sums: tuple[NoisySums, ...]

    @classmethod
    def of(cls, parts: Sequence[TablePart], rows: Rows, bits: BitSource) -> TableAnswer:
        """Measure opened rows."""
        found = [(part, part.answer(rows, bits)) for part in parts]
        values: dict[str, Any] = {}
        for part, answer in found:
            end = "_rank_error" if part.in_ranks else "_error"
            for name, (entry, error) in answer.columns.items():
                values |= {name: entry, f"{name}{end}": error}
        return cls(
            values=values,
            counts=[answer.rows for _, answer in found if answer.rows is not None],
            sums=tuple(each for _, answer in found for each in answer.sums),
        )

    def shown(
        self,
        labels: Mapping[str, Sequence[Any]],
        *,
        groups: int,
        total: int | None,
        frame: str | None,
        note: str = "",
    ) -> Any:
        """Return the table, in which counts of several parts are averaged, as a kind of frame.

        `total`: the public number of rows, if each is in a group.
        """
        if self.counts:
            weights = np.array([1 / max(error, 1e-100) ** 2 for _, error in self.counts])
            noisy = np.average([rows for rows, _ in self.counts], axis=0, weights=weights)
            count = whole_counts(noisy, total=total)
            error = expected_count(float(1 / np.sqrt(weights.sum())))
        else:  # all rows, whose number is public
            count, error = np.full(groups, total, dtype=np.int64), 0.0
        numbers = {"count": count, "count_error": np.full(groups, error), **self.values}
        table = Table(labels, numbers, note=note)
        return table if frame is None else table.to_frame(frame)


def proof_parts(parts: Sequence[TablePart]) -> tuple[Part, ...]:
    """Return the parts of a certificate."""
    return tuple(Part(steps=part.steps, epsilon=part.epsilon) for part in parts)


def forecast_text(plan: TablePlan) -> str:
    """Return what errors to expect, in one line."""
    ranks = {name for part in plan.parts if part.in_ranks for name in part.errors}
    told = [
        f"{name} {error:.3g}" + (" rows" if name in ranks else "")
        for name, (error, _) in plan.errors.items()
    ]
    return printable(", ".join(told)) + f", for a group of {plan.group_rows:.0f} rows"


def table_methods(plan: TablePlan) -> tuple[Method, ...]:
    """Return what was chosen, for the advisor."""
    told = [f"{part.text} at ε = {_short(part.epsilon)}" for part in plan.parts]
    if plan.found is not None:
        told.insert(0, f"keys at ε = {_short(plan.found.epsilon)}")
    why = dict(zip(GOALS, _WHY, strict=True))[plan.goal]
    name = "together" if len(told) == 1 else "shares"
    why = why if len(told) > 1 else "measured together: nothing shares ε"
    return (Method(name=name, error=plan.worst, spends="; ".join(told), why=why),)


def _short(epsilon: Fraction) -> str:
    return f"{float(epsilon):.4g}"
