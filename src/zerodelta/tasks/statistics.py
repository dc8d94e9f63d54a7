"""Release `count`, `sum`, `mean`, `variance` and `std` of bounded columns (theory R, C10.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.data.arrays import DEFAULT_MISSING, as_source
from zerodelta.data.dataset import Dataset
from zerodelta.data.keys import GroupKeys
from zerodelta.data.kinds import Boolean, Number, skips
from zerodelta.data.rows import Rows
from zerodelta.data.source import Source
from zerodelta.errors import ParameterError, is_name, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.fixed_point import FixedPoint, wanted_steps
from zerodelta.exact.noise_tails import GeometricLaw, NoiseLaw
from zerodelta.exact.rational import (
    Rational,
    as_count,
    as_pair,
    as_positive,
    bounds_by_column,
    inner_ends,
)
from zerodelta.exact.sums import IntegerArray
from zerodelta.mechanisms.diagnostics import as_diagnosis
from zerodelta.mechanisms.partition_noise import PartitionNoise, present_counts
from zerodelta.mechanisms.sum_noise import KNorm, as_norm
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors, as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.statistics import LazyForms, Measurement
from zerodelta.privacy.steps import Step
from zerodelta.spine.plan import Facts, Measured, Method, Question, ReleasePlan, choose, ranked
from zerodelta.spine.run import ask
from zerodelta.spine.verbs import Paying, debited
from zerodelta.tables.grouped import By
from zerodelta.tables.parts import TableColumn
from zerodelta.tasks.table import TableQuestion, grouped_statistic, table_of
from zerodelta.tasks.task import (
    CLOSE,
    INCOME,
    PERCENT,
    ROWS,
    SKIPPED,
    STATISTIC,
    Command,
    Forecast,
    Numbers,
    Planner,
    Task,
    facts_of,
    planned,
    planner_of_columns,
    width_of,
)
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


# -- The number of rows, or of present cells: with noise, or without where it is public -----------


@debited
def count(
    rows: Any,
    columns: str | None = None,
    *,
    by: By = None,
    epsilon: Rational,
    missing: Any = DEFAULT_MISSING,
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the number of rows, or the number of rows with a value in one column.

    Use it for groups, for a filtered data set, for units, and where rows may be added or removed.
    Where the number is public (all rows, under replace-one) it is returned as it is, at ε = 0.

    Parameters
    ----------
    rows : data set, array, list, series, frame or Source
        What `zd.open` returns, or rows.
    columns : str, optional
        The column whose present cells are counted; by default rows are, whatever is missing.
    missing : "skip", None or number
        As for `mean`; "skip" counts the present cells of an array of one column.

    Returns
    -------
    Release
        Its value is an integer, unbiased; it may be negative. By group it is a table, as for
        `zd.table`, of counts that are not negative.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory P1), proven; 0 where the number is public.
    **Neighbors**: replace-one or what the data set says; a filtered count has noise of scale 1/ε.
    **Error**: the expected absolute error, 1/sinh(ε) for one row more or less: about 1/ε.

    Examples
    --------
    >>> import numpy as np
    >>> import zerodelta as zd
    >>> table = np.zeros(100_000, dtype=[("age", np.float64)])
    >>> table["age"] = np.arange(100_000) % 100
    >>> people = zd.open(table, columns={"age": zd.number(0, 120)})
    >>> round(count(people.where("age < 18"), epsilon=1).value, -3)
    18000

    """
    if by is not None:
        require(
            columns is None or isinstance(rows, Dataset),
            "columns",
            columns,
            expected="nothing, because only rows of a frame are counted by group",
            remedy="open the data with zd.open(…) to count the values of a column",
        )
        named = columns is None or isinstance(columns, str)
        require(named, "columns", columns, "the name of one column", "pass one, or none for rows")
        return table_of(
            rows,
            by=by,
            of={} if columns is None else {columns: ("count",)},
            epsilon=epsilon,
            missing=missing,
            diagnostics=diagnostics,
        )
    source = as_source(rows, columns, missing=missing, texts=True)
    diagnosis = as_diagnosis(diagnostics, source)
    if columns is None and isinstance(source, Dataset):
        source = source.presence_only
    question = CountQuestion(rows_only=columns is None and missing is DEFAULT_MISSING)
    return ask(question, source, epsilon=epsilon, diagnosis=diagnosis)


