"""Release counts of items (`histogram`) and the distribution of one column (`cdf`)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.data.arrays import DEFAULT_MISSING, as_source
from zerodelta.data.dataset import Dataset
from zerodelta.data.keys import Bins, GroupKey, GroupKeys, as_items, tally
from zerodelta.data.keys import bins as bins_of
from zerodelta.data.kinds import Bounds, Number
from zerodelta.data.rows import Rows
from zerodelta.data.source import Source
from zerodelta.errors import is_list, needed, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_float, as_positive
from zerodelta.exact.sums import IntegerArray
from zerodelta.mechanisms.diagnostics import as_diagnosis
from zerodelta.mechanisms.partition_noise import PartitionNoise, power_sums
from zerodelta.mechanisms.quantile_plan import aimed_levels, plan_quantiles
from zerodelta.mechanisms.ranks import as_points
from zerodelta.mechanisms.runs import CumulativeCounts
from zerodelta.mechanisms.sum_noise import CountNoise, add_exactly
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors, as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.statistics import LazyForms, Measurement
from zerodelta.spaces import Finite
from zerodelta.spine.plan import Facts, Measured, Method, Question, ReleasePlan, choose, ranked
from zerodelta.spine.public_inputs import (
    as_universe,
    codes_of,
    labels_of,
    unknown_index,
)
from zerodelta.spine.run import ask, run
from zerodelta.spine.verbs import Paying, debited
from zerodelta.tasks.quantiles import declared_grid
from zerodelta.tasks.task import (
    CLOSE,
    EPSILON,
    ITEMS,
    METHOD,
    PERCENT,
    ROWS,
    SKIPPED,
    Command,
    Forecast,
    Numbers,
    Planner,
    Task,
    facts_of,
)
from zerodelta.value import published, value

if TYPE_CHECKING:
    from typing_extensions import Unpack


# -- The share of rows up to each value: at public points by counts, or as steps by quantiles -----

_HUNDREDTHS = tuple(Fraction(i, 100) for i in range(1, 100))


@published
@value(eq=False)
class StepFunction:
    """A monotone function from 0 to 1 that jumps at `points` to `levels`.

    >>> steps = StepFunction(points=np.array([1.0, 2.0]), levels=np.array([0.5, 1.0]))
    >>> steps([0, 1, 1.5, 3]).tolist()
    [0.0, 0.5, 0.5, 1.0]
    """

    points: Floats
    levels: Floats

    def __call__(self, values: Any) -> Floats:
        """Return the share of rows up to each value."""
        places = np.searchsorted(self.points, np.asarray(values, dtype=np.float64), side="right")
        return np.concatenate([[0.0], self.levels])[places]


@debited
def cdf(
    rows: Any,
    columns: str | None = None,
    *,
    at: Sequence[Rational] | Floats | None = None,
    bounds: tuple[Rational, Rational] | None = None,
    epsilon: Rational,
    grid: int | Sequence[Rational] | None = None,
    missing: Any = DEFAULT_MISSING,
    method: str = "auto",
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release which share of the rows is at most each value: the empirical distribution function.

    Use it with `at` for the shares up to public values, such as incomes up to each limit of a tax;
    without, for the whole distribution as a step function, from as many quantiles as the rows can
    tell apart. Both are monotone, from 0 to 1.

    Parameters
    ----------
    rows : data set, array, list, series, frame or Source
        What `zd.open` returns, or one column.
    columns : str, optional
        The column of a data set or a frame.
    at : sequence of numbers, optional
        Public values in rising order, known without the rows.
    bounds : (lower, upper)
        Without `at`: where the points of the step function lie, known without the rows; for a data
        set, by default as declared.
    grid : int or sequence
        Without `at`: the points of the step function, as for `quantile`.
    method : str
        With `at` "counts" (of the rows between neighboring values, and of blocks of these), without
        `at` "quantiles"; or "auto".

    Returns
    -------
    Release
        Its value is an array of shares, one for each value of `at`; without, a `StepFunction`.

    Notes
    -----
    **Guarantee**: pure ε-DP, proven (theory P1 for counts, Q for quantiles).
    **Neighbors**: replace-one, or what the data set says; the number of rows may be private.
    **Error**: the expected absolute error of a share.

    Examples
    --------
    >>> ages = np.arange(100_000) % 100
    >>> cdf(ages, at=[17, 64], bounds=(0, 120), epsilon=1).value.round(2)
    array([0.18, 0.65])

    """
    source = as_source(rows, columns, missing=missing)
    stated = source.declared_bounds if bounds is None else bounds
    points = declared_grid(source) if bounds is None and grid is None else grid
    question = CdfQuestion(
        at=None if at is None else as_values(at), bounds=stated, grid=points, method=method
    )
    diagnosis = as_diagnosis(diagnostics, source, bounds=stated)
    return ask(question, source, epsilon=epsilon, diagnosis=diagnosis)


