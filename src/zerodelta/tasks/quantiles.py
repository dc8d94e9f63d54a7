"""Release quantiles as points of a public grid, alone or drawn together (theory C10.2, Q)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrays import DEFAULT_MISSING, as_source
from zerodelta.data.dataset import Dataset
from zerodelta.data.rows import Rows
from zerodelta.data.source import Source
from zerodelta.errors import is_list, is_name, require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count
from zerodelta.mechanisms.diagnostics import as_diagnosis
from zerodelta.mechanisms.quantile_plan import plan_quantiles
from zerodelta.mechanisms.ranks import (
    MOST_POINTS,
    Aim,
    GridRows,
    PrivateAim,
    aimed_ranks,
    as_level,
    as_points,
    grid_of,
    wanted_ranks,
)
from zerodelta.mechanisms.selection import PermuteAndFlip, worst_gap
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors, as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spine.plan import Facts, Method, ReleasePlan, choose
from zerodelta.spine.run import ask
from zerodelta.spine.verbs import Paying, debited, inside_same_release
from zerodelta.tasks.task import (
    CLOSE,
    METHOD,
    PERCENT,
    ROWS,
    SKIPPED,
    UNMEASURED,
    Command,
    Forecast,
    Numbers,
    Planner,
    Task,
    facts_of,
    simple,
)
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


# -- A quantile on a public grid: selection by rank, exact for grids of any size (theory C10.2) ---

_UNLIKELY = 45.0
"""Points that win with probability below e^-45 are not scored one by one."""
_FINEST = 1 << 20
"""The largest denominator of a level that a margin has moved."""
_FILLED = 100
"""Forecasts are for rows that lie evenly in a hundredth of the bounds."""


@debited
def quantile(
    rows: Any,
    columns: str | None = None,
    *,
    q: Rational,
    bounds: tuple[Rational, Rational] | None = None,
    epsilon: Rational,
    grid: int | Sequence[Rational] | None = None,
    margin: int = 0,
    missing: Any = DEFAULT_MISSING,
    method: str = "auto",
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release a q-quantile of one bounded column, like `np.quantile`, but private.

    Use it where a few rows may be far away from all others. The answer is the ⌈q·n⌉-th smallest
    row, or any point from there to the next row if q·n is whole.

    Parameters
    ----------
    rows : data set, array, list, series, frame or Source
        What `zd.open` returns, or one column. Values are clipped to the bounds and moved to the
        nearest point.
    columns : str, optional
        Which column of a data set or a frame.
    q : number from 0 to 1
        Which quantile, exactly as it is written: 0.9 of 10 rows is row 9.
    bounds : (lower, upper)
        Where the points lie, known without the rows; for a data set, by default as declared. Not
        needed if `grid` lists the points.
    grid : int or sequence
        The number of points that lie evenly between the bounds, or the points themselves in rising
        order. By default 2^40 + 1, which is the largest number, and for a column declared with
        ``integer=True`` its integers. If it is known where rows crowd, points that are about 3/ε
        rows apart there are a little better.
    margin : int
        By at least how many rows the wanted rank is kept inside the first and the last row. Near
        the ends of rows that fill only a small part of the bounds the released point may lie
        beyond all rows: within 2·ln(n·width/spread)/ε rows of an end. Pass about that number if
        the bounds may be so wide and a point among the rows matters more than its rank.
    method : str
        "permute-and-flip", or "auto", which is the same.

    Returns
    -------
    Release
        Its value is a point of the grid of rank near q·n.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory C10.2), proven: the rank score of a point has sensitivity 1.
    **Neighbors**: replace-one, or what the data set says. Where cells may be missing, or rows may
    be dropped, added or removed, the number n of rows that count is private, and the wanted rank
    follows it.
    **Error**: the expected rank error in rows, about 2/ε where rows lie evenly around the quantile
    on a finer grid, margin included; the error in the unit of the data depends on the private rows.
    It is for rows that fill a hundredth of the bounds: with few rows at a small ε most released
    points lie beyond all rows, and it says so.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.arange(100_000) % 100
    >>> quantile(ages, q=0.855, bounds=(0, 120), grid=121, epsilon=1).value
    85.0

    """
    source = as_source(rows, columns, missing=missing)
    stated = source.declared_bounds if bounds is None else bounds
    points = declared_grid(source) if bounds is None and grid is None else grid
    question = QuantileQuestion(q=q, bounds=stated, grid=points, margin=margin, method=method)
    diagnosis = as_diagnosis(diagnostics, source, bounds=stated)
    return ask(question, source, epsilon=epsilon, diagnosis=diagnosis)


