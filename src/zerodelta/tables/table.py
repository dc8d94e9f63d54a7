"""The plan of a table, at which share of ε each part is measured; and the table from the answers.

Groups cost nothing (theory P1, P3), and what is measured together shares its noise. Several parts,
each a `TablePart`, split ε between them for a goal that is stated:

- "equal shares": each of k parts is at most k times as wrong as it would be alone with all of ε.
  Errors that go with 1/ε are so at equal shares. Where others grow faster, their parts get more, as
  far as the rest stays within its own k times; where not all can, all have the same factor.
- "equal relative error": parts have the same largest relative error. Errors go with 1/ε, so shares
  are in proportion to the errors that the parts would have at the whole of ε.
- "least total error": the sum of squared relative errors is the least; shares go with the cube
  root of what a part adds to it.

A weight multiplies the error of a statistic wherever these are compared. For the last two goals
errors are relative to the public width of a column, those of counts and of the ranks of quantiles
to the rows of a group. Counts of rows come along with any part: they decide only where nothing else
is asked, or where they have a weight. New kinds of statistics join a table as parts: `plan_table`.

Groups whose keys nobody listed are found first, for a share of ε of their own (`KeysPlan`). Parts
are planned for all groups there can be, and measure those that were found: `of_groups`.
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
from zerodelta.exact.noise_tails import NoisySums
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.exact.sums import whole_counts
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.statistics import expected_count
from zerodelta.privacy.steps import Part
from zerodelta.spine.plan import Method
from zerodelta.tables.found_keys import KeysPlan
from zerodelta.tables.grouped import Table
from zerodelta.tables.parts import AskedColumn, MomentPart, QuantilePart, TablePart
from zerodelta.value import value

_MOST_APART = 8
"""More columns than this are one block of sums: no other plan is looked at."""

_ROUNDS = 6
"""How often shares are corrected."""

_STEPS = 1 << 12
"""How finely the least share of a part is searched for."""

_NEAR = 1e-3
"""Factors of error closer than this are the same."""

_MOST_WEIGHT = Fraction(10**6)

_LEAST = 1e-100
"""What an error of 0 counts as: noise of a very large ε is 0 for all that floats can tell."""

GOALS = ("equal shares", "equal relative error", "least total error")


Errors: TypeAlias = Mapping[str, tuple[float, float]]
"""The expected absolute error of each column, and what it is relative to."""

MakePart: TypeAlias = Callable[[Fraction], TablePart]
"""Returns the part at a share of ε."""


@value
class TablePlan:
    """What a table costs, how ε is shared, and which errors to expect; print it.

    Public: everything here.
    """

    keys: GroupKeys
    epsilon: Fraction
    goal: str
    parts: tuple[TablePart, ...]
    group_rows: float
    found: KeysPlan | None = None
    """How the groups are found, if nobody listed them."""
    alone: Mapping[str, float] = field(default_factory=dict)
    """The error that each column would have if nothing else shared the ε of the parts."""

    @property
    def errors(self) -> dict[str, tuple[float, float]]:
        """The expected absolute error of each column, and what it is relative to."""
        if self.found is not None and not self.parts:
            return {"count": (self.found.error, self.group_rows)}
        return _merged([part.errors for part in self.parts])

    @property
    def worst(self) -> float:
        """The largest relative error, or the root of their squares if these are to be small."""
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
                f"  keys, of which half of those with {self.found.half_found} rows are found: "
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
    columns: Sequence[AskedColumn],
    expected_rows: int,
    rows: int | None = None,
    neighbors: Neighbors = Neighbors.REPLACE,
    goal: str = GOALS[0],
    weights: Mapping[str, Rational] | None = None,
    others: Sequence[MakePart] = (),
    found: KeysPlan | None = None,
    counted: bool = True,
) -> TablePlan:
    """Plan counts of rows and statistics of columns by group, together or at shares of ε.

    Counts, sums, means and variances of several columns are one l∞ block for each group (G2) or a
    partition for each column (P1), whichever the goal prefers; the quantiles of each column are
    drawn together (Q). `rows` is the public number of all rows, where there is one group and all
    are in it. `weights` are those of columns of the result. `others` make further parts. `found`
    says how keys are found that nobody listed; the parts share what it leaves of ε. Rows that
    nobody asked for need not be `counted`.

    >>> from zerodelta.data.keys import GroupKey
    >>> keys = GroupKeys(keys=(GroupKey(name="city", labels=("a", "b", "c", "d")),))
    >>> income = AskedColumn(
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
        expected=" or ".join(f'"{each}"' for each in GOALS),
        remedy=did_you_mean(goal, GOALS, "pass one of these"),
    )
    each = expected_rows / keys.count if found is None else _found_rows(found, expected_rows)
    facts = {"keys": keys, "group_rows": each, "rows": rows, "neighbors": neighbors}
    drawn = [*(_quantiles(column, facts) for column in columns if column.levels), *others]
    summed = [part for column in columns for part in column.by_summand()]
    facts = {**facts, "expected_rows": expected_rows, "counted": counted}
    each_alone = [*(_moments((column,), facts) for column in summed), *drawn]
    together = each_alone if len(summed) == 1 else [_moments(tuple(summed), facts), *drawn]
    ways = [] if len(summed) > 1 else [together]
    if not summed and rows is not None and drawn:  # nothing is to be counted
        ways = [drawn]
    if len(summed) > 1 and any(column.degree > 0 for column in summed):
        ways.append(together)
    if 1 < len(summed) <= _MOST_APART or not ways:  # values are counted one column at a time
        ways.append(each_alone)
    shared = epsilon if found is None else found.left
    weighed = _as_weights(weights, columns)
    apart = each_alone if summed else ways[0]  # beside quantiles alone, rows are a part
    listed = [make(shared).errors for make in apart] if shared else []
    alone: dict[str, float] = {}
    for name, (error, _) in (each for errors in listed for each in errors.items()):
        alone[name] = min(error, alone.get(name, math.inf))  # rows: of what counts them best
    aim = _Goal(name=goal, weights=weighed, alone=alone)
    plans = [_shared(makers, shared, aim) for makers in ways] if shared else [()]
    best = min(plans, key=lambda parts: aim.size(_merged([part.errors for part in parts])))
    several = len(best) > 1 or len(apart) > 1
    return TablePlan(
        keys=keys,
        epsilon=epsilon,
        goal=goal,
        parts=best,
        group_rows=each,
        found=found,
        alone=alone if several else {},
    )