@value
class CountQuestion:
    """Question for the number of rows, or of present cells of one column."""

    rows_only: bool = False

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Plan a noisy count of rows or present cells; a public number is released as it is."""
        exact = as_usable_epsilon(epsilon)
        some_missing = facts.drops_rows if self.rows_only else facts.may_miss
        if facts.rows is not None and not some_missing:
            return _public(facts.rows)
        facts.only_one_column()
        noise = PartitionNoise.for_epsilon(epsilon=exact, cells=1, neighbors=facts.neighbors)
        error, law = noise.error(), noise.law(unit=Fraction(1))

        def answer(rows: Rows, bits: BitSource) -> Measured:
            counts = rows.group_sums((), (), 0, None)
            noisy = noise.apply(counts[:, 1], bits)
            return _counted(int(noisy[0]), law, noisy[:, None], (Fraction(1), Fraction(0)))

        return ReleasePlan(
            claim=noise.claim,
            steps=(noise.step(),),
            answer=answer,
            error=error,
            methods=(Method(name="laplace", error=error, spends="ε on one count", why="optimal"),),
            noise=law,
        )


def _public(rows: int) -> ReleasePlan[Rows]:
    """Return the plan that publishes a public number of rows at ε = 0."""
    unused_law = GeometricLaw(scale=Fraction(1)).on(Fraction(1))
    zero = np.zeros((1, 1), dtype=np.int64)
    return ReleasePlan(
        claim=PureDP(0),
        steps=(Step(theorem="public"),),
        answer=lambda _rows, _bits: _counted(rows, unused_law, zero, (Fraction(0), Fraction(rows))),
        error=0.0,
        public=("the number of rows",),
    )


def _counted(
    value: int, law: NoiseLaw, noisy: IntegerArray, form: tuple[Fraction, Fraction]
) -> Measured:
    """Return a count with the noisy sums for its interval."""
    statistics = {"count": (None, "count")}
    sums = Measurement(law=law, integers=noisy, forms={None: (form,)}, statistics=statistics)
    return Measured(value=value, sums=(sums,))


# -- The lattice on which the rows of a mean are added up -----------------------------------------

_LEAST_STEPS, _MOST_STEPS = 1 << 10, 1 << 52
_SUM_BITS = 62


def mean_lattice(
    bounds: tuple[Any, Any] | None,
    data_norm: Rational | None,
    norm: float,
    *,
    dimension: int,
    n: int,
    epsilon: Fraction,
) -> FixedPoint:
    """Return the lattice between the bounds, or in the ball of that norm."""
    check_one_bound(bounds, data_norm)
    if data_norm is not None:
        bound, steps = as_positive(data_norm, "data_norm"), _steps(n, epsilon, dimension, norm)
        return FixedPoint.ball(dimension=dimension, bound=bound, norm=norm, steps=steps)
    lower, upper = as_pair(bounds)
    steps = _steps(n, epsilon, dimension, math.inf)
    return FixedPoint.box(dimension=dimension, lower=lower, upper=upper, steps=steps)


def check_one_bound(bounds: Any, data_norm: Any) -> None:
    """Refuse rows with no public bound, or with two."""
    if (bounds is None) == (data_norm is None):
        raise ParameterError(
            "bounds, data_norm",
            expected="exactly one public bound on the rows",
            remedy="pass bounds=(lower, upper) or data_norm=, the largest norm of a row",
        )


def _steps(n: int, epsilon: Fraction, dimension: int, norm: float) -> int:
    """Return the bound in quanta, as many as the noise wants.

    They are limited so that n bounds, and for l2 the squares of one row, add up in 64 bits.
    """
    fitting = min(_MOST_STEPS, (1 << _SUM_BITS) // n)
    if norm == 2:
        fitting = min(fitting, math.isqrt((1 << _SUM_BITS) // dimension))
    return max(_LEAST_STEPS, min(wanted_steps(n, epsilon), fitting))


def stretch(norm: float, noise_norm: float, dimension: int) -> Fraction:
    """Return the largest norm, in `noise_norm`, of a vector of length 1 in `norm`, rounded up."""
    if noise_norm >= norm:
        return Fraction(1)
    power = 1 / noise_norm - (0.0 if norm == math.inf else 1 / norm)
    if power == 1:
        return Fraction(dimension)
    root = math.isqrt((dimension << 64) - 1) + 1  # √d · 2^32, rounded up
    return Fraction(root, 1 << 32)


def average(bound: Fraction | tuple[Fraction, ...]) -> Fraction:
    """Return the average over the columns of the bound of a coordinate."""
    return reduce(add, bound, Fraction(0)) / len(bound) if isinstance(bound, tuple) else bound


def inside(value: Floats, lattice: FixedPoint) -> Floats:
    """Project the noisy mean to the box or ball of the rows: post-processing that adds no error."""
    if lattice.norm == 2:  # a ball around 0
        radius, length = average(lattice.bound), float(np.linalg.norm(value))
        return value * min(1.0, float(radius) / length) if length > 0 else value
    if not isinstance(lattice.center, tuple) and not isinstance(lattice.bound, tuple):
        return np.clip(
            value, *inner_ends(lattice.center - lattice.bound, lattice.center + lattice.bound)
        )
    ends = np.array([inner_ends(*pair) for pair in zip(*lattice.ends, strict=True)])
    return np.clip(value, ends[:, 0], ends[:, 1])


_NOISE_NORMS = {"laplace": 1.0, "k-norm": 2.0, "k-norm-max": math.inf}
_METHOD_OF_NORM = {norm: name for name, norm in _NOISE_NORMS.items()}
"""For rows that are bounded in a norm, the method that draws noise in the same norm."""


@debited
def mean(
    rows: Any,
    columns: str | Sequence[str] | None = None,
    *,
    by: By = None,
    bounds: Any = None,
    data_norm: Rational | None = None,
    norm: float = 2,
    epsilon: Rational,
    missing: Any = DEFAULT_MISSING,
    method: str = "auto",
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the mean of bounded rows, like `np.mean(rows, axis=0)`, but private.

    Use it for one or several columns, of all rows or by group; where a few rows may be far away
    from all others see `trimmed_mean` and `median`, for several statistics at once `table`.

    Parameters
    ----------
    rows : data set, array, list, series, frame or Source
        What `zd.open` returns, or one or several columns. Rows beyond the bounds are clipped,
        infinities too. The width of a list of rows is that of its first.
    columns : str or list of str, optional
        Which columns of a data set or a frame; by default all.
    bounds : (lower, upper)
        Of every column, numbers or one for each column (a box), known without the rows; for a data
        set, by default as declared.
    data_norm : number
        Instead of bounds: the largest norm of a row.
    norm : 1, 2 or math.inf
        The norm that `data_norm` bounds.
    method : str
        The norm in which noise is drawn: "k-norm" (l2), "k-norm-max" (l∞), "laplace" (l1), or
        "auto", the one with the least predicted error.

    Returns
    -------
    Release
        Its value is a number for one column, a vector for several, within the bounds; by group it
        is a table, as for `zd.table`.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory R, C10.4), proven: K-norm noise on the exact integer sum of
    quantized rows; where cells may be missing, on a count and a sum together (theory P, G2), whose
    quotient is the mean, or the middle of the bounds if the noisy count is not positive. With
    `data_norm` a row with a missing cell is not counted.
    **Neighbors**: replace-one, where the number of rows is public, or what the data set says.
    **Error**: the expected absolute error of a coordinate, averaged over the columns, in the unit
    of the data; quantizing adds less than a hundredth of it (for n·ε below 2^40).

    Examples
    --------
    >>> release = mean(np.array([20.0, 30.0, 40.0] * 1000), bounds=(0, 100), epsilon=1)
    >>> round(release.value), round(release.error, 4)
    (30, 0.0333)
    >>> mean(np.tile([1.0, 2.0], (10_000, 1)), data_norm=3, epsilon=1).value.round(1)
    array([1., 2.])

    """
    if by is not None:
        require(
            data_norm is None and is_name(method, ["auto"]),
            "data_norm" if data_norm is not None else "method",
            data_norm if data_norm is not None else method,
            expected="bounds and method='auto' by group",
            remedy="pass bounds=(lower, upper)",
        )
    question = partial(MeanQuestion, data_norm=data_norm, norm=norm, method=method)
    arguments = (rows, columns, by, bounds, epsilon, missing, diagnostics)
    return _released("mean", *arguments, use_declared=data_norm is None, question=question)


