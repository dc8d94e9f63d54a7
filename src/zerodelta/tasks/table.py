"""Release statistics by group, like GROUP BY in SQL, by one plan for all (theory P1, P2, G2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.data.arrays import DEFAULT_MISSING
from zerodelta.data.chosen import PRESENT
from zerodelta.data.declare import category
from zerodelta.data.keys import GROUP, GroupKey, GroupKeys, KeyedRows, KeySource
from zerodelta.data.rows import Rows
from zerodelta.errors import is_list, needed, require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.mechanisms.diagnostics import as_diagnosis
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.statistics import COLUMN_STATISTICS
from zerodelta.privacy.steps import Part
from zerodelta.spine.plan import Facts, Measured, ReleasePlan
from zerodelta.spine.run import ask
from zerodelta.spine.verbs import Paying, debited
from zerodelta.tables.found_keys import KeysPlan, plan_keys
from zerodelta.tables.grouped import By, Table, grouped
from zerodelta.tables.parts import StatisticOrLevel, TableColumn, as_statistics
from zerodelta.tables.table import (
    GOALS,
    TablePlan,
    forecast_text,
    measured,
    plan_table,
    shown,
    table_methods,
)
from zerodelta.tasks.task import (
    CLOSE,
    ROWS,
    SKIPPED,
    Command,
    Forecast,
    Numbers,
    Planner,
    Task,
    facts_of,
)
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack

_MOST_FALSE = 1 << 24


@debited
def table(
    data: Any,
    *,
    by: By = None,
    of: Mapping[str, Any],
    epsilon: Rational,
    bounds: Any = None,
    missing: Any = DEFAULT_MISSING,
    goal: str = GOALS[0],
    weights: Mapping[str, Rational] | None = None,
    false_keys: Rational = "1/100",
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release statistics of columns by group, like `frame.groupby(by).agg(of)`, but private.

    Use it for all statistics of one table at once: no number of groups costs ε, and the table
    includes the number of rows of each group. For one statistic there are short forms, as in
    ``zd.mean(people, "income", by="city", epsilon=1)``.

    Parameters
    ----------
    data : data set, frame or array
        What `zd.open` returns, or a frame or an array.
    by : str, list of str, or dict
        The columns that rows are grouped by: categories, booleans and dates of a data set. A dict
        says how: ``{"age": zd.bins([0, 18, 65, 120])}`` cuts numbers at public edges, and for a
        frame ``{"city": zd.category([...])}`` declares the groups. Without it all rows are one
        group. Each of up to 1000 integers (``zd.number(0, 120, integer=True)``) is a group; a
        number out of range is in none. Texts over an alphabet and integers of a larger range are
        keys that nobody listed: frequent ones are found, for half of ε (all of it, if only counts
        are released), and all other rows are one more group, "other".
    of : dict
        For each column the names of its statistics: "mean", "sum", "variance" (divided by the
        count), "std", "count" (of its values), "median", ``{"quantiles": [0.1, 0.9]}``. Rows are
        always counted.
    bounds : dict, or (lower, upper)
        The bounds of each column in `of`, known without the rows; for a data set, by default as
        declared.
    goal : str
        How ε is shared between parts that are not measured together. "equal shares", the default:
        the forecast error of each of k parts is at most k times its error alone with all of ε.
        "equal relative error" (relative to the width of a column; for counts and ranks to the
        expected rows of a group) and "least total error" (the least sum of squared relative errors)
        give most of ε to the statistics that are hardest to measure.
    weights : dict, optional
        Statistics that matter more: ``{"income_mean": 3}`` gives the part with this column three
        shares. From 1e-6 to 1e6.
    false_keys : number, default "1/100"
        The expected number of found keys that noise invented, if nobody listed the keys.

    Returns
    -------
    Release
        Its value is a frame of the same kind as the data, else a `Table`: a line for each group,
        also for one without rows. Its columns are the keys, `count`, then for each statistic a
        column such as `income_mean`, `income_q10` or `income_median`. A column such as
        `income_mean_error` has the expected absolute error of each cell; for quantiles
        `income_q10_rank_error` has the error in rows of the group. `release.plan` shows how ε is
        shared, `release.sums` has the noisy integers. Of keys that nobody listed only the found
        ones have a line, the largest first, then "other"; a note says how many may be invented.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory P1, P2, G2), proven: noise on exact integer sums, one table of
    them for all groups; quantiles are drawn together from each group (Q), unknown keys are found by
    asymmetric noise (U). Public knowledge is applied afterwards: counts are integers and not
    negative, they add up to the number of rows where that is public and all rows are in some group,
    and means lie within the bounds. A mean whose noisy count is not positive is the middle of the
    bounds.
    **Neighbors**: replace-one, or what the data set says.
    **Error**: that of each column for a group of average size; `release.plan` has the same.

    Examples
    --------
    >>> import zerodelta as zd
    >>> cells = np.zeros(100_000, dtype=[("city", "U4"), ("income", float)])
    >>> cells["city"], cells["income"] = np.where(np.arange(100_000) % 4, "rome", "oslo"), 3e4
    >>> people = zd.open(
    ...     cells,
    ...     columns={
    ...         "city": zd.category(["oslo", "rome"], other=True),
    ...         "income": zd.number(0, 200_000, missing=None),
    ...     },
    ... )
    >>> release = zd.table(people, by="city", of={"income": ["mean"]}, epsilon=1)
    >>> release.value["count"].round(-3).tolist()
    [25000, 75000, 0]
    >>> release.value["income_mean"][:2].round(-3).tolist()
    [30000.0, 30000.0]

    """
    return table_of(
        data,
        by=by,
        of=as_statistics(of),
        epsilon=epsilon,
        bounds=bounds,
        missing=missing,
        goal=goal,
        weights=weights,
        false_keys=false_keys,
        diagnostics=diagnostics,
    )