@value
class CdfQuestion:
    """Question for the distribution function of one column, at public values or as steps."""

    at: tuple[float, ...] | None = None
    bounds: tuple[Rational, Rational] | None = None
    grid: int | Sequence[Rational] | None = None
    method: str = "auto"

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Plan counts between the values, or quantiles."""
        facts.only_one_column()
        exact = as_usable_epsilon(epsilon)
        public = facts.rows is not None and not facts.may_miss
        counted = ("the number of rows",) if public else ()
        if self.at is None:
            return self._steps(facts, exact, counted)
        return self._counts(facts, exact, counted)

    def _counts(
        self, facts: Facts, epsilon: Fraction, counted: tuple[str, ...]
    ) -> ReleasePlan[Rows]:
        """Plan counts of the rows between neighboring values; `counted` lists a public n."""
        values = np.array(self.at, dtype=np.float64)
        counts = CumulativeCounts.for_epsilon(
            epsilon=epsilon,
            cells=len(values) + 1,
            total=facts.rows if counted else None,
            neighbors=facts.neighbors,
        )
        skip, cells = facts.may_miss, len(values) + 1
        error = min(counts.rank_error / max(1, facts.planned_rows), 0.5)
        spends = "ε on counts" if counts.width == 1 else "ε/2 on counts, ε/2 on those of blocks"
        why = "the values are public, so rows between them are counted"
        methods = (Method(name="counts", error=error, spends=spends, why=why),)
        choose(methods, self.method)

        def tabulated(block: Floats) -> IntegerArray:
            """Return a block's number of rows in each interval between the asked values."""
            column = block[:, 0]
            if skip:
                column = column[~np.isnan(column)]
            places = np.searchsorted(values, column, side="left")
            places[np.isnan(column)] = (cells - 1) // 2  # an absent value counts in the middle
            return np.bincount(places, minlength=cells)

        def answer(rows: Rows, bits: BitSource) -> Measured:
            """Return shares at or below each value, from noisy counts made monotone."""
            exact = rows.total(tabulated, [0], shape=(cells,), bound=1).astype(np.int64)
            noisy = counts.noisy(exact, bits)
            (cumulative,) = counts.fitted(noisy)
            total = cumulative[-1]
            names = [repr(float(value)) for value in values]
            sums = Measurement(
                law=counts.noise.law(unit=Fraction(1)),
                integers=noisy,
                forms=LazyForms(names, counts.forms),
                bounds=dict.fromkeys(names, (Fraction(0), Fraction(1))),
                statistics={name: (name, "mean") for name in names},
            )
            even = np.arange(1, cells) / cells  # where the noisy counts show no rows at all
            share = np.clip(cumulative[:-1] / total, 0.0, 1.0) if total > 0 else even
            return Measured(value=np.asarray(share), sums=(sums,) if counted else ())

        return ReleasePlan(
            claim=counts.noise.claim,
            steps=(counts.noise.step(),),
            answer=answer,
            error=error,
            methods=methods,
            public=(*counted, "the values at which it is asked"),
        )

    def _steps(
        self, facts: Facts, epsilon: Fraction, counted: tuple[str, ...]
    ) -> ReleasePlan[Rows]:
        """Plan the quantiles at which the step function jumps; `counted` lists a public n."""
        points, rows = as_points(self.bounds, self.grid), max(1, facts.planned_rows)
        most = aimed_levels(_HUNDREDTHS, rows=rows, points=points.size, epsilon=float(epsilon))
        parts = len(most) + 1
        levels = [Fraction(i, parts) for i in range(1, parts)]  # equal steps, the outer ones too
        plan = plan_quantiles(
            epsilon=epsilon,
            levels=levels,
            points=points,
            expected_rows=rows,
            skip=facts.may_miss,
            neighbors=facts.neighbors,
            total=facts.rows if counted else None,
        )
        # between two jumps of height h the step is off by h/2 on average, for a fraction h of rows
        ends = [0.0, *map(float, levels), 1.0]
        step_error = math.fsum((b - a) ** 2 / 2 for a, b in itertools.pairwise(ends))
        error = min(math.hypot(plan.error / rows, step_error), 0.5)
        spends, why = "ε on quantiles together", "no value is public, so quantiles are drawn"
        methods = (Method(name="quantiles", error=error, spends=spends, why=why),)
        choose(methods, self.method)
        top = points.value(points.size - 1)

        def answer(opened: Rows, bits: BitSource) -> StepFunction:
            jumps = np.append(plan.answer(opened, bits), top)
            return StepFunction(points=jumps, levels=np.append([float(q) for q in levels], 1.0))

        return ReleasePlan(
            claim=plan.claim,
            steps=plan.steps,
            answer=answer,
            error=error,
            methods=methods,
            public=(*counted, "the grid of possible answers"),
        )