def _released(
    statistic: str,
    rows: Any,
    columns: str | Sequence[str] | None,
    by: By,
    bounds: Any,
    epsilon: Rational,
    missing: Any,
    diagnostics: Rational | None,
    *,
    use_declared: bool = True,
    question: Callable[..., Question] | None = None,
) -> Release:
    """Release one statistic of columns: as a table by group, else as numbers for all rows.

    For all rows `question` takes the bounds; without it a table of one group is measured. With
    `use_declared`, bounds that are not stated are the declared ones.
    """
    if by is not None:
        return grouped_statistic(
            statistic,
            rows,
            columns,
            by=by,
            bounds=bounds,
            epsilon=epsilon,
            missing=missing,
            diagnostics=diagnostics,
        )
    source = as_source(rows, columns, missing=missing)
    stated = source.declared_bounds if bounds is None and use_declared else bounds
    if stated is None and use_declared and isinstance(source, Dataset):
        _check_numeric(source)
    of_statistic: Question
    if question is None:
        of_statistic = _of_all_rows(
            statistic, source.columns, stated, _skipped(source), complete=not source.drops_rows
        )
    else:
        of_statistic = question(bounds=stated)
    diagnosis = as_diagnosis(diagnostics, source, bounds=stated)
    return ask(of_statistic, source, epsilon=epsilon, diagnosis=diagnosis)