def _as_weights(
    given: Mapping[str, Rational] | None, columns: Sequence[AskedColumn]
) -> dict[str, float]:
    """Return the weights of columns of the result; what is none of these is refused."""
    if given is None:
        return {}
    names = ["count", *(name for column in columns for name in column.results)]
    example = f'pass weights={{"{names[-1]}": 3}}'
    require(isinstance(given, Mapping), "weights", given, "weights of columns by name", example)
    for name in given:
        expected = f"weights of {', '.join(names)}"
        require(name in names, "weights", name, expected, did_you_mean(name, names, example))
    weights = {name: as_positive(weight, "weights") for name, weight in given.items()}
    for name, weight in weights.items():
        # floats compare errors times weights
        fits = 1 / _MOST_WEIGHT <= weight <= _MOST_WEIGHT
        require(fits, "weights", given[name], "numbers from 1e-6 to 1e6", example)
    return {name: float(weight) for name, weight in weights.items()}


def _found_rows(found: KeysPlan, expected_rows: int) -> float:
    """Return the rows of a group to plan with: between the least that are found, and all rows."""
    least = max(1, found.half_found)
    return math.sqrt(least * max(least, expected_rows))


def _moments(columns: tuple[AskedColumn, ...], facts: Mapping[str, Any]) -> MakePart:
    return lru_cache(lambda epsilon: MomentPart.of(columns, epsilon=epsilon, **facts))


def _quantiles(column: AskedColumn, facts: Mapping[str, Any]) -> MakePart:
    return lru_cache(lambda epsilon: QuantilePart.of(column, epsilon=epsilon, **facts))


@value
class _Goal:
    """What shares are for: how large errors are that are to be small."""

    name: str
    weights: Mapping[str, float] = field(default_factory=dict)
    alone: Mapping[str, float] = field(default_factory=dict)

    def size(self, errors: Errors) -> float:
        """Return what is to be small; rows are counted along, and decide if alone or weighed."""
        weights = self.weights
        asked = {n: e for n, e in errors.items() if n != "count" or n in weights} or errors
        each = [
            weights.get(name, 1.0)
            * max(error, _LEAST)
            / (max(self.alone[name], _LEAST) if self.name == GOALS[0] else unit)
            for name, (error, unit) in asked.items()
        ]
        if self.name == GOALS[2]:
            return math.sqrt(math.fsum(error**2 for error in each))
        return max(each, default=0.0)