def as_values(at: Any) -> tuple[float, ...]:
    """Return the public values, in rising order."""
    values = [as_float(value, "at") for value in at] if is_list(at) else []
    require(
        bool(values) and all(a < b for a, b in itertools.pairwise(values)),
        "at",
        at,
        expected="numbers in rising order",
        remedy="pass sorted(set(values)), known without the rows",
    )
    return tuple(values)


_MOST_ITEMS = 1 << 26
_MOST_JOINT = 1 << 12
"""The largest number of counts for one joint noise vector: beyond it the gain is negligible."""


@debited
def histogram(
    items: Any,
    columns: str | None = None,
    *,
    universe: Any = None,
    bins: Any = None,
    epsilon: Rational,
    unknown: Any = None,
    method: str = "auto",
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release how often each item of a public universe occurs, like `np.bincount`, but private.

    Use it for all counts of one column; for several columns at once see `answer_queries`, for the
    most frequent item alone `mode`.

    Parameters
    ----------
    items : data set, list, array, series, frame or Source
        What `zd.open` returns, or one item for each row, of any type; a number and a text that
        spells it are one item. A missing item is not counted, unless it is in the universe.
    columns : str, optional
        The column of a data set (a category, a boolean or a date) or a frame.
    universe : list or int
        All possible items, or N for the integers 0..N-1, at most 2^26 items. Public; for a data set
        as declared, with "missing" and "other" where these are options.
    bins : list of numbers, or int
        Instead of a universe, for numbers: public edges, as for `np.histogram` (a bin includes its
        lower edge, the last one both; numbers beyond the edges are not counted), or the number of
        bins of equal width into which the declared bounds of a data set are cut.
    unknown : item
        The public item as which items outside the universe are counted; by default they are not
        counted. With it the counts add up to the number of items, and one count needs no noise.
    method : str
        "k-norm" (noise fitted to the two counts that one row moves), "laplace", or "auto", the one
        with the least predicted error; under add-remove "laplace" only.

    Returns
    -------
    Release
        Its value is an array of integers in the order of the universe (``people.kinds["city"]
        .labels`` of a data set), unbiased; some may be negative (cutting them off is allowed).

    Notes
    -----
    **Guarantee**: pure ε-DP (theory C10.4, P1), proven.
    **Neighbors**: replace-one, or what the data set says. The counts add up to the number of rows
    only where that is public and every row is in one of them (``other=True``, no filter).
    **Error**: the expected absolute error of a count: (2/ε)·m/(m+1), m noisy counts; Laplace
    1/sinh(ε/2), under add-remove 1/sinh(ε).

    Examples
    --------
    >>> release = histogram([0] * 3000 + [1] * 5000, universe=3, epsilon=1)
    >>> np.round(release.value, -3)
    array([3000, 5000,    0])
    >>> import zerodelta as zd
    >>> people = zd.open(np.arange(9000) % 3, columns={"0": zd.category([0, 1], other=True)})
    >>> np.round(histogram(people, "0", epsilon=1).value, -3)
    array([3000, 3000, 3000])
    >>> ages = zd.open(np.arange(9000) % 90, columns={"0": zd.number(0, 120, missing=None)})
    >>> np.round(histogram(ages, "0", bins=[0, 30, 60, 120], epsilon=1).value, -3)
    array([3000, 3000, 3000])

    """
    if bins is not None:
        cells, cut = _binned(items, columns, bins, universe=universe, unknown=unknown)
        edges = (
            None if cut.bins is None or cut.clip_bounds else (cut.bins.edges[0], cut.bins.edges[-1])
        )
        diagnosis = as_diagnosis(diagnostics, cells, bounds=edges)
        universe = Finite(list(cut.labels))
        numbers = HistogramQuestion(universe=universe, coded=True, cut=cut, method=method)
        return ask(numbers, cells, epsilon=epsilon, diagnosis=diagnosis)
    return ask_of_items(
        partial(HistogramQuestion, method=method),
        items,
        columns,
        universe=universe,
        unknown=unknown,
        epsilon=epsilon,
        diagnostics=diagnostics,
    )


def ask_of_items(
    question: Callable[..., Question],
    items: Any,
    columns: str | None,
    *,
    universe: Any,
    unknown: Any,
    epsilon: Rational,
    diagnostics: Rational | None,
) -> Release:
    """Answer a question on the codes of a declared column, or on items of a stated universe."""
    codes = codes_of(items, columns, unknown=unknown, universe=universe)
    if codes is not None:
        coded = question(universe=labels_of(codes), coded=True)
        return ask(coded, codes, epsilon=epsilon, diagnosis=as_diagnosis(diagnostics, codes))
    as_diagnosis(diagnostics, None)  # refused: bare items have no declared column
    source, count = as_items(items, columns)
    stated = question(universe=universe, unknown=unknown)
    return run(stated.plan(Facts(rows=count), epsilon), source)


@value
class HistogramQuestion:
    """Question for the counts of all items of a public universe."""

    universe: Any
    unknown: Any = None
    method: str = "auto"
    coded: bool = False
    """Whether rows hold the places 0, 1, … of the items in the universe."""
    cut: GroupKey | None = None
    """The bins that are the items of a column of numbers: then rows hold the numbers."""

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Any]:
        """Choose noise on all counts by forecast; with a public total, one of them needs none."""
        exact, related = _as_epsilon(epsilon), facts.neighbors
        space = self.universe if self.coded else as_universe(self.universe)
        codes = Finite(space.size) if self.coded else space
        require(
            space.size <= _MOST_ITEMS,
            "universe",
            space.size,
            expected="at most 2^26 items, one count each",
            remedy="group the items, or ask for the mode only",
        )
        unknown = None if self.coded else unknown_index(self.unknown, space)
        n = facts.rows if not facts.may_miss else None
        # if every row is in one of the counts and n is public, one count needs no noise: it is n
        # less all others
        implied = space.size - 1 if self.coded else unknown
        complete = implied is not None and n is not None and space.size > 1
        if self.cut is not None and not self.cut.complete:
            complete = False
        methods = histogram_methods(
            epsilon=exact, universe=space.size, complete=complete, neighbors=related
        )
        chosen = choose(methods, self.method)
        noise = _noise(chosen.name, exact, space.size - complete, related)

        def sums(noisy: Any) -> Measurement:
            return Measurement(
                law=noise.law(unit=Fraction(1)),
                integers=noisy[:, None],
                forms={None: ((Fraction(1), Fraction(0)),)},
                statistics={"count": (None, "count")},
                labels=range(space.size) if space.options is None else space.options,
                rows=n,
            )

        def answer(items: Any, bits: BitSource) -> Measured:
            """Return noisy counts; with a public total, one is the rest of it."""
            counts: Any
            if self.cut is not None:
                counts, _ = power_sums(items, GroupKeys(keys=(self.cut,)), (), (), (), missing=())
            else:
                counts = tally(items, codes, unknown=unknown).dense(space.size)
            if not complete or implied is None or n is None:
                noisy = noise.apply(counts, bits)
                return Measured(value=noisy, sums=(sums(noisy),))
            noisy = noise.apply(np.delete(counts, implied), bits)
            all_counts = noisy.tolist()
            all_counts.insert(implied, n - sum(all_counts))
            # adding zeros gives the array the same type as a sum with noise
            zeros = np.zeros(len(all_counts), dtype=np.int64)
            value = add_exactly(np.array(all_counts, dtype=object), zeros)
            return Measured(value=value, sums=(replace(sums(noisy), rest=implied),))

        return ReleasePlan(
            claim=PureDP(exact, neighbors=related),
            steps=(noise.step(),),
            answer=answer,
            error=chosen.error,
            methods=methods,
            public=("the universe of items", *(["the number of items"] if n is not None else [])),
            # the implied count has the noise of all others together, so there is no common law
            noise=None if complete else noise.law(unit=Fraction(1)),
        )


def _binned(
    items: Any, columns: str | None, bins: Any, *, universe: Any, unknown: Any
) -> tuple[Source, GroupKey]:
    """Return one column of numbers, and its bins."""
    require(
        universe is None and unknown is None,
        "universe, unknown",
        (universe, unknown),
        expected="nothing together with bins=",
        remedy="pass bins= for numbers, or universe= for items",
    )
    source = as_source(items, columns)
    Facts(rows=None, columns=source.columns).only_one_column()
    (name,) = source.columns
    kind = source.kinds[name] if isinstance(source, Dataset) else None
    require(
        kind is None or isinstance(kind, Number),
        "columns",
        name,
        expected="a column of numbers, which can be cut into bins",
        remedy="leave bins out: the column has its own groups",
    )
    ends = None if kind is None else kind.bounds
    cut = bins if isinstance(bins, Bins) else _as_bins(bins, ends)
    inside = ends is not None and cut.edges[0] <= ends[0] and ends[1] <= cut.edges[-1]
    full = inside and isinstance(kind, Number) and kind.missing != "skip"
    return source, GroupKey(name=name, labels=cut.labels, bins=cut, clip_bounds=ends, complete=full)


def _as_bins(bins: Any, ends: Bounds | None) -> Bins:
    """Return the bins of a list of edges, or `bins` of equal width between declared bounds."""
    if not isinstance(bins, int):
        return bins_of(bins)
    number = as_count(bins, "bins", minimum=1)
    lower, upper = needed(ends, "bounds", "pass bins as a list of edges, or open with zd.open")
    require(number <= _MOST_ITEMS, "bins", number, "at most 2^26 bins", "pass fewer")
    return bins_of([lower + (upper - lower) * Fraction(i, number) for i in range(number + 1)])


def _noise(
    name: str, exact: Fraction, free: int, neighbors: Neighbors
) -> CountNoise | PartitionNoise:
    """Return the noise of a method on `free` measured counts."""
    if name == "k-norm":
        return CountNoise.for_epsilon(epsilon=exact, dimension=free)
    return PartitionNoise.for_epsilon(
        epsilon=exact, cells=free, neighbors=neighbors, method="laplace"
    )


def _as_epsilon(value: Rational) -> Fraction:
    """Return ε as a fraction, if it and its inverse, the scale of the noise, fit into floats."""
    exact = as_positive(value, "epsilon")
    as_float(exact, "epsilon")
    as_float(1 / exact, "1/epsilon")
    return exact


def histogram_methods(
    *,
    epsilon: Rational,
    universe: int,
    complete: bool = False,
    neighbors: Neighbors = Neighbors.REPLACE,
) -> tuple[Method, ...]:
    """Return the methods that release counts, best first.

    `complete` means that each item is in some count. Errors are expected absolute errors of a
    count.

    >>> [(m.name, round(m.error, 2)) for m in histogram_methods(epsilon=1, universe=2)]
    [('k-norm', 1.31), ('laplace', 1.92)]
    """
    exact, size = _as_epsilon(epsilon), as_count(universe, "universe", minimum=1)
    free = max(1, size - bool(complete))
    small = free <= _MOST_JOINT
    errors = {name: _noise(name, exact, free, neighbors).error() for name in ("k-norm", "laplace")}
    if neighbors is Neighbors.ADD_REMOVE:
        only = Method(
            name="laplace",
            error=errors["laplace"],
            spends="ε on all counts together, noise for an l1 sensitivity of 1",
            why="a row that comes or goes changes one count",
        )
        return (only,)
    return ranked(
        Method(
            name="k-norm",
            error=errors["k-norm"] if small else math.inf,
            spends="ε on all counts together",
            why="the least K-norm noise for a row that changes two counts"
            if small
            else "for this number of counts it gains nothing on Laplace noise",
        ),
        Method(
            name="laplace",
            error=errors["laplace"],
            spends="ε on all counts together, noise for an l1 sensitivity of 2",
            why="independent noise for every count",
        ),
    )


# -- What the tasks are, for advice and the command line ------------------------------------------


def _cdf(numbers: Numbers) -> tuple[Method, ...]:
    """Return the forecast at values, of which only the number matters, or for a step function."""
    at = numbers["at"]
    values = range(as_count(at, "at", minimum=1)) if type(at) is int else at
    question = CdfQuestion(
        at=None if values is None else as_values(values), bounds=(0, 1), grid=numbers["grid"]
    )
    return tuple(question.plan(facts_of(numbers), numbers["epsilon"]).methods)


def _histogram(numbers: Numbers) -> tuple[Method, ...]:
    """Return the forecast for counts of items, or of numbers between edges."""
    universe, cut = numbers["universe"], numbers["bins"]
    require(
        universe is None or cut is None,
        "bins",
        cut,
        expected="nothing together with universe=",
        remedy="pass bins= for numbers, or universe= for items",
    )
    if universe is not None:
        size = as_universe(universe).size
    else:
        size = as_count(cut, "bins", minimum=1) if isinstance(cut, int) else bins_of(cut).size
    return histogram_methods(
        epsilon=numbers["epsilon"], universe=size, complete=numbers["complete"]
    )


TASKS: dict[str, Task] = {
    "cdf": Task(
        verb=cdf,
        page="statistics",
        error="of a share",
        forecast=Forecast(
            unit="expected absolute error of a share of the rows",
            call="zd.cdf(rows, at=…, epsilon={epsilon})",
            methods=_cdf,
            reliable=CLOSE,
            needs=ROWS,
            allows={"at": None, "grid": None, "missing": None},
            blind=lambda _: 0.5,
            typical={"at": 10},
        ),
        command=Command(
            columns="one",
            options=("at", *METHOD),
            publishes="one fraction for each number",
            example="cdf people.csv income --at 20000,50000",
        ),
        planner=Planner(
            title="Distribution: the share of rows below values",
            fields=("n", "values"),
            fixed=SKIPPED,
            people=PERCENT,
            python='people, "income", at=[100 * i / {values} for i in range({values})]',
            shell="income --at {edges}",
        ),
    ),
    "histogram": Task(
        verb=histogram,
        page="statistics",
        error="rows",
        forecast=Forecast(
            unit="expected absolute error of a count",
            call="zd.histogram(items, universe={universe}, bins={bins}, epsilon={epsilon})",
            methods=_histogram,
            reliable=CLOSE,
            needs={"universe|bins": "universe=100", "epsilon": EPSILON},
            allows={"universe": None, "bins": None, "complete": False},
            typical={"universe": 100},
        ),
        command=Command(
            columns="one",
            options=("bins", *METHOD),
            publishes="one count for each option",
            example="histogram people.csv city",
        ),
        planner=Planner(
            title="Histogram: a count for each item",
            fields=("universe",),
            people=ITEMS,
            python='people, "item"',
            shell="item",
        ),
    ),
}