def _check_numeric(source: Dataset) -> None:
    """Refuse columns without bounds by name: a sum over categories, texts or dates has no unit."""
    kinds = source.kinds.items()
    others = [name for name, kind in kinds if not isinstance(kind, (Number, Boolean))]
    require(
        not others,
        "columns",
        others,
        expected="columns that were declared as numbers or booleans",
        remedy="name such columns only",
    )


def _of_all_rows(
    statistic: str, columns: Sequence[str], bounds: Any, missing: Sequence[bool], *, complete: bool
) -> TableQuestion:
    """Return the question for one statistic of each column, of all rows as one group."""
    require(columns, "columns of rows", 0, "one or more", "pass rows with a column")
    entries = zip(columns, bounds_by_column(bounds, len(columns)), missing, strict=True)
    table_columns = tuple(
        TableColumn(name=name, bounds=pair, missing=absent, statistics=(statistic,))
        for name, pair, absent in entries
    )
    return TableQuestion(keys=GroupKeys(), columns=table_columns, complete=complete, only=statistic)


def _skipped(source: Source) -> list[bool]:
    """Tell for each column whether missing cells, and cells of dropped rows, are not counted."""
    if isinstance(source, Dataset) and not source.drops_rows:
        return [skips(kind) for kind in source.kinds.values()]
    return [source.may_miss] * len(source.columns)


@value
class MeanQuestion:
    """Question for the mean of rows within public bounds."""

    bounds: tuple[Any, Any] | None = None
    data_norm: Rational | None = None
    norm: float = 2
    method: str = "auto"

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Choose the norm of the noise, and calibrate it."""
        if facts.may_miss and (self.bounds is not None or self.data_norm is None):
            return self._of_present_cells(facts, epsilon)
        return self._of_complete_rows(facts, as_usable_epsilon(epsilon))

    def _of_present_cells(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Plan a table of all rows, because the number of present cells of a column is private."""
        require(
            self.data_norm is None and is_name(self.method, ("auto", "partition")),
            "data_norm" if self.data_norm is not None else "method",
            self.data_norm if self.data_norm is not None else self.method,
            expected="one public bound, and method='auto', where cells may be missing",
            remedy="pass bounds= or data_norm=, or missing=None if no cell is missing",
        )
        missing = [True] * facts.width
        question = _of_all_rows("mean", facts.columns, self.bounds, missing, complete=False)
        plan = question.plan(facts, epsilon)
        assert isinstance(plan.error, float)
        parts = len(plan.parts)
        spends = (
            f"ε/{parts} on count and sum of a column" if parts else "ε on counts and sums together"
        )
        why = "a missing cell is not counted; missing=None, if none is missing, needs less noise"
        return replace(
            plan,
            methods=(Method(name="partition", error=plan.error, spends=spends, why=why),),
            public=("the number of columns", "bounds on the rows"),
            details=None,
        )

    def _of_complete_rows(self, facts: Facts, epsilon: Fraction) -> ReleasePlan[Rows]:
        """Plan noise on the sum of whole rows, and on their number where cells may be missing.

        If rows are counted, a row k adds the vector (s, k), s being the steps of the lattice, and
        (0, 0) if a cell of it is missing. Two rows are then 2s apart, the same as without counting,
        and an added or removed row changes the vector by (s, s) at most.
        """
        counted, dimension = facts.may_miss, facts.width
        n = facts.planned_rows if counted else facts.public_rows
        lattice = mean_lattice(
            self.bounds,
            self.data_norm,
            as_norm(self.norm),
            dimension=dimension,
            n=n,
            epsilon=epsilon,
        )
        steps, size = lattice.steps, average(lattice.bound)
        methods = mean_methods(
            epsilon=epsilon, n=n, dimension=dimension, norm=lattice.norm, bound=size
        )
        if counted:
            fitting = _METHOD_OF_NORM[lattice.norm]
            methods = tuple(method for method in methods if method.name == fitting)
        norm = _NOISE_NORMS[choose(methods, self.method).name]
        sensitivity = 2 * steps * stretch(lattice.norm, norm, dimension)
        if counted and facts.neighbors is Neighbors.ADD_REMOVE:
            sensitivity = steps * stretch(math.inf, norm, 2)
        noise = KNorm.for_epsilon(
            epsilon=epsilon,
            norm=norm,
            dimension=dimension + counted,
            sensitivity=sensitivity,
            neighbors=facts.neighbors if counted else Neighbors.REPLACE,
        )
        if counted:  # forecast of the quotient for a mean whose length is half the bound
            spread = math.hypot(1, 0.5 / math.sqrt(dimension)) * noise.error() / (steps * n)
            methods = (
                Method(
                    name=methods[0].name,
                    error=min(spread * float(size), float(size)),
                    spends="ε on one number and one sum",
                    why="a row with a missing cell is not counted; missing=None, if there is none, "
                    "needs less noise",
                ),
            )
        unit = Fraction(1) if counted else lattice.quantum
        law = noise.law(unit=unit, rows=1 if counted else n)

        def answer(rows: Rows, bits: BitSource) -> Measured:
            """Return the mean of all columns from one noisy sum of whole rows."""
            columns = list(range(dimension))
            if counted:
                present, totals = rows.present_sums(columns, lattice, joint=True)
                exact = [int(present[0]) * steps, *map(int, totals)]
                noisy = noise.apply(np.array(exact, dtype=object), bits)
                number, *total = map(int, noisy)
                value = np.array([float(size) * k / number if number > 0 else 0.0 for k in total])
                sums = _sums_with_count(law, noisy, lattice, columns=facts.columns)
            else:
                noisy = noise.apply(rows.sum(columns, lattice), bits)
                value = lattice.dequantize(noisy, rows=n) / n
                sums = _sums_of_public_rows(law, noisy, lattice, rows=n, columns=facts.columns)
            return Measured(value=_plain(inside(value, lattice)), sums=(sums,))

        public = ("the number of columns", "bounds on the rows")
        return ReleasePlan(
            claim=noise.claim,
            steps=(noise.step(quantum=lattice.quantum),),
            answer=answer,
            error=choose(methods, self.method).error,
            methods=methods,
            public=public if counted else ("the number of rows", *public),
            noise=None if counted else law,
        )