def table_of(
    data: Any,
    *,
    by: By,
    of: Mapping[str, tuple[StatisticOrLevel, ...]],
    epsilon: Rational,
    bounds: Any = None,
    missing: Any = DEFAULT_MISSING,
    goal: str = GOALS[0],
    weights: Mapping[str, Rational] | None = None,
    false_keys: Rational = "1/100",
    diagnostics: Rational | None = None,
) -> Release:
    """Release a table of checked statistics; `table` and its short forms call this."""
    rows = grouped(data, by=by, of=of, bounds=bounds, missing=missing)
    question = TableQuestion(
        keys=rows.keys,
        columns=rows.columns,
        complete=rows.complete,
        goal=goal,
        weights=weights,
        frame=rows.frame,
        universe=rows.universe,
        false_keys=false_keys,
    )
    diagnosis = as_diagnosis(diagnostics, rows.diagnosed_columns, bounds=None)
    return ask(question, rows.source, epsilon=epsilon, diagnosis=diagnosis)


def grouped_statistic(
    statistic: str, rows: Any, columns: str | Sequence[str] | None, *, by: By, **options: Any
) -> Release:
    """Release one statistic of columns by group, for `mean(…, by=…)` and other short forms."""
    listed = [columns] if isinstance(columns, str) else columns
    remedy = 'name them, as in zd.mean(people, "income", by="city")'
    listed = needed(listed, "columns", remedy)
    names = list(listed) if is_list(listed) else []
    texts = all(isinstance(name, str) for name in names)
    require(names and texts, "columns", columns, "names of columns", remedy)
    return table_of(rows, by=by, of=as_statistics(dict.fromkeys(names, statistic)), **options)