@partial(debited, like=quantile)
def median(
    rows: Any,
    columns: str | None = None,
    *,
    bounds: tuple[Rational, Rational] | None = None,
    epsilon: Rational,
    grid: int | Sequence[Rational] | None = None,
    missing: Any = DEFAULT_MISSING,
    method: str = "auto",
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release a median of one bounded column, like `np.median`, but private.

    It is `quantile` with q = 1/2. Use it instead of a mean where a few rows may be far away.

    Parameters
    ----------
    grid : int or sequence
        The points, or the number of points that lie evenly between the bounds, as for `quantile`.

    Returns
    -------
    Release
        Its value is a point of the grid of rank near n/2.

    Notes
    -----
    **Guarantee**, **Neighbors**, **Error**: as for `quantile`.

    Examples
    --------
    >>> import numpy as np
    >>> median(np.arange(101_000) % 101, bounds=(0, 100), grid=101, epsilon=1).value
    50.0

    """
    return inside_same_release(quantile)(
        rows,
        columns,
        q="1/2",
        bounds=bounds,
        epsilon=epsilon,
        grid=grid,
        missing=missing,
        method=method,
        diagnostics=diagnostics,
    )


@value
class QuantileQuestion:
    """Question for a quantile of one column, as a point of a public grid."""

    q: Rational
    bounds: tuple[Rational, Rational] | None = None
    grid: int | Sequence[Rational] | None = None
    margin: int = 0
    method: str = "auto"

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Aim at public ranks around q·n, and calibrate permute-and-flip over the grid."""
        facts.only_one_column()
        exact, level = as_usable_epsilon(epsilon), as_level(self.q)
        points = as_points(self.bounds, self.grid)
        margin = as_count(self.margin, "margin", minimum=0)
        private = _private_aim(facts, level, margin)
        sensitivity = 1 if private is None else private.sensitivity
        unit = 1 if private is None else private.of(0).unit
        methods = quantile_methods(
            epsilon=exact * unit / sensitivity,  # ε for a row that changes a rank by 1
            n=max(1, facts.planned_rows),
            points=points.size,
            q=level if private is None else private.q,
            margin=margin,
        )
        chosen = choose(methods, self.method)
        mechanism = PermuteAndFlip.for_epsilon(
            epsilon=exact, sensitivity=sensitivity, neighbors=facts.neighbors
        )
        if private is None:
            n = facts.public_rows
            first, last = aimed_ranks(level, n, margin=margin)
        reach = _reach(mechanism.scale / unit, points.size)

        def aim_of(count: int) -> Aim:
            return Aim(first=first, last=last) if private is None else private.of(count)

        def answer(rows: Rows, bits: BitSource) -> float:
            """Return a grid point, drawn by its distance in rank from the quantile."""
            column = GridRows(rows=rows, points=points, skip=facts.may_miss)
            groups = column.groups(aim_of, reach=reach)

            def score_beyond(place: int) -> int:
                return -groups.aim.distance(*column.ranks(groups.far_point(place)))

            winner, place = mechanism.select_member(
                groups.scores, groups.members, bits, rest=score_beyond if groups.beyond else None
            )
            return points.value(groups.point(winner, place))

        counted = () if private is not None else ("the number of rows",)
        return ReleasePlan(
            claim=PureDP(exact, neighbors=facts.neighbors),
            steps=(mechanism.step(),),
            answer=answer,
            error=chosen.error,
            methods=methods,
            public=(*counted, "the grid of possible answers", "which quantile"),
        )


def _private_aim(facts: Facts, level: Fraction, margin: int) -> PrivateAim | None:
    """Return the aim if the number of rows that count is private, else None."""
    if not facts.may_miss and facts.rows is not None:
        return None
    if facts.neighbors is Neighbors.REPLACE:
        return PrivateAim(q=level, margin=margin)
    # the aim is q·N with a fixed q, so the margin must be a fixed fraction of the rows; a row that
    # comes or goes changes a distance by max(q, 1 - q) only
    fraction = min(Fraction(margin, max(1, facts.planned_rows)), Fraction(1, 2))
    inside = min(max(level, fraction), 1 - fraction)
    return PrivateAim(q=inside.limit_denominator(_FINEST), follows=False)


def quantile_methods(
    *,
    epsilon: Rational,
    n: int,
    points: int | None = None,
    q: Rational = "1/2",
    margin: int = 0,
) -> tuple[Method, ...]:
    """Return the only method for one quantile, with its expected rank error in rows.

    Its error is the expected rank error in rows, for rows that lie evenly in a hundredth of the
    bounds or more. Near the ends it includes the distance from the wanted rank to the aim of
    `aimed_ranks`, and with few rows at a small ε the points beyond all rows. On a grid of few
    points it is at most the distance of the aim plus the `worst_gap` of a choice among the points.

    >>> [round(quantile_methods(epsilon=1, n=n)[0].error, 2) for n in (1000, 1001)]
    [2.04, 2.67]
    >>> round(quantile_methods(epsilon=1, n=10_000, q="0.001")[0].error)
    10
    """
    exact = as_usable_epsilon(epsilon)
    rows = as_count(n, "n", minimum=1)
    size = as_count(MOST_POINTS if points is None else points, "points", minimum=1)
    level = as_level(q)
    wanted = wanted_ranks(level, rows)
    aim = aimed_ranks(level, rows, margin=margin)
    distance = abs(sum(aim) - sum(wanted)) / 2
    on_fine_grid = _rank_error(rows, wanted, aim, min(max(float(exact) / 2, 1e-15), 700.0))
    only = Method(
        name="permute-and-flip",
        error=min(on_fine_grid, distance + worst_gap(size, 2 / exact)),
        spends="ε on one choice",
        why="its rank error is stochastically smaller than the exponential mechanism's at equal ε",
    )
    return (only,)


def _rank_error(n: int, wanted: tuple[int, int], aim: tuple[int, int], rate: float) -> float:
    """Return the expected rank error on a fine grid, with x = e^-rate = e^(-ε/2).

    If every gap between rows has equally many grid points, P(rank error = k) ∝ x^k, k = 1, 2, …,
    on two sides, and once k = 0 if q·n is an integer: the means are 1/(1 - x) and 2x/(1 - x²). Gaps
    of random rows are unequal, which adds about min(1/8, εx) by simulation. An aim d rows off gives
    d + 2x^(d+1)/(1 - x²). The empty part of the bounds on each side has the points of
    n(_FILLED - 1)/2 gaps; if one of these is released, the error is the rank of that end.
    """
    distance = abs(sum(aim) - sum(wanted)) / 2
    if distance:
        near = distance + math.exp(-rate * distance) / math.sinh(rate)
    else:
        near = 1 / math.sinh(rate) if aim[0] == aim[1] else -1 / math.expm1(-rate)
    near = min(near + min(0.125, 2 * rate * math.exp(-rate)), n / 2)
    near_weight = 1 / math.tanh(rate / 2)  # x^|k| summed over all k, in points of one gap
    empty = n * (_FILLED - 1) / 2
    below, above = (empty * math.exp(-rate * rank) for rank in (aim[1], n - aim[0]))
    beyond = below * wanted[1] + above * (n - wanted[0])
    return (near_weight * near + beyond) / (near_weight + below + above)


def _reach(scale: Fraction, points: int) -> int:
    """Return the distance up to which points are scored one by one.

    A point beyond it wins with probability at most e^-45; if one does, it is scored then.
    """
    return math.ceil(min(float(scale), 1e12) * (math.log(points) + _UNLIKELY)) + 1


def declared_grid(source: Source) -> int | None:
    """Return the number of integers within the bounds, if the column was declared as integer.

    On the default grid points between two integers outnumber the integers by far: for ages the
    released point is half a year off, and 6 to 40 rows instead of 0 to 5 (measured in
    bench/quantile_grid.py).
    """
    kinds = list(source.kinds.values()) if isinstance(source, Dataset) else []
    return grid_of(kinds[0]) if len(kinds) == 1 else None


_MOST_LEVELS = 10_000


@partial(debited, like=quantile)
def quantiles(
    rows: Any,
    columns: str | None = None,
    *,
    q: Sequence[Rational] | npt.NDArray[np.float64],
    bounds: tuple[Rational, Rational] | None = None,
    epsilon: Rational,
    grid: int | Sequence[Rational] | None = None,
    margin: int = 0,
    missing: Any = DEFAULT_MISSING,
    method: str = "auto",
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release several quantiles of one bounded column, like `np.quantile(rows, q)`, but private.

    Use it for deciles, percentiles or quartiles: they are drawn together, and ε is not split over
    them. For one quantile see `quantile`, for the share of rows up to given values see `cdf`.

    Parameters
    ----------
    q : sequence of numbers from 0 to 1
        Which quantiles, in any order, each as it is written.
    grid : int or sequence
        The points, or the number of points that lie evenly between the bounds, as for `quantile`.
    margin : int
        By at least how many rows the wanted ranks are kept inside the first and the last row, as
        for `quantile`.
    method : str
        "joint" (the joint exponential mechanism), "counts" (of all points of a small grid), or
        "auto", the one with the least predicted error. One quantile: as for `quantile`, too.

    Returns
    -------
    Release
        Its value is an array with one number for each level, rising with the level.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory Q), proven: sequences of points weigh e^(-ε/4 · Σ |rows between
    neighbors - wanted|), and a replaced row changes two of these numbers by 1.
    **Neighbors**: replace-one, or what the data set says; the number of rows may be private.
    **Error**: the expected rank error in rows, averaged over the levels: about 1.9·√m/ε for m
    levels where rows lie densely on a finer grid, margin included. With few rows at a small ε
    fewer levels are drawn and the others are interpolated between them, which adds an error where
    rows between two drawn levels do not lie evenly.

    Examples
    --------
    >>> ages = np.arange(100_000) % 100
    >>> levels = [0.105, 0.505, 0.905]
    >>> quantiles(ages, q=levels, bounds=(0, 120), grid=121, epsilon=1).value
    array([10., 50., 90.])

    """
    source = as_source(rows, columns, missing=missing)
    stated = source.declared_bounds if bounds is None else bounds
    points = declared_grid(source) if bounds is None and grid is None else grid
    question = QuantilesQuestion(
        q=as_levels(q), bounds=stated, grid=points, margin=margin, method=method
    )
    diagnosis = as_diagnosis(diagnostics, source, bounds=stated)
    return ask(question, source, epsilon=epsilon, diagnosis=diagnosis)


@value
class QuantilesQuestion:
    """Question for several quantiles of one column, as points of a public grid."""

    q: tuple[Fraction, ...]
    bounds: tuple[Rational, Rational] | None = None
    grid: int | Sequence[Rational] | None = None
    margin: int = 0
    method: str = "auto"

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Plan all quantiles together, or one alone; see `plan_quantiles`."""
        facts.only_one_column()
        exact = as_usable_epsilon(epsilon)
        if len(set(self.q)) == 1 and is_name(self.method, ("auto", "permute-and-flip")):
            return self._single(facts, exact)
        public = facts.rows is not None and not facts.may_miss
        plan = plan_quantiles(
            epsilon=exact,
            levels=self.q,
            points=as_points(self.bounds, self.grid),
            expected_rows=max(1, facts.planned_rows),
            skip=facts.may_miss,
            total=facts.rows if public else None,
            neighbors=facts.neighbors,
            margin=as_count(self.margin, "margin", minimum=0),
            method=self.method,
        )
        counted = ("the number of rows",) if public else ()
        return ReleasePlan(
            claim=plan.claim,
            steps=plan.steps,
            answer=plan.answer,
            error=plan.error,
            methods=plan.methods,
            public=(*counted, "the grid of possible answers", "which quantiles"),
        )

    def _single(self, facts: Facts, epsilon: Fraction) -> ReleasePlan[Rows]:
        """Plan one quantile as `quantile` does, which errs less near ends and on coarse grids."""
        single = QuantileQuestion(
            q=self.q[0],
            bounds=self.bounds,
            grid=self.grid,
            margin=self.margin,
            method=self.method,
        ).plan(facts, epsilon)

        def answer(rows: Rows, bits: BitSource) -> Any:
            return np.full(len(self.q), single.answer(rows, bits))

        return replace(single, answer=answer)


def as_levels(q: Any) -> tuple[Fraction, ...]:
    """Return the levels exactly as they are written."""
    listed = isinstance(q, (Sequence, np.ndarray)) and is_list(q)
    require(
        listed and 0 < len(q) <= _MOST_LEVELS,
        "q",
        q if not listed else len(q),
        expected=f"a list of 1 to {_MOST_LEVELS} numbers from 0 to 1",
        remedy="pass q=[0.25, 0.5, 0.75], or call zd.quantile for one",
    )
    return tuple(as_level(level) for level in q)


# -- What the tasks are, for advice and the command line ------------------------------------------


def _quantiles(numbers: Numbers) -> tuple[Method, ...]:
    """Return the forecast for several quantiles."""
    question = QuantilesQuestion(
        q=as_levels(numbers["q"]), bounds=(0, 1), grid=numbers["grid"], margin=numbers["margin"]
    )
    return tuple(question.plan(facts_of(numbers), numbers["epsilon"]).methods)


_RANKS = "rows by which its rank is off, whatever the unit of the column"
_MEDIAN = Forecast(
    unit="expected rank error, in rows",
    call="zd.median(rows, bounds=…, epsilon={epsilon})",
    methods=simple(quantile_methods, grid="points"),
    reliable=CLOSE,
    needs=ROWS,
    allows={"grid": None},
    blind=lambda numbers: numbers["n"] / 2,
)

TASKS: dict[str, Task] = {
    "median": Task(
        verb=median,
        page="statistics",
        error=_RANKS,
        forecast=_MEDIAN,
        command=Command(
            columns="one",
            options=METHOD,
            publishes="one number",
            example="median people.csv income",
        ),
        planner=Planner(
            title="Median",
            fields=("n",),
            people=PERCENT,
            python='people, "income"',
            shell="income",
        ),
    ),
    "quantile": Task(
        verb=quantile,
        page="statistics",
        error=_RANKS,
        forecast=replace(
            _MEDIAN,
            call="zd.quantile(rows, q={q}, bounds=…, margin={margin}, epsilon={epsilon})",
            reliable=f"at q=1/2 {CLOSE};\n       {UNMEASURED} at other levels",
            allows={"grid": None, "q": "1/2", "margin": 0},
        ),
        command=Command(
            columns="one",
            options=("q", *METHOD),
            needs=("q",),
            publishes="one number",
            example="quantile people.csv income --q 0.9",
        ),
        planner=Planner(
            title="One quantile",
            fields=("n",),
            people=PERCENT,
            python='people, "income", q="1/2"',
            shell="income --q 1/2",
        ),
    ),
    "quantiles": Task(
        verb=quantiles,
        page="statistics",
        error=_RANKS,
        forecast=Forecast(
            unit="expected rank error in rows, averaged over the levels",
            call="zd.quantiles(rows, q={q}, bounds=…, epsilon={epsilon})",
            methods=_quantiles,
            reliable=CLOSE,
            needs={**ROWS, "q": "q=[0.25, 0.5, 0.75]"},
            allows={"grid": None, "margin": 0, "missing": None},
            blind=lambda numbers: numbers["n"] / 2,
            typical={"q": [0.25, 0.5, 0.75]},
        ),
        command=Command(
            columns="one",
            options=("quantiles", *METHOD),
            needs=("quantiles",),
            renamed={"quantiles": "q"},
            publishes="one number for each quantile",
            example="quantiles people.csv income --quantiles 0.1,0.5,0.9",
        ),
        planner=Planner(
            title="Several quantiles",
            fields=("n", "levels"),
            fixed=SKIPPED,
            people=PERCENT + "levels = [i / ({levels} + 1) for i in range(1, {levels} + 1)]\n",
            python='people, "income", q=levels',
            shell="income --quantiles {parts}",
        ),
    ),
}