def _plain(values: Floats) -> Any:
    """Return a float for one column, or an array for several."""
    return float(values[0]) if len(values) == 1 else values


def _sums_of_public_rows(
    law: NoiseLaw, noisy: IntegerArray, lattice: FixedPoint, *, rows: int, columns: Sequence[str]
) -> Measurement:
    """Return the noisy sums with a line for each column, if the number of rows is public."""
    return Measurement(
        law=law,
        integers=noisy[:, None],
        forms={"": ((Fraction(0), Fraction(rows)), (Fraction(1, lattice.steps), Fraction(0)))},
        bounds={"": lattice.ends},
        joint=True,
        statistics={"mean": ("", "mean")},
        labels=columns,
        resolution=lattice.resolution,
        rows=rows,
    )


def _sums_with_count(
    law: NoiseLaw, noisy: IntegerArray, lattice: FixedPoint, *, columns: Sequence[str]
) -> Measurement:
    """Return the noisy sums as one line for all columns, after the number of rows in steps."""
    bound = average(lattice.bound)
    return Measurement(
        law=law,
        integers=noisy[None, :],
        forms=LazyForms(columns, partial(_forms, lattice.dimension, lattice.steps)),
        bounds=dict.fromkeys(columns, (-bound, bound)),
        statistics={name: (name, "mean") for name in columns},
        resolution=lattice.resolution,
    )


def _forms(dimension: int, steps: int, column: int) -> tuple[tuple[Fraction, ...], ...]:
    """Return the forms of that line for the number of complete rows, and the sum of a column."""
    places = range(dimension + 2)
    rows = (Fraction(int(place == 0), steps) for place in places)
    return tuple(rows), tuple(Fraction(int(place == column + 1), steps) for place in places)


def mean_methods(
    *,
    epsilon: Rational,
    n: int,
    dimension: int,
    norm: float = math.inf,
    bound: Rational = 1,
) -> tuple[Method, ...]:
    """Return the methods for a mean, best first, for rows within `bound` of a center in `norm`.

    For a box, norm = inf and `bound` is half its width (averaged over the columns). Errors are
    expected absolute errors of a coordinate.

    >>> [m.name for m in mean_methods(epsilon=1, n=1000, dimension=10, norm=2)]
    ['k-norm', 'laplace', 'k-norm-max']
    """
    exact, count = as_usable_epsilon(epsilon), as_count(n, "n", minimum=1)
    d, size = as_count(dimension, "dimension", minimum=1), float(as_positive(bound, "bound"))
    return _forecast(exact, count, d, as_norm(norm), size)