def _shared(makers: Sequence[MakePart], epsilon: Fraction, goal: _Goal) -> tuple[TablePart, ...]:
    """Return the parts at their shares of ε, which add up to it exactly."""
    parts = tuple(make(epsilon) for make in makers)
    if len(makers) == 1:
        return parts
    if goal.name == GOALS[0]:
        return _fairly_shared(makers, epsilon, goal, np.array([goal.size(p.errors) for p in parts]))
    shares, best, least = np.ones(len(makers)), parts, math.inf
    for step in range(_ROUNDS):
        # errors at ε, if they go with 1/ε; those of quantiles do so only about
        sizes = [goal.size(part.errors) for part in parts]
        weights = np.maximum(sizes, _LEAST) * shares
        wanted = weights if goal.name == GOALS[1] else weights ** (2 / 3)
        wanted = wanted / wanted.sum()
        before, shares = shares, wanted if step == 0 else (shares + wanted) / 2
        if np.abs(shares - before).max() < 1e-3:
            break
        parts = _made(makers, epsilon, shares)
        size = goal.size(_merged([part.errors for part in parts]))
        if size < least:
            best, least = parts, size
    return best


def _fairly_shared(
    makers: Sequence[MakePart], epsilon: Fraction, goal: _Goal, sizes: Floats
) -> tuple[TablePart, ...]:
    """Return parts none of which is more times as wrong as alone than all would be by 1/ε.

    `sizes`: how many times each is as wrong as alone, times its weight, at all of ε: 1, but where
    several columns are one block.
    """
    most = float(sizes.sum())
    fair = sizes / most
    best = _made(makers, epsilon, fair)
    if _largest(best, goal) <= most * (1 + _NEAR):
        return best
    least = np.array([_least_share(make, epsilon, goal, most) for make in makers])
    if least.sum() <= 1:  # what others can spare is enough
        spare = max(float(np.maximum(fair - least, 0).sum()), 1 / _STEPS)
        given = float(np.maximum(least - fair, 0).sum()) / spare
        return _made(makers, epsilon, fair + (least - fair) * np.where(least > fair, 1, given))
    shares = fair
    for _ in range(_ROUNDS):  # all get the same factor; a root, as errors may grow like 1/ε²
        sizes = np.array([goal.size(part.errors) for part in _made(makers, epsilon, shares)])
        shares = shares * np.sqrt(sizes)
        shares = shares / shares.sum()
        best = min(best, _made(makers, epsilon, shares), key=lambda parts: _largest(parts, goal))
    return best


def _largest(parts: Sequence[TablePart], goal: _Goal) -> float:
    return max(goal.size(part.errors) for part in parts)


def _least_share(make: MakePart, epsilon: Fraction, goal: _Goal, most: float) -> float:
    """Return about the least share at which a part is not too wrong; 1 if none is enough."""
    low, high = 0, _STEPS
    while high - low > 1:
        middle = (low + high) // 2
        fine = goal.size(make(Fraction(middle, _STEPS) * epsilon).errors) <= most * (1 + _NEAR / 2)
        low, high = (low, middle) if fine else (middle, high)
    return high / _STEPS


def _made(makers: Sequence[MakePart], epsilon: Fraction, shares: Floats) -> tuple[TablePart, ...]:
    exact = _shares(shares)
    return tuple(make(share * epsilon) for make, share in zip(makers, exact, strict=True))


def _shares(weights: Floats) -> list[Fraction]:
    """Return shares that are about so large, none of them tiny, and add up to 1 exactly.

    >>> _shares(np.array([1 / 3, 1 / 3, 1 / 3]))
    [Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)]
    """
    parts = np.maximum(weights, 0.01 / len(weights))
    unit = 10_000 * len(weights)
    shares = [Fraction(int(unit * each), unit) for each in parts / parts.sum()]
    shares[-1] += 1 - sum(shares, Fraction(0))
    return shares


def _merged(parts: Sequence[Errors]) -> dict[str, tuple[float, float]]:
    """Return the errors of all columns; rows that several parts count are averaged."""
    found = {name: error for errors in parts for name, error in errors.items()}
    counts = [errors["count"] for errors in parts if "count" in errors]
    if counts:
        squares = math.fsum(1 / max(error, _LEAST) ** 2 for error, _ in counts)
        found["count"] = (1 / math.sqrt(squares), counts[0][1])
    return found


# -- From what the parts of a table measured to the table that is released: post-processing -------

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
