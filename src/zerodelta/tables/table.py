"""Plan a table: split ε between its parts, and build the released table from their answers.

The number of groups costs no ε (theory P1, P3), and statistics that are measured together share
their noise. Several parts, each a `TablePart`, split ε between them for a stated goal:

- "equal shares": the error of each of k parts is at most k times its error alone with all of ε.
  Equal shares achieve that for errors proportional to 1/ε. Parts whose errors grow faster get more,
  as long as all others stay within k times; if that is not possible, all parts have the same
  factor.
- "equal relative error": all parts have the same largest relative error. For errors proportional to
  1/ε the shares are then proportional to the errors that the parts would have with all of ε.
- "least total error": the sum of squared relative errors is minimal. For errors proportional to 1/ε
  the share of a part is proportional to the power 2/3 of its error with all of ε.

A weight multiplies the error of a statistic wherever errors are compared. For the last two goals
errors are relative to the public width of a column, and errors of counts and ranks to the number of
rows of a group. Every part can count rows along with its statistics, so the error of the counts
decides only where nothing else is released, or where they have a weight.

Groups whose keys nobody listed are found first, for a share of ε of their own (`KeysPlan`). Parts
are planned for all possible groups, and measure only the found ones (`of_groups`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from zerodelta.data.chosen import PRESENT
from zerodelta.data.keys import GroupKeys
from zerodelta.data.rows import Rows
from zerodelta.errors import did_you_mean, is_name, printable, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.exact.sums import whole_counts
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.statistics import expected_count
from zerodelta.spine.plan import Method
from zerodelta.tables.found_keys import KeysPlan
from zerodelta.tables.grouped import Table
from zerodelta.tables.parts import MomentPart, QuantilePart, TableAnswer, TableColumn, TablePart
from zerodelta.value import value

_MOST_APART = 8
"""The largest number of columns for which a plan with a part for each column is considered."""

_ROUNDS = 6
"""The number of corrections of the shares."""

_STEPS = 1 << 12
"""The smallest share of a part is searched for among multiples of 1/4096."""

_NEAR = 1e-3
"""Error factors that differ by less than this count as equal."""

_MOST_WEIGHT = Fraction(10**6)

_LEAST = 1e-100
"""The error that replaces 0: at a very large ε, float arithmetic rounds an error to 0."""

GOALS = ("equal shares", "equal relative error", "least total error")


Errors: TypeAlias = Mapping[str, tuple[float, float]]
"""For each column its expected absolute error, and the size that errors are relative to."""

MakePart: TypeAlias = Callable[[Fraction], TablePart]
"""Function that returns a part calibrated to its share of ε."""


@value
class TablePlan:
    """The public plan of a table: its parts, their shares of ε, and expected errors; print it."""

    keys: GroupKeys
    epsilon: Fraction
    goal: str
    parts: tuple[TablePart, ...]
    group_rows: float
    found: KeysPlan | None = None
    """The plan for finding the groups, if nobody listed them."""
    alone: Mapping[str, float] = field(default_factory=dict)
    """The error that each column would have if nothing else shared the ε of the parts."""

    @property
    def errors(self) -> dict[str, tuple[float, float]]:
        """For each column its expected absolute error, and the size that errors are relative to."""
        if self.found is not None and not self.parts:
            return {"count": (self.found.error, self.group_rows)}
        return _merged([part.errors for part in self.parts])

    @property
    def worst(self) -> float:
        """The largest relative error; for "least total error" the root of the sum of squares."""
        return _Goal(name=self.goal if self.goal == GOALS[2] else GOALS[1]).size(self.errors)

    def __str__(self) -> str:
        named = [name for name in self.keys.columns if name is not PRESENT]
        groups = f"{self.keys.count} groups by {', '.join(named)}" if named else "all rows"
        if self.found is not None:
            groups = f"the keys of {', '.join(named)} that are found"
        of = f"{self.group_rows:.0f} rows" + (" each" if named else "")
        lines = [f"table of {groups}, planned for {of}"]
        if len(self.parts) > 1:
            lines.append(f"goal: {self.goal}")
        if self.found is not None:
            lines.append(
                f"  keys, of which half of those with {self.found.found_from} rows are found: "
                + self._share(self.found.epsilon)
            )
            if not self.parts:
                lines.append(f"    count ± {self.found.error:.3g}")
        for part in self.parts:
            lines.append(f"  {part.text}: {self._share(part.epsilon)}")
            for name, (error, unit) in part.errors.items():
                rows = " rows" if part.in_ranks else ""
                alone = f"; alone ± {self.alone[name]:.3g}" if name in self.alone else ""
                lines.append(f"    {name} ± {error:.3g}{rows} ({100 * error / unit:.2g} %{alone})")
        return printable("\n".join(lines), lines=True)

    def _share(self, epsilon: Fraction) -> str:
        share = float(epsilon / self.epsilon)
        return f"{share:.1%} of ε" if share < 1 else "ε"

    __repr__ = __str__


def plan_table(
    *,
    epsilon: Fraction,
    keys: GroupKeys,
    columns: Sequence[TableColumn],
    expected_rows: int,
    rows: int | None = None,
    neighbors: Neighbors = Neighbors.REPLACE,
    goal: str = GOALS[0],
    weights: Mapping[str, Rational] | None = None,
    others: Sequence[MakePart] = (),
    keys_plan: KeysPlan | None = None,
    counted: bool = True,
) -> TablePlan:
    """Plan counts of rows and statistics of columns by group, together or at shares of ε.

    Counts, sums, means and variances of several columns are one l∞ block for each group (G2) or a
    partition for each column (P1), whichever errs less for the goal; the quantiles of each column
    are drawn together (Q). `rows` is the public number of all rows, if they are one group.
    `weights` are for columns of the result. `others` make further parts. `keys_plan` is for keys
    that nobody listed; the parts share the ε that remains after it. With ``counted=False``
    rows are counted only where a statistic needs their number.

    >>> from zerodelta.data.keys import GroupKey
    >>> keys = GroupKeys(keys=(GroupKey(name="city", labels=("a", "b", "c", "d")),))
    >>> income = TableColumn(
    ...     name="income", bounds=(Fraction(0), Fraction(10)), missing=False, statistics=("mean",)
    ... )
    >>> print(
    ...     plan_table(epsilon=Fraction(1), keys=keys, columns=[income], expected_rows=4000)
    ... )
    table of 4 groups by city, planned for 1000 rows each
      income, Laplace noise on 2 sums of a group: ε
        count ± 3 (0.3 %)
        income_mean ± 0.0173 (0.17 %)
    """
    require(
        is_name(goal, GOALS),
        "goal",
        goal,
        expected=" or ".join(f'"{name}"' for name in GOALS),
        remedy=did_you_mean(goal, GOALS, "pass one of these"),
    )
    if keys_plan is None:
        group_rows, parts_epsilon = expected_rows / keys.count, epsilon
    else:
        group_rows, parts_epsilon = (
            _found_rows(keys_plan, expected_rows),
            keys_plan.remaining_epsilon,
        )
    facts = {"keys": keys, "group_rows": group_rows, "rows": rows, "neighbors": neighbors}
    drawn = [*(_quantiles(column, facts) for column in columns if column.levels), *others]
    summed = [part for column in columns for part in column.by_summand()]
    facts = {**facts, "expected_rows": expected_rows, "counted": counted}
    # candidates: a part for each column, or one part for all columns whose values are summed
    by_column = [*(_moments((column,), facts) for column in summed), *drawn]
    together = by_column if len(summed) == 1 else [_moments(tuple(summed), facts), *drawn]
    candidates = [] if len(summed) > 1 else [together]
    if not summed and rows is not None and drawn:  # n is public, so no part has to count rows
        candidates = [drawn]
    if len(summed) > 1 and any(column.degree > 0 for column in summed):
        candidates.append(together)
    if 1 < len(summed) <= _MOST_APART or not candidates:  # blocks need a column of degree > 0
        candidates.append(by_column)
    separate = by_column if summed else candidates[0]  # with quantiles alone, rows are a part too
    alone: dict[str, float] = {}
    for make in separate if parts_epsilon else []:
        for name, (error, _) in make(parts_epsilon).errors.items():
            alone[name] = min(error, alone.get(name, math.inf))  # rows: by the best count of them
    aim = _Goal(name=goal, weights=_as_weights(weights, columns), alone=alone)
    plans = [_split_epsilon(makers, parts_epsilon, aim) for makers in candidates]
    best = min(plans, key=lambda parts: aim.size(_merged([part.errors for part in parts])))
    shares_epsilon = len(best) > 1 or len(separate) > 1
    return TablePlan(
        keys=keys,
        epsilon=epsilon,
        goal=goal,
        parts=best,
        group_rows=group_rows,
        found=keys_plan,
        alone=alone if shares_epsilon else {},
    )


def _as_weights(
    weights: Mapping[str, Rational] | None, columns: Sequence[TableColumn]
) -> dict[str, float]:
    """Return the weights of columns of the result; a name of no such column is refused."""
    if weights is None:
        return {}
    names = ["count", *(name for column in columns for name in column.results)]
    example = f'pass weights={{"{names[-1]}": 3}}'
    require(isinstance(weights, Mapping), "weights", weights, "weights of columns by name", example)
    for name in weights:
        expected = f"weights of {', '.join(names)}"
        require(name in names, "weights", name, expected, did_you_mean(name, names, example))
    exact = {name: as_positive(weight, "weights") for name, weight in weights.items()}
    for name, weight in exact.items():
        # products of errors and weights are compared as floats
        fits = 1 / _MOST_WEIGHT <= weight <= _MOST_WEIGHT
        require(fits, "weights", weights[name], "numbers from 1e-6 to 1e6", example)
    return {name: float(weight) for name, weight in exact.items()}


def _found_rows(keys_plan: KeysPlan, expected_rows: int) -> float:
    """Return a typical number of rows of a found group, for planning.

    It is the geometric mean of the smallest number that is found and the number of all rows.
    """
    smallest = max(1, keys_plan.found_from)
    return math.sqrt(smallest * max(smallest, expected_rows))


def _moments(columns: tuple[TableColumn, ...], facts: Mapping[str, Any]) -> MakePart:
    """Return the maker of a part for sums of these columns; it keeps parts it has made."""
    return lru_cache(lambda epsilon: MomentPart.of(columns, epsilon=epsilon, **facts))


def _quantiles(column: TableColumn, facts: Mapping[str, Any]) -> MakePart:
    """Return the maker of a part for the quantiles of a column; it keeps parts it has made."""
    return lru_cache(lambda epsilon: QuantilePart.of(column, epsilon=epsilon, **facts))


@value
class _Goal:
    """The number that sharing ε makes small: a summary of the errors of a table."""

    name: str
    weights: Mapping[str, float] = field(default_factory=dict)
    alone: Mapping[str, float] = field(default_factory=dict)

    def size(self, errors: Errors) -> float:
        """Return the largest relative error, or for "least total error" the root of their squares.

        For "equal shares" errors are relative to those of each part alone. Counts of rows decide
        only where nothing else is released, or where they have a weight.
        """
        weights = self.weights
        compared = {n: e for n, e in errors.items() if n != "count" or n in weights} or errors
        relative = [
            weights.get(name, 1.0)
            * max(error, _LEAST)
            / (max(self.alone[name], _LEAST) if self.name == GOALS[0] else unit)
            for name, (error, unit) in compared.items()
        ]
        if self.name == GOALS[2]:
            return math.sqrt(math.fsum(error**2 for error in relative))
        return max(relative, default=0.0)


def _split_epsilon(
    makers: Sequence[MakePart], epsilon: Fraction, goal: _Goal
) -> tuple[TablePart, ...]:
    """Return the parts at their shares of ε, which add up to ε exactly; no parts at ε = 0."""
    if not epsilon:
        return ()
    parts = tuple(make(epsilon) for make in makers)
    if len(makers) == 1:
        return parts
    if goal.name == GOALS[0]:
        return _fairly_shared(makers, epsilon, goal, np.array([goal.size(p.errors) for p in parts]))
    # The best shares are a fixed point: error · share estimates the error at all of ε, from which
    # new shares follow. Errors of sums are proportional to 1/ε, so one step would do for them;
    # errors of quantiles are so only roughly, hence a few damped steps, of which the best is kept.
    shares, best, smallest = np.ones(len(makers)), parts, math.inf
    for step in range(_ROUNDS):
        sizes = [goal.size(part.errors) for part in parts]
        full_errors = np.maximum(sizes, _LEAST) * shares
        wanted = full_errors if goal.name == GOALS[1] else full_errors ** (2 / 3)
        wanted = wanted / wanted.sum()
        before, shares = shares, wanted if step == 0 else (shares + wanted) / 2
        if np.abs(shares - before).max() < 1e-3:
            break
        parts = _make_parts(makers, epsilon, shares)
        size = goal.size(_merged([part.errors for part in parts]))
        if size < smallest:
            best, smallest = parts, size
    return best


def _fairly_shared(
    makers: Sequence[MakePart], epsilon: Fraction, goal: _Goal, sizes: Floats
) -> tuple[TablePart, ...]:
    """Return parts whose error factors are at most what they would be for errors like 1/ε.

    The factor of a part is its weighted error over its error alone with all of ε. `sizes` are the
    factors at all of ε: 1, unless several columns are one block or have weights. For errors
    proportional to 1/ε, shares proportional to `sizes` give each part the factor ``sizes.sum()``.
    """
    limit = float(sizes.sum())
    fair = sizes / limit
    best = _make_parts(makers, epsilon, fair)
    if _largest(best, goal) <= limit * (1 + _NEAR):
        return best
    # some errors grow faster than 1/ε: let the other parts give up what they do not need
    needed = np.array([_smallest_share(make, epsilon, goal, limit) for make in makers])
    if needed.sum() <= 1:
        spare = max(float(np.maximum(fair - needed, 0).sum()), 1 / _STEPS)
        taken = float(np.maximum(needed - fair, 0).sum()) / spare
        return _make_parts(
            makers, epsilon, fair + (needed - fair) * np.where(needed > fair, 1, taken)
        )
    # not all parts can stay within the limit: give all the same factor, by a fixed-point iteration
    # with a root, because errors may grow as fast as 1/ε²
    shares = fair
    for _ in range(_ROUNDS):
        sizes = np.array([goal.size(part.errors) for part in _make_parts(makers, epsilon, shares)])
        shares = shares * np.sqrt(sizes)
        shares = shares / shares.sum()
        best = min(
            best, _make_parts(makers, epsilon, shares), key=lambda parts: _largest(parts, goal)
        )
    return best


def _largest(parts: Sequence[TablePart], goal: _Goal) -> float:
    """Return the largest error factor of a part."""
    return max(goal.size(part.errors) for part in parts)


def _smallest_share(make: MakePart, epsilon: Fraction, goal: _Goal, limit: float) -> float:
    """Return the smallest share, to 1/4096, whose error factor is within `limit`; 1 if none is."""
    low, high = 0, _STEPS
    while high - low > 1:
        middle = (low + high) // 2
        size = goal.size(make(Fraction(middle, _STEPS) * epsilon).errors)
        low, high = (low, middle) if size <= limit * (1 + _NEAR / 2) else (middle, high)
    return high / _STEPS


def _make_parts(
    makers: Sequence[MakePart], epsilon: Fraction, shares: Floats
) -> tuple[TablePart, ...]:
    """Return the parts at these shares of ε, rounded to exact ones."""
    exact = _shares(shares)
    return tuple(make(share * epsilon) for make, share in zip(makers, exact, strict=True))


def _shares(weights: Floats) -> list[Fraction]:
    """Return exact shares near these weights that add up to 1; none is below about 1 % of 1/k.

    >>> _shares(np.array([1 / 3, 1 / 3, 1 / 3]))
    [Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)]
    """
    parts = np.maximum(weights, 0.01 / len(weights))
    unit = 10_000 * len(weights)
    shares = [Fraction(int(unit * share), unit) for share in parts / parts.sum()]
    shares[-1] += 1 - sum(shares, Fraction(0))
    return shares


def _merged(parts: Sequence[Errors]) -> dict[str, tuple[float, float]]:
    """Return the errors of all columns; counts of rows by several parts are averaged."""
    merged = {name: error for errors in parts for name, error in errors.items()}
    counts = [errors["count"] for errors in parts if "count" in errors]
    if counts:
        squares = math.fsum(1 / max(error, _LEAST) ** 2 for error, _ in counts)
        merged["count"] = (1 / math.sqrt(squares), counts[0][1])
    return merged


# -- From the answers of the parts to the released table: post-processing -------------------------

_WHY = (
    "no part is much more wrong than it would be alone",
    "least by the largest relative error",
    "least by all relative errors together",
)
"""The reasons that the advisor shows for the shares, in the order of `GOALS`."""


def measured(parts: Sequence[TablePart], rows: Rows, bits: BitSource) -> TableAnswer:
    """Measure all parts of a table from opened rows."""
    answers = [part.answer(rows, bits) for part in parts]
    return TableAnswer(
        values={name: entry for answer in answers for name, entry in answer.values.items()},
        counts=[count for answer in answers for count in answer.counts],
        sums=tuple(sums for answer in answers for sums in answer.sums),
    )


def shown(
    answer: TableAnswer,
    labels: Mapping[str, Sequence[Any]],
    *,
    groups: int,
    total: int | None,
    frame: str | None,
    note: str = "",
) -> Any:
    """Return the released table as a kind of frame, averaging the counts of several parts.

    `total` is the public number of rows, if each row is in a group.
    """
    if answer.counts:
        weights = np.array([1 / max(error, 1e-100) ** 2 for _, error in answer.counts])
        noisy = np.average([rows for rows, _ in answer.counts], axis=0, weights=weights)
        count = whole_counts(noisy, total=total)
        error = expected_count(float(1 / np.sqrt(weights.sum())))
    else:  # no part counted rows: they are one group, and their number is public
        count, error = np.full(groups, total, dtype=np.int64), 0.0
    numbers = {"count": count, "count_error": np.full(groups, error), **answer.values}
    table = Table(labels, numbers, note=note)
    return table if frame is None else table.to_frame(frame)


def forecast_text(plan: TablePlan) -> str:
    """Return the expected errors, in one line."""
    ranks = {name for part in plan.parts if part.in_ranks for name in part.errors}
    errors = [
        f"{name} {error:.3g}" + (" rows" if name in ranks else "")
        for name, (error, _) in plan.errors.items()
    ]
    return printable(", ".join(errors)) + f", for a group of {plan.group_rows:.0f} rows"


def table_methods(plan: TablePlan) -> tuple[Method, ...]:
    """Return the table's plan as one method: its parts, their ε, and its worst error."""
    spends = [f"{part.text} at ε = {_short(part.epsilon)}" for part in plan.parts]
    if plan.found is not None:
        spends.insert(0, f"keys at ε = {_short(plan.found.epsilon)}")
    if len(spends) == 1:
        name, why = "together", "measured together: nothing shares ε"
    else:
        name, why = "shares", dict(zip(GOALS, _WHY, strict=True))[plan.goal]
    return (Method(name=name, error=plan.worst, spends="; ".join(spends), why=why),)


def _short(epsilon: Fraction) -> str:
    """Return ε to four digits."""
    return f"{float(epsilon):.4g}"