@lru_cache(maxsize=1024)
def _forecast(
    epsilon: Fraction, count: int, d: int, norm: float, size: float
) -> tuple[Method, ...]:
    """Return noise in the l1, l2 and l∞ norms as methods for a mean, by forecast error."""
    fitting = _METHOD_OF_NORM[norm]

    def of(name: str, why: str) -> Method:
        """Return a noise's method with its forecast error, in the norm of that name."""
        unit_error = KNorm(
            norm=_NOISE_NORMS[name], dimension=d, sensitivity=Fraction(1), scale=Fraction(1)
        ).error()
        sensitivity = 2 * size / count * float(stretch(norm, _NOISE_NORMS[name], d))
        error = min(unit_error * sensitivity / float(epsilon), size)  # clipped to the bounds
        return Method(name=name, error=error, spends="ε on one sum", why=why)

    reasons = {
        name: "noise in the norm that bounds the rows"
        if name == fitting
        else "its norm does not fit the bound: the sensitivity grows with the dimension"
        for name in _NOISE_NORMS
    }
    # the first of equals wins, and in one dimension all are equal
    order = sorted(_NOISE_NORMS, key=lambda name: name != fitting)
    return ranked(*(of(name, reasons[name]) for name in order))


# -- The sum of bounded columns; missing cells and rows that a filter drops add nothing -----------

_MOST_SUM_STEPS = 1 << 40


@debited
def sum(
    rows: Any,
    columns: str | Sequence[str] | None = None,
    *,
    by: By = None,
    bounds: Any = None,
    epsilon: Rational,
    missing: Any = DEFAULT_MISSING,
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the sum of bounded columns, like `np.nansum(rows, axis=0)`, but private.

    Use it for totals, of all rows or by group; for averages see `mean`.

    Parameters
    ----------
    rows : data set, array, list, series, frame or Source
        What `zd.open` returns, or one or several columns; values are clipped to the bounds.
    columns : str or list of str, optional
        Which columns of a data set or a frame; by default all.
    bounds : (lower, upper)
        Of every column, known without the rows; for a data set, by default as declared.

    Returns
    -------
    Release
        Its value is a number for one column, a vector for several, unbiased; by group it is a
        table, as for `zd.table`.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory R; by group P1, G2), proven: one row changes an integer sum by
    at most the width of its bounds, extended to 0 where a cell may be missing.
    **Neighbors**: replace-one, or what the data set says.
    **Error**: the expected absolute error of a sum, averaged over the columns.

    Examples
    --------
    >>> round(sum(np.full(100_000, 3.0), bounds=(0, 10), epsilon=1).value, -3)
    300000.0

    """
    return _released(
        "sum", rows, columns, by, bounds, epsilon, missing, diagnostics, question=SumQuestion
    )


@value
class SumQuestion:
    """Question for the sum of columns within public bounds."""

    bounds: tuple[Any, Any] | None = None

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Choose the lattice of the columns, and calibrate l∞ noise on their sums."""
        require(facts.width, "columns of rows", 0, "one or more", "pass rows with a column")
        exact, ends = as_usable_epsilon(epsilon), bounds_by_column(self.bounds, facts.width)
        wanted = wanted_steps(facts.planned_rows, exact)
        steps = max(_LEAST_STEPS, min(wanted, _MOST_SUM_STEPS))
        quanta = tuple((upper - lower) / (2 * steps) for lower, upper in ends)
        # a sum is an integer number of quanta counted from 0: those of a lattice around the middle
        # of the bounds, plus an offset for each value
        offsets = [round((a + b) / (2 * q)) for (a, b), q in zip(ends, quanta, strict=True)]
        lower, upper = zip(*ends, strict=True)
        lattice = FixedPoint.box(dimension=facts.width, lower=lower, upper=upper, steps=steps)
        noise = KNorm.for_epsilon(
            epsilon=exact,
            norm=math.inf,
            dimension=facts.width,
            sensitivity=max(_sensitivity(offset, steps, facts) for offset in offsets),
            neighbors=facts.neighbors,
        )
        unit = quanta[0] if len(quanta) == 1 else quanta
        error = noise.error() * float(np.mean([float(quantum) for quantum in quanta]))
        law = noise.law(unit=unit)

        def answer(rows: Rows, bits: BitSource) -> Measured:
            """Return the noisy sums of the columns, counted from their offsets."""
            noisy = noise.apply(_totals(rows, lattice, offsets, facts), bits)
            sums = Measurement(
                law=law,
                integers=noisy[:, None],
                joint=True,
                statistics={"sum": (None, "integers")},
                labels=facts.columns,
            )
            return Measured(value=_plain(sums.values("sum")[0]), sums=(sums,))

        return ReleasePlan(
            claim=noise.claim,
            steps=(noise.step(quantum=unit),),
            answer=answer,
            error=error,
            methods=(Method(name="k-norm-max", error=error, spends="ε on all sums", why="fits"),),
            public=("the number of columns", "bounds on the rows"),
            noise=law,
        )