@value
class TableQuestion:
    """Question for statistics of columns, of all rows or by group.

    Keys that nobody listed are found first (theory U). If only counts are wanted, all of ε goes to
    the keys, and the counts are the noisy counts that passed. Otherwise half of ε goes to the keys,
    and the rest to the statistics of the found keys and of all other rows, as if every key of the
    universe were a group. So the certificate is issued before a key is found, and does not depend
    on which keys are. The found keys are public when the statistics are measured.
    """

    keys: GroupKeys
    columns: tuple[TableColumn, ...]
    complete: bool = False
    """Whether every row is in a group, so that a public number of them is the total."""
    goal: str = GOALS[0]
    weights: Mapping[str, Rational] | None = None
    frame: str | None = None
    """The kind of frame that is released; None for a `Table`."""
    only: str | None = None
    """The only statistic, of all rows: then its numbers are released, and not a table."""
    universe: KeySource | None = None
    """All possible keys, where nobody listed them."""
    false_keys: Rational = "1/100"

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Any]:
        """Plan the parts of the table, split ε between them, and forecast each column's error."""
        exact = as_usable_epsilon(epsilon)
        keys_plan = self._keys_plan(facts, exact)
        total = facts.rows if self.complete else None
        plan = plan_table(
            epsilon=exact,
            keys=self.keys,
            columns=self.columns,
            expected_rows=facts.planned_rows,
            rows=total if not self.keys.keys else None,
            neighbors=facts.neighbors,
            goal=self.goal,
            weights=self.weights,
            keys_plan=keys_plan,
            counted=self.only is None,
        )
        parts = [] if keys_plan is None else [keys_plan.part]
        parts += [Part(steps=part.steps, epsilon=part.epsilon) for part in plan.parts]
        public = ["the groups"] if self.keys.keys else []
        if keys_plan is not None:
            public = ["the universe of keys", "how many false keys are expected"]
        public += ["bounds on the columns"] if self.columns else []
        if keys_plan is None and facts.rows is not None and not facts.may_miss:
            public += ["the number of rows"]
        return ReleasePlan(
            claim=PureDP(exact, neighbors=facts.neighbors),
            steps=() if len(parts) > 1 else parts[0].steps,
            parts=tuple(parts) if len(parts) > 1 else (),
            answer=self._answer(plan, total)
            if keys_plan is None
            else self._answer_by_found_keys(plan, keys_plan, total),
            error=self._forecast(plan),
            methods=table_methods(plan),
            public=tuple(public),
            details=plan,
        )

    def _forecast(self, plan: TablePlan) -> float | str:
        """Return the error that a release states: a number for one statistic, else a text."""
        if self.only is not None:
            errors = plan.errors
            return float(np.mean([errors[column.named(self.only)][0] for column in self.columns]))
        if plan.found is None:
            return forecast_text(plan)
        selected = "" if self.columns else "; no interval, as small counts are not shown"
        return f"{forecast_text(plan)}{selected}; {plan.found.warning}"

    def _answer(self, plan: TablePlan, total: int | None) -> Callable[[Rows, BitSource], Measured]:
        """Return the function from opened rows to the table, or to the numbers of one statistic."""
        labels = list(zip(*self.keys.labels(), strict=True)) if self.only is None else []
        key_labels = {
            key.name: column
            for key, column in zip(self.keys.keys, labels, strict=False)
            if key.name is not PRESENT
        }

        def answer(rows: Rows, bits: BitSource) -> Measured:
            """Return the table of noisy statistics, or only the statistic that was asked for."""
            answers = measured(plan.parts, rows, bits)
            if self.only is not None:
                numbers = [answers.values[column.named(self.only)][0] for column in self.columns]
                value = float(numbers[0]) if len(numbers) == 1 else np.array(numbers)
                names = tuple(column.name for column in self.columns)
                labeled = tuple(replace(sums, labels=names) for sums in answers.sums)
                return Measured(value=value, sums=labeled)
            table = shown(
                answers, key_labels, groups=self.keys.count, total=total, frame=self.frame
            )
            return Measured(value=table, sums=answers.sums)

        return answer

    # -- keys that nobody listed --------------------------------------------------------------

    def _keys_plan(self, facts: Facts, epsilon: Fraction) -> KeysPlan | None:
        """Return the plan for finding keys, or None if all are listed."""
        if self.universe is None:
            return None
        require(
            as_positive(self.false_keys, "false_keys") <= _MOST_FALSE,
            "false_keys",
            self.false_keys,
            expected="at most 2^24 invented keys",
            remedy="pass false_keys='1/100'",
        )
        return plan_keys(
            self.universe,
            epsilon=epsilon,
            statistics=bool(self.columns),
            false_keys=self.false_keys,
            neighbors=facts.neighbors,
        )

    def _answer_by_found_keys(
        self, plan: TablePlan, keys: KeysPlan, total: int | None
    ) -> Callable[[Any, BitSource], Any]:
        """Return the function from counts by key, or from rows with keys, to the table."""

        # only counts: the noisy counts that passed the thresholds are the table
        def counted(counts: Mapping[Any, int], bits: BitSource) -> Any:
            """Return the table of found keys and their noisy counts."""
            found_keys = keys.labeled(keys.apply(counts, bits))
            cells = [key if len(keys.columns) > 1 else (key,) for key in found_keys.names]
            numbers = {
                "count": np.array([max(0, count) for count in found_keys.counts], dtype=np.int64),
                "count_error": np.full(len(found_keys), keys.error),
            }
            table = Table(self._labels(cells), numbers, note=found_keys.note)
            return table if self.frame is None else table.to_frame(self.frame)

        # statistics: the found keys become groups, which a second part of the certificate measures
        def by_found_keys(rows: KeyedRows, bits: BitSource) -> Measured:
            """Return the statistics of the groups whose keys were found by noisy counts."""
            groups, labels = keys.groups_of(keys.apply(rows.counts(), bits))
            found_groups = GroupKeys(keys=(GroupKey(name=GROUP, labels=tuple(labels)),))
            parts = [part.of_groups(found_groups) for part in plan.parts]
            grouped = rows.by_group(groups, len(groups))
            answer = measured(parts, grouped, bits)
            table = shown(
                answer,
                self._labels(labels),
                groups=len(labels),
                total=total,
                frame=self.frame,
                note=keys.warning if len(labels) > 1 else keys.no_keys_sentence,
            )
            return Measured(value=table, sums=answer.sums)

        return by_found_keys if self.columns else counted

    def _labels(self, labels: Sequence[tuple[Any, ...]]) -> dict[str, list[Any]]:
        """Return the labels of the groups column by column."""
        return {
            name: [cells[place] for cells in labels] for place, name in enumerate(self.keys.columns)
        }


