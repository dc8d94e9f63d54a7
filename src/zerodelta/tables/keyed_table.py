"""Statistics by keys that nobody listed: they are found, then their groups summed up (theory U).

If only counts are asked, all of ε goes to the keys, and the counts are the numbers that passed.
Otherwise half of it does, and the rest to the statistics of the found keys and of all other rows,
as if every key of the universe were a group: so the certificate is issued before a key is found,
and nothing in it depends on which. The found keys are public by then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zerodelta.data.keys import GROUP, GroupKey, GroupKeys, KeyedRows, KeySource
from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.spine.plan import Facts, Measured, ReleasePlan
from zerodelta.tables.found_keys import KeysPlan, plan_keys
from zerodelta.tables.grouped import Table
from zerodelta.tables.parts import AskedColumn
from zerodelta.tables.table import (
    GOALS,
    TableAnswer,
    TablePlan,
    forecast_text,
    plan_table,
    proof_parts,
    table_methods,
)
from zerodelta.value import value

_MOST_FALSE = 1 << 24


@value
class KeyedTableQuestion:
    """Statistics of columns are asked by keys of a public universe."""

    universe: KeySource
    keys: GroupKeys
    columns: tuple[AskedColumn, ...]
    complete: bool = False
    """Whether no row is dropped, so that a public number of them is the total."""
    goal: str = GOALS[0]
    weights: Mapping[str, Rational] | None = None
    frame: str | None = None
    """Which kind of frame is released; None for a `Table`."""
    false_keys: Rational = "1/100"

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Any]:
        """Divide ε between keys and statistics, and choose thresholds and noise."""
        exact = as_usable_epsilon(epsilon)
        require(
            as_positive(self.false_keys, "false_keys") <= _MOST_FALSE,
            "false_keys",
            self.false_keys,
            expected="at most 2^24 keys that noise invents",
            remedy="pass false_keys='1/100'",
        )
        keys = plan_keys(
            self.universe,
            epsilon=exact,
            statistics=bool(self.columns),
            false_keys=self.false_keys,
            neighbors=facts.neighbors,
        )
        plan = plan_table(
            epsilon=exact,
            keys=self.keys,
            columns=self.columns,
            expected_rows=facts.planned_rows,
            neighbors=facts.neighbors,
            goal=self.goal,
            weights=self.weights,
            found=keys,
        )
        total = facts.rows if self.complete else None

        def counted(counts: Mapping[Any, int], bits: BitSource) -> Any:
            return self._counts(keys, keys.labeled(keys.apply(counts, bits)))

        def measured(rows: KeyedRows, bits: BitSource) -> Measured:
            groups, labels = keys.groups_of(keys.apply(rows.counts(), bits))
            found = GroupKeys(keys=(GroupKey(name=GROUP, labels=tuple(labels)),))
            parts = [part.of_groups(found) for part in plan.parts]
            grouped = rows.by_group(groups, len(groups))
            answer = TableAnswer.of(parts, grouped, bits)
            shown = answer.shown(
                self._labels(labels),
                groups=len(labels),
                total=total,
                frame=self.frame,
                note=keys.warning if len(labels) > 1 else keys.none_found,
            )
            return Measured(value=shown, sums=answer.sums)

        bounds = ["bounds on the columns"] if self.columns else []
        return ReleasePlan(
            claim=PureDP(exact, neighbors=facts.neighbors),
            steps=() if plan.parts else keys.part.steps,
            parts=(keys.part, *proof_parts(plan.parts)) if plan.parts else (),
            answer=measured if self.columns else counted,
            error=self._told(plan, keys),
            methods=table_methods(plan),
            public=("the universe of keys", "how many false keys are expected", *bounds),
            details=plan,
        )

    def _told(self, plan: TablePlan, keys: KeysPlan) -> str:
        selected = "" if self.columns else "; no interval, as small counts are not shown"
        return f"{forecast_text(plan)}{selected}; {keys.warning}"

    def _labels(self, labels: Sequence[tuple[Any, ...]]) -> dict[str, list[Any]]:
        return {
            name: [each[place] for each in labels] for place, name in enumerate(self.keys.columns)
        }

    def _counts(self, keys: KeysPlan, found: Any) -> Any:
        """Return the table of the numbers that passed, less the median of the noise."""
        cells = [key if len(keys.columns) > 1 else (key,) for key in found.names]
        numbers = {
            "count": np.array([max(0, count) for count in found.counts], dtype=np.int64),
            "count_error": np.full(len(found), keys.error),
        }
        table = Table(self._labels(cells), numbers, note=found.note)
        return table if self.frame is None else table.to_frame(self.frame)