def _sensitivity(offset: int, steps: int, facts: Facts) -> int:
    """Return by how many quanta one row can change the sum."""
    low, high = offset - steps, offset + steps
    if facts.neighbors is Neighbors.ADD_REMOVE:
        return max(abs(low), abs(high))
    return max(high, 0) - min(low, 0) if facts.may_miss else high - low


def _totals(rows: Rows, lattice: FixedPoint, offsets: Sequence[int], facts: Facts) -> IntegerArray:
    """Return the exact sum of each column in quanta: Σk, plus the offset for each value.

    Where no cell may be missing, an absent cell counts as the center of the bounds.
    """
    counts: Any
    if len(offsets) == 1:  # in one pass
        table = rows.group_sums((), (), 0, lattice)
        sums, counts = table[:, 2], table[:, 1 if facts.may_miss else 0]
    else:
        columns = list(range(len(offsets)))
        sums = rows.sum(columns, lattice)
        counts = present_counts(rows, columns) if facts.may_miss else facts.public_rows
    exact: IntegerArray = sums.astype(object) + np.array(offsets, dtype=object) * counts
    return exact


# -- The variance and the standard deviation of bounded columns, of all rows or by group ----------


@partial(debited, like=sum)
def variance(
    rows: Any,
    columns: str | Sequence[str] | None = None,
    *,
    by: By = None,
    bounds: Any = None,
    epsilon: Rational,
    missing: Any = DEFAULT_MISSING,
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the variance of bounded columns, like `np.var(rows, axis=0)`, but private.

    Use it for the spread of one or several columns; with means and counts see `table`, in the
    unit of the data `std`.

    Returns
    -------
    Release
        Its value is a number for one column, a vector for several, between 0 and a quarter of the
        squared width of the bounds; by group it is a table, as for `zd.table`.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory P1, P2, G2), proven: noise on exact integer sums of the values
    and their squares. It divides by the count, as `np.var` does.
    **Neighbors**: replace-one, or what the data set says.
    **Error**: the expected absolute error, averaged over the columns and over where means may lie.

    Examples
    --------
    >>> import numpy as np
    >>> release = variance(np.array([20.0, 40.0] * 50_000), bounds=(0, 100), epsilon=1)
    >>> round(release.value, -1)
    100.0

    """
    return _released("variance", rows, columns, by, bounds, epsilon, missing, diagnostics)


@partial(debited, like=variance)
def std(
    rows: Any,
    columns: str | Sequence[str] | None = None,
    *,
    by: By = None,
    bounds: Any = None,
    epsilon: Rational,
    missing: Any = DEFAULT_MISSING,
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the standard deviation of bounded columns, like `np.std(rows, axis=0)`, but private.

    Use it for the spread of one or several columns, in their own unit; it is the root of the
    released `variance`.

    Returns
    -------
    Release
        Its value is a number for one column, a vector for several, between 0 and half the width of
        the bounds; by group it is a table, as for `zd.table`.

    Notes
    -----
    **Guarantee**, **Neighbors**: those of `variance`.
    **Error**: the expected absolute error where bounds are three standard deviations away.

    Examples
    --------
    >>> import numpy as np
    >>> release = std(np.array([20.0, 40.0] * 50_000), bounds=(0, 100), epsilon=1)
    >>> round(release.value)
    10

    """
    return _released("std", rows, columns, by, bounds, epsilon, missing, diagnostics)


# -- What the tasks are, for advice and the command line ------------------------------------------


def _count(numbers: Numbers) -> tuple[Method, ...]:
    """Return the forecast for a count of rows that meet a condition."""
    facts = Facts(rows=numbers["n"], may_miss=True, drops_rows=True)
    return tuple(CountQuestion(rows_only=True).plan(facts, numbers["epsilon"]).methods)


def _total(numbers: Numbers) -> float:
    """Return the largest error of n times the middle of the bounds, averaged over the columns."""
    ends = bounds_by_column(numbers["bounds"], width_of(numbers))
    widths = float(reduce(add, (upper - lower for lower, upper in ends)))
    return float(numbers["n"]) * widths / (2 * len(ends))