# -- What the task is, for advice and the command line --------------------------------------------

_EXAMPLE = 'pass by=12 for 12 groups, or by={"city": 12, "age": zd.bins([0, 18, 65])}'


def _keys(by: Any) -> Any:
    """Return the keys of a table without data; a number stands for a key with as many groups."""
    if by is None:
        return None
    valid = isinstance(by, Mapping) or type(by) is int
    require(valid, "by", by, "a number of groups, or a kind for each key", _EXAMPLE)
    by_name = by if isinstance(by, Mapping) else {"group": by}
    return {
        name: category(range(as_count(how, "by", minimum=1))) if type(how) is int else how
        for name, how in by_name.items()
    }


def _plan(numbers: Numbers) -> ReleasePlan[Any]:
    """Return the plan of a table, for columns without rows."""
    by, of = _keys(numbers["by"]), as_statistics(numbers["of"])
    facts = facts_of(numbers, columns=tuple(dict.fromkeys([*(by or {}), *of])))
    no_rows = np.zeros(0, dtype=[(name, np.float64) for name in facts.columns])
    data = grouped(no_rows, by=by, of=of, bounds=numbers["bounds"], missing=numbers["missing"])
    question = TableQuestion(
        keys=data.keys,
        columns=data.columns,
        complete=data.complete,
        goal=numbers["goal"],
        weights=numbers["weights"],
    )
    return question.plan(facts, numbers["epsilon"])


def _blind(numbers: Numbers) -> float:
    """Return the relative error of guesses without rows: the least of all, or their l2 sum."""
    statistics = [name for names in as_statistics(numbers["of"]).values() for name in names]
    # a guessed quantile is off by half of the rows of the group
    errors = [
        COLUMN_STATISTICS[name].guess if isinstance(name, str) else 0.5 for name in statistics
    ]
    if numbers["goal"] == GOALS[2]:
        return math.sqrt(sum(error**2 for error in errors))
    return min(errors)


TASKS: dict[str, Task] = {
    "table": Task(
        verb=table,
        page="statistics",
        forecast=Forecast(
            unit="largest expected error of a cell of an average group, relative to the width of "
            "its column",
            call="zd.table(people, by=…, of=…, bounds=…, goal={goal}, epsilon={epsilon})",
            methods=lambda numbers: tuple(_plan(numbers).methods),
            reliable=CLOSE,
            needs={**ROWS, "of": 'of={"income": ["mean"]}'},
            allows={"by": None, "bounds": None, "missing": None, "goal": GOALS[0], "weights": None},
            blind=_blind,
            shows=lambda numbers: str(_plan(numbers).details),
            typical={"of": {"income": ["mean", "variance"]}, "by": 12, "bounds": (0, 100)},
        ),
        command=Command(
            columns="none",
            options=("by", "of", "goal", "weights", "false_keys", "diagnostics"),
            needs=("of",),
            publishes="a table: a line for each group, a column for each statistic",
            example="table people.csv --by city --of income=mean,median",
        ),
        planner=Planner(
            title="Table: a mean for each group",
            fields=("n", "groups", "width"),
            fixed={**SKIPPED, "of": {"income": ["mean"]}},
            people='cities = zd.category([f"city {i}" for i in range({groups})])\n'
            'columns = {"income": zd.number(0, {width}), "city": cities}\n'
            'people = zd.open("people.csv", columns=columns)\n',
            python='people, by="city", of={"income": ["mean"]}',
            shell="--by city --of income=mean",
        ),
    )
}