def _spread_methods(statistic: str, numbers: Numbers) -> tuple[Method, ...]:
    """Return the forecast for one statistic of all rows, in the unit of the data."""
    facts, width = facts_of(numbers), width_of(numbers)
    missing, names = [facts.may_miss] * width, [str(place) for place in range(width)]
    question = _of_all_rows(statistic, names, numbers["bounds"], missing, complete=True)
    plan = question.plan(facts, numbers["epsilon"])
    assert isinstance(plan.error, float)
    return tuple(replace(method, error=plan.error) for method in plan.methods)


_SUM = Forecast(
    unit="expected absolute error of a sum, in the unit of the data, averaged over the columns",
    call="zd.sum(rows, bounds={bounds}, epsilon={epsilon}, missing={missing})",
    methods=planned(SumQuestion, columns=width_of),
    reliable=CLOSE,
    needs={**ROWS, "bounds": "bounds=(0, 100)"},
    allows={"dimension": None, "missing": None},
    blind=_total,
    typical={"bounds": (0, 100)},
)
_COLUMNS = "one number for each column (and group)"


def _planner(title: str) -> Planner:
    """Return the planner of a task for one column of numbers."""
    return Planner(
        title=title,
        fields=("n", "width"),
        fixed=SKIPPED,
        people=INCOME,
        python='people, "income"',
        shell="income",
    )


TASKS: dict[str, Task] = {
    "count": Task(
        verb=count,
        page="statistics",
        error="rows",
        forecast=Forecast(
            unit="expected absolute error of a number of rows that meet a condition",
            call="zd.count(people.where(…), epsilon={epsilon})",
            methods=_count,
            reliable=CLOSE,
            needs=ROWS,
            blind=lambda numbers: numbers["n"] / 2,
        ),
        command=Command(
            columns="one",
            options=STATISTIC,
            publishes="the number of rows, or one for each group",
            example="count people.csv --by city",
        ),
        planner=Planner(
            title="Count of rows that meet a condition",
            fields=("n",),
            people=PERCENT,
            python='people.where("income >= 50")',
            shell='--where "income >= 50"',
        ),
    ),
    "sum": Task(
        verb=sum,
        page="statistics",
        error="in the unit of the column",
        forecast=_SUM,
        command=Command(
            options=STATISTIC, publishes=_COLUMNS, example="sum people.csv income --by city"
        ),
        planner=_planner("Sum"),
    ),
    "mean": Task(
        verb=mean,
        page="statistics",
        error="in the unit of the column",
        forecast=Forecast(
            unit="expected absolute error of a coordinate, in the unit of the data",
            call="zd.mean(rows, bounds={bounds}, data_norm={data_norm}, norm={norm}, "
            "epsilon={epsilon}, missing={missing})",
            methods=planned(MeanQuestion, columns=width_of),
            reliable=CLOSE,
            needs={**ROWS, "bounds|data_norm": "bounds=(0, 100)"},
            allows={
                "dimension": None,
                "bounds": None,
                "data_norm": None,
                "norm": 2,
                "missing": None,
            },
            typical={"bounds": (0, 100)},
        ),
        command=Command(
            options=(*STATISTIC, "method"),
            publishes=_COLUMNS,
            example="mean people.csv income --by city",
        ),
        planner=planner_of_columns("Mean of columns"),
    ),
    "variance": Task(
        verb=variance,
        page="statistics",
        error="in the squared unit of the column",
        forecast=replace(
            _SUM,
            unit="expected absolute error, in the squared unit of the data, averaged over all "
            "places of\n       the mean between the bounds",
            call="zd.variance(rows, bounds={bounds}, epsilon={epsilon}, missing={missing})",
            methods=partial(_spread_methods, "variance"),
            blind=None,
        ),
        command=Command(
            options=STATISTIC, publishes=_COLUMNS, example="variance people.csv income"
        ),
        planner=_planner("Variance"),
    ),
    "std": Task(
        verb=std,
        page="statistics",
        error="in the unit of the column",
        forecast=replace(
            _SUM,
            unit="expected absolute error, in the unit of the data",
            call="zd.std(rows, bounds={bounds}, epsilon={epsilon}, missing={missing})",
            methods=partial(_spread_methods, "std"),
            reliable=f"{CLOSE},\n       where bounds are three standard deviations away",
            blind=None,
        ),
        command=Command(options=STATISTIC, publishes=_COLUMNS, example="std people.csv income"),
        planner=_planner("Standard deviation"),
    ),
}
