"""`count`, `sum`, `mean`, `variance` and `std` of bounded columns (theory R, C10.4)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.data.arrays import DEFAULT_MISSING
from zerodelta.data.dataset import Dataset
from zerodelta.data.keys import GroupKeys
from zerodelta.data.kinds import skips
from zerodelta.data.rows import Rows
from zerodelta.data.source import Source
from zerodelta.errors import is_name, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.noise_tails import GeometricLaw, LazyForms, NoiseLaw, NoisySums, Statistic
from zerodelta.exact.rational import Rational, as_count, as_positive, inner_ends
from zerodelta.exact.sums import IntegerArray
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.mechanisms.moments import EXPECTED, plan_moments
from zerodelta.mechanisms.partition_noise import PartitionNoise, present_counts
from zerodelta.mechanisms.sum_noise import KNorm, as_norm
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors, as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.steps import Step
from zerodelta.spine.plan import Facts, Measured, Method, ReleasePlan, choose, ranked
from zerodelta.spine.public_inputs import as_pair, as_source, bounds_of, each_bounds, one_column
from zerodelta.spine.run import ask
from zerodelta.spine.verbs import Paying, debited
from zerodelta.tables.grouped import By
from zerodelta.tables.parts import AskedColumn
from zerodelta.tasks.table import TableQuestion, grouped_statistic, table_of
from zerodelta.tasks.task import (
    CLOSE,
    INCOME,
    NAMES,
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
    width_of,
)
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


# -- How many rows there are, or have a value: a count with noise, or none where it is public -----


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
    """Release how many rows there are, or how many have a value in one column.

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
            expected="nothing: rows of a frame are counted by group",
            remedy="open the data with zd.open(…) to count the values of a column",
        )
        one = columns is None or isinstance(columns, str)
        require(one, "columns", columns, "the name of one column", "pass one, or none for rows")
        return table_of(
            rows,
            by=by,
            of={} if columns is None else {columns: ("count",)},
            epsilon=epsilon,
            missing=missing,
            diagnostics=diagnostics,
        )
    source = as_source(rows, columns, missing=missing, texts=True)
    beside = diagnosis(diagnostics, source)
    if columns is None and isinstance(source, Dataset):
        source = source.row_itself
    question = CountQuestion(rows_only=columns is None and missing is DEFAULT_MISSING)
    return ask(question, source, epsilon=epsilon, beside=beside)


@value
class CountQuestion:
    """The number of rows is asked, or of present cells of one column."""

    rows_only: bool = False

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Calibrate the noise; none where the number is public."""
        exact = as_usable_epsilon(epsilon)
        some_missing = facts.drops if self.rows_only else facts.may_miss
        if facts.rows is not None and not some_missing:
            return _public(facts.rows)
        one_column(facts)
        noise = PartitionNoise.for_epsilon(epsilon=exact, cells=1, neighbors=facts.neighbors)
        error = noise.error()

        def answer(rows: Rows, bits: BitSource) -> Measured:
            counts = rows.group_sums((), (), 0, None)
            noisy = noise.apply(counts[:, 1], bits)
            sums = _sums(noise.law(unit=Fraction(1)), noisy[:, None], (Fraction(1), Fraction(0)))
            return Measured(value=int(noisy[0]), sums=(sums,))

        return ReleasePlan(
            claim=noise.claim,
            steps=(noise.step(),),
            answer=answer,
            error=error,
            methods=(Method(name="laplace", error=error, spends="ε on one count", why="optimal"),),
            noise=noise.law(unit=Fraction(1)),
        )


def _public(rows: int) -> ReleasePlan[Rows]:
    """Return the plan that publishes what is public already."""
    none = GeometricLaw(scale=Fraction(1)).on(Fraction(1))
    sums = _sums(none, np.zeros((1, 1), dtype=np.int64), (Fraction(0), Fraction(rows)))
    return ReleasePlan(
        claim=PureDP(0),
        steps=(Step(theorem="public"),),
        answer=lambda _rows, _bits: Measured(value=rows, sums=(sums,)),
        error=0.0,
        public=("the number of rows",),
    )


def _sums(law: NoiseLaw, noisy: IntegerArray, form: tuple[Fraction, Fraction]) -> NoisySums:
    """Return what intervals are made of."""
    counted: dict[str, tuple[str | None, Statistic]] = {"count": (None, "count")}
    return NoisySums(law=law, integers=noisy, forms={None: (form,)}, bounds={}, statistics=counted)


# -- The lattice on which rows of a mean are added up, and what a mean on it can be ---------------

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
    """Return the lattice between the bounds, or of the ball of that norm; it takes just one."""
    require(
        (bounds is None) != (data_norm is None),
        "bounds, data_norm",
        (bounds, data_norm),
        expected="exactly one public bound on the rows",
        remedy="pass bounds=(lower, upper), or data_norm= the largest norm a row can have",
    )
    if data_norm is not None:
        bound, steps = as_positive(data_norm, "data_norm"), _steps(n, epsilon, dimension, norm)
        return FixedPoint.ball(dimension=dimension, bound=bound, norm=norm, steps=steps)
    lower, upper = as_pair(bounds)
    steps = _steps(n, epsilon, dimension, math.inf)
    return FixedPoint.box(dimension=dimension, lower=lower, upper=upper, steps=steps)


def _steps(n: int, epsilon: Fraction, dimension: int, norm: float) -> int:
    """Return the bound in quanta: 2^8·n·ε makes half a quantum 2^-10 of the noise on a mean.

    At most so many that n of them, and for l2 the squares of one row, add up in 64 bits.
    """
    wanted = 1 << math.ceil(math.log2(max(1.0, min(float(256 * n * epsilon), 2.0**60))))
    most = min(_MOST_STEPS, (1 << _SUM_BITS) // n)
    if norm == 2:
        most = min(most, math.isqrt((1 << _SUM_BITS) // dimension))
    return max(_LEAST_STEPS, min(wanted, most))


def stretch(norm: float, noise_norm: float, dimension: int) -> Fraction:
    """Return the largest l_noise norm of a vector of unit l_norm norm, rounded up."""
    if noise_norm >= norm:
        return Fraction(1)
    power = 1 / noise_norm - (0.0 if norm == math.inf else 1 / norm)
    if power == 1:
        return Fraction(dimension)
    root = math.isqrt((dimension << 64) - 1) + 1  # √d · 2^32, rounded up
    return Fraction(root, 1 << 32)


def average(bound: Fraction | tuple[Fraction, ...]) -> Fraction:
    """Return the bound of a coordinate, averaged over the columns."""
    return _average(bound) if isinstance(bound, tuple) else bound


def ends_of(lattice: FixedPoint) -> tuple[list[Fraction], list[Fraction]]:
    """Return the bounds of each coordinate."""
    center, bound = (
        list(each) if isinstance(each, tuple) else [each] * lattice.dimension
        for each in (lattice.center, lattice.bound)
    )
    return (
        [c - b for c, b in zip(center, bound, strict=True)],
        [c + b for c, b in zip(center, bound, strict=True)],
    )


def resolution_of(lattice: FixedPoint) -> Fraction:
    """Return how far quantizing moves a coordinate, the bound being 1: in a ball also inwards."""
    return Fraction(1, lattice.steps if lattice.norm != math.inf else 2 * lattice.steps)


def inside(value: Floats, lattice: FixedPoint) -> Floats:
    """Clip the noisy mean to where a mean can be: post-processing that never adds error."""
    if lattice.norm == 2:  # around 0
        most, length = average(lattice.bound), float(np.linalg.norm(value))
        return value * min(1.0, float(most) / length) if length > 0 else value
    each = itertools.repeat
    centers = lattice.center if isinstance(lattice.center, tuple) else each(lattice.center)
    bounds = lattice.bound if isinstance(lattice.bound, tuple) else each(lattice.bound)
    alike = not isinstance(lattice.center, tuple) and not isinstance(lattice.bound, tuple)
    pairs = itertools.islice(zip(centers, bounds, strict=False), 1 if alike else lattice.dimension)
    ends = np.array([inner_ends(center - bound, center + bound) for center, bound in pairs])
    return np.clip(value, ends[:, 0], ends[:, 1])


def _average(bounds: tuple[Fraction, ...]) -> Fraction:
    return reduce(add, bounds, Fraction(0)) / len(bounds)


_NOISE_NORMS = {"laplace": 1.0, "k-norm": 2.0, "k-norm-max": math.inf}
_FITTING = {norm: name for name, norm in _NOISE_NORMS.items()}


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
        Instead of bounds: the largest norm that a row can have.
    norm : 1, 2 or math.inf
        Of which norm `data_norm` is the bound.
    method : str
        "k-norm" (l2), "k-norm-max" (l∞), "laplace" (l1): in which norm noise is drawn, or "auto",
        the one with the least predicted error.

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
    `data_norm` a row with a missing cell counts nowhere.
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
        return grouped_statistic(
            "mean",
            rows,
            columns,
            by=by,
            bounds=bounds,
            epsilon=epsilon,
            missing=missing,
            diagnostics=diagnostics,
        )
    source = as_source(rows, columns, missing=missing)
    stated = bounds if data_norm is not None else bounds_of(source, bounds)
    question = MeanQuestion(bounds=stated, data_norm=data_norm, norm=norm, method=method)
    beside = diagnosis(diagnostics, source, bounds=stated)
    return ask(question, source, epsilon=epsilon, beside=beside)


@value
class MeanQuestion:
    """A mean is asked of rows within public bounds."""

    bounds: tuple[Any, Any] | None = None
    data_norm: Rational | None = None
    norm: float = 2
    method: str = "auto"

    @property
    def _within(self) -> tuple[tuple[Any, Any] | None, Rational | None, float]:
        return self.bounds, self.data_norm, as_norm(self.norm)

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Choose the norm of the noise, and calibrate it."""
        if facts.may_miss:
            return self._skipping(facts, as_usable_epsilon(epsilon))
        exact, n, dimension = as_usable_epsilon(epsilon), facts.public_rows, facts.width
        lattice = mean_lattice(*self._within, dimension=dimension, n=n, epsilon=exact)
        methods = mean_methods(
            epsilon=exact,
            n=n,
            dimension=dimension,
            norm=lattice.norm,
            bound=average(lattice.bound),
        )
        chosen = choose(methods, self.method)
        norm = _NOISE_NORMS[chosen.name]
        mechanism = KNorm.for_epsilon(
            epsilon=exact,
            norm=norm,
            dimension=dimension,
            sensitivity=2 * lattice.steps * stretch(lattice.norm, norm, dimension),
        )

        def answer(rows: Rows, bits: BitSource) -> Measured:
            total = mechanism.apply(rows.sum(list(range(dimension)), lattice), bits)
            value = inside(lattice.dequantize(total, rows=n) / n, lattice)
            sums = NoisySums(
                law=mechanism.law(unit=lattice.quantum, rows=n),
                integers=total[:, None],
                forms={"": ((Fraction(0), Fraction(n)), (Fraction(1, lattice.steps), Fraction(0)))},
                bounds={"": ends_of(lattice)},
                joint=True,
                statistics={"mean": ("", "mean")},
                labels=facts.columns,
                resolution=resolution_of(lattice),
                rows=n,
            )
            return Measured(value=float(value[0]) if dimension == 1 else value, sums=(sums,))

        return ReleasePlan(
            claim=PureDP(exact),
            steps=(mechanism.step(quantum=lattice.quantum),),
            answer=answer,
            error=chosen.error,
            methods=methods,
            public=("the number of rows", "the number of columns", "bounds on the rows"),
            noise=mechanism.law(unit=lattice.quantum, rows=n),
        )

    def _skipping(self, facts: Facts, epsilon: Fraction) -> ReleasePlan[Rows]:
        """Plan a count and a sum, where the number of cells that count is private."""
        if self.bounds is None and self.data_norm is not None:
            return self._complete_rows(facts, epsilon)
        require(
            self.data_norm is None and is_name(self.method, ("auto", "partition")),
            "data_norm" if self.data_norm is not None else "method",
            self.data_norm if self.data_norm is not None else self.method,
            expected="one public bound, and method='auto', where cells may be missing",
            remedy="pass bounds= or data_norm=, or missing=None if no cell is missing",
        )
        moments = plan_moments(
            epsilon=epsilon,
            bounds=each_bounds(self.bounds, facts.width),
            expected_rows=facts.planned_rows,
            neighbors=facts.neighbors,
        )
        error = float(np.mean(moments.forecast().mean)) * EXPECTED
        spends = "ε on counts and sums together"
        why = "a missing cell counts nowhere; missing=None, if none is missing, needs less noise"

        names, ends = facts.columns, each_bounds(self.bounds, facts.width)

        def answer(rows: Rows, bits: BitSource) -> Measured:
            noisy = moments.noisy(moments.measure(rows, list(range(facts.width))), bits)
            value = moments.estimate(noisy).mean[0]
            sums = NoisySums(
                law=moments.law,
                integers=noisy.reshape(1, -1),
                forms=LazyForms(names, moments.forms),
                bounds=dict(zip(names, ends, strict=True)),
                statistics={name: (name, "mean") for name in names},
                resolution=resolution_of(moments.lattice),
            )
            return Measured(value=float(value[0]) if facts.width == 1 else value, sums=(sums,))

        return ReleasePlan(
            claim=moments.claim,
            steps=moments.steps,
            answer=answer,
            error=error,
            methods=(Method(name="partition", error=error, spends=spends, why=why),),
            public=("the number of columns", "bounds on the rows"),
        )

    def _complete_rows(self, facts: Facts, epsilon: Fraction) -> ReleasePlan[Rows]:
        """Plan the number of complete rows and their sum, with noise in the norm of a row.

        A row is (s, k), s the steps of the lattice, and (0, 0) if a cell of it is missing: two rows
        are 2s apart, as without s, and one is (s, s) from none.
        """
        dimension, n = facts.width, facts.planned_rows
        lattice = mean_lattice(*self._within, dimension=dimension, n=n, epsilon=epsilon)
        name, steps = _FITTING[lattice.norm], lattice.steps
        added = facts.neighbors is Neighbors.ADD_REMOVE
        mechanism = KNorm.for_epsilon(
            epsilon=epsilon,
            norm=lattice.norm,
            dimension=dimension + 1,
            sensitivity=stretch(math.inf, lattice.norm, 2) * steps if added else 2 * steps,
            neighbors=facts.neighbors,
        )
        size = float(average(lattice.bound))
        # of a mean as long as half the bound
        spread = math.hypot(1, 0.5 / math.sqrt(dimension)) * mechanism.error() / (steps * n)
        error = min(spread * size, size)
        why = "a row that lacks a cell counts nowhere; missing=None, if none does, needs less noise"
        method = Method(name=name, error=error, spends="ε on one number and one sum", why=why)
        chosen = choose((method,), self.method)

        def answer(rows: Rows, bits: BitSource) -> Measured:
            present, found = rows.present_sums(list(range(dimension)), lattice, joint=True)
            exact = [int(present[0]) * steps, *map(int, found)]
            noisy = mechanism.apply(np.array(exact, dtype=object), bits)
            number, *total = map(int, noisy)
            value = np.array([size * k / number if number > 0 else 0.0 for k in total])
            clipped = inside(value, lattice)
            ends = (-average(lattice.bound), average(lattice.bound))
            sums = NoisySums(
                law=mechanism.law(unit=Fraction(1)),
                integers=noisy[None, :],
                forms=LazyForms(facts.columns, partial(_forms, dimension, steps)),
                bounds=dict.fromkeys(facts.columns, ends),
                statistics={name: (name, "mean") for name in facts.columns},
                resolution=resolution_of(lattice),
            )
            return Measured(value=float(clipped[0]) if dimension == 1 else clipped, sums=(sums,))

        return ReleasePlan(
            claim=PureDP(epsilon, neighbors=facts.neighbors),
            steps=(mechanism.step(quantum=lattice.quantum),),
            answer=answer,
            error=chosen.error,
            methods=(method,),
            public=("the number of columns", "bounds on the rows"),
        )


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
    fits = _FITTING[norm]

    def of(name: str, why: str) -> Method:
        noise = KNorm(
            norm=_NOISE_NORMS[name], dimension=d, sensitivity=Fraction(1), scale=Fraction(1)
        ).error()
        moved = 2 * size / count * float(stretch(norm, _NOISE_NORMS[name], d))
        error = min(noise * moved / float(epsilon), size)  # clipped to the bounds
        return Method(name=name, error=error, spends="ε on one sum", why=why)

    reasons = {
        name: "noise in the norm that bounds the rows"
        if name == fits
        else "its norm does not fit the bound: the sensitivity grows with the dimension"
        for name in _NOISE_NORMS
    }
    order = sorted(_NOISE_NORMS, key=lambda name: name != fits)  # in one dimension all are equal
    return ranked(*(of(name, reasons[name]) for name in order))


def _forms(dimension: int, steps: int, column: int) -> tuple[tuple[Fraction, ...], ...]:
    """Return the count of complete rows and the sum of a column, of what `_complete_rows` adds."""
    places = range(dimension + 2)
    one = (Fraction(int(place == 0), steps) for place in places)
    return tuple(one), tuple(Fraction(int(place == column + 1), steps) for place in places)


# -- The sum of bounded columns; a missing cell, and a row that a filter drops, adds nothing ------

_SUM_LEAST_STEPS, _SUM_MOST_STEPS = 1 << 10, 1 << 40


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
    **Guarantee**: pure ε-DP (theory R; by group P1, G2), proven: one row moves an integer sum by at
    most the width of its bounds (0 included, where it may be missing).
    **Neighbors**: replace-one, or what the data set says.
    **Error**: the expected absolute error of a sum, averaged over the columns.

    Examples
    --------
    >>> round(sum(np.full(100_000, 3.0), bounds=(0, 10), epsilon=1).value, -3)
    300000.0

    """
    if by is not None:
        return grouped_statistic(
            "sum",
            rows,
            columns,
            by=by,
            bounds=bounds,
            epsilon=epsilon,
            missing=missing,
            diagnostics=diagnostics,
        )
    source = as_source(rows, columns, missing=missing)
    question = SumQuestion(bounds=bounds_of(source, bounds))
    beside = diagnosis(diagnostics, source, bounds=question.bounds)
    return ask(question, source, epsilon=epsilon, beside=beside)


@value
class SumQuestion:
    """A sum is asked of columns within public bounds."""

    bounds: tuple[Any, Any] | None = None

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Choose the lattice, and calibrate noise in the l∞ norm."""
        require(facts.width, "columns of rows", 0, "one or more", "pass rows with a column")
        exact = as_usable_epsilon(epsilon)
        columns = [
            _Column.of(lower, upper, steps=_sum_steps(facts.planned_rows, exact))
            for lower, upper in each_bounds(self.bounds, facts.width)
        ]
        noise = KNorm.for_epsilon(
            epsilon=exact,
            norm=math.inf,
            dimension=facts.width,
            sensitivity=max(
                column.moves(may_miss=facts.may_miss, neighbors=facts.neighbors)
                for column in columns
            ),
            neighbors=facts.neighbors,
        )
        quanta = tuple(column.quantum for column in columns)
        unit = quanta[0] if len(quanta) == 1 else quanta
        error = noise.error() * float(np.mean([float(quantum) for quantum in quanta]))

        def answer(rows: Rows, bits: BitSource) -> Measured:
            noisy = noise.apply(_totals(rows, columns, facts), bits)
            values = [float(int(k) * q) for k, q in zip(noisy, quanta, strict=True)]
            sums = NoisySums(
                law=noise.law(unit=unit),
                integers=noisy[:, None],
                forms={},
                bounds={},
                joint=True,
                statistics={"sum": (None, "integers")},
                labels=facts.columns,
            )
            value = values[0] if len(values) == 1 else np.array(values)
            return Measured(value=value, sums=(sums,))

        return ReleasePlan(
            claim=noise.claim,
            steps=(noise.step(quantum=unit),),
            answer=answer,
            error=error,
            methods=(Method(name="k-norm-max", error=error, spends="ε on all sums", why="fits"),),
            public=("the number of columns", "bounds on the rows"),
            noise=noise.law(unit=unit),
        )


@value
class _Column:
    """Values as whole numbers of quanta from 0: those of a lattice around the middle, moved."""

    lattice: FixedPoint
    offset: int
    quantum: Fraction
    ends: tuple[Fraction, Fraction]

    @staticmethod
    def of(lower: Fraction, upper: Fraction, *, steps: int) -> _Column:
        quantum = (upper - lower) / (2 * steps)
        lattice = FixedPoint.box(dimension=1, lower=lower, upper=upper, steps=steps)
        return _Column(
            lattice=lattice,
            offset=round((lower + upper) / (2 * quantum)),
            quantum=quantum,
            ends=(lower, upper),
        )

    def moves(self, *, may_miss: bool, neighbors: Neighbors) -> int:
        """Return by how much one row can change the sum."""
        low, high = self.offset - self.lattice.steps, self.offset + self.lattice.steps
        if neighbors is Neighbors.ADD_REMOVE:
            return max(abs(low), abs(high))
        return max(high, 0) - min(low, 0) if may_miss else high - low


def _totals(rows: Rows, columns: Sequence[_Column], facts: Facts) -> IntegerArray:
    """Return the exact sum of each column: Σk, and the offset once for each value.

    Where none may miss, a cell without a value is the center, within the bounds as all others.
    """
    every = list(range(len(columns)))
    counts: Any
    if len(columns) == 1:  # one pass
        found = rows.group_sums((), (), 0, columns[0].lattice)
        sums, counts = found[:, 2], found[:, 1 if facts.may_miss else 0]
    else:
        lower, upper = zip(*(column.ends for column in columns), strict=True)
        lattice = FixedPoint.box(
            dimension=len(columns), lower=lower, upper=upper, steps=columns[0].lattice.steps
        )
        sums = rows.sum(every, lattice)
        counts = present_counts(rows, every) if facts.may_miss else facts.public_rows
    offsets: Any = np.array([column.offset for column in columns], dtype=object)
    exact: IntegerArray = sums.astype(object) + offsets * counts
    return exact


def _sum_steps(n: int, epsilon: Fraction) -> int:
    """Return half the width of the bounds in quanta: 2^8·n·ε keeps rounding below the noise."""
    wanted = 1 << math.ceil(math.log2(max(1.0, min(float(256 * n * epsilon), 2.0**60))))
    return max(_SUM_LEAST_STEPS, min(wanted, _SUM_MOST_STEPS))


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
    return _spread("variance", rows, columns, by, bounds, epsilon, missing, diagnostics)


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
    return _spread("std", rows, columns, by, bounds, epsilon, missing, diagnostics)


def _spread(
    statistic: str,
    rows: Any,
    columns: str | Sequence[str] | None,
    by: By,
    bounds: Any,
    epsilon: Rational,
    missing: Any,
    diagnostics: Rational | None,
) -> Release:
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
    stated = bounds_of(source, bounds)
    require(source.columns, "columns of rows", 0, "one or more", "pass rows with a column")
    ends = each_bounds(stated, len(source.columns))
    asked = tuple(
        AskedColumn(name=name, bounds=pair, missing=absent, statistics=(statistic,))
        for name, pair, absent in zip(source.columns, ends, _missing(source), strict=True)
    )
    question = TableQuestion(
        keys=GroupKeys(),
        columns=asked,
        complete=not source.drops,
        only=statistic,
    )
    beside = diagnosis(diagnostics, source, bounds=stated)
    return ask(question, source, epsilon=epsilon, beside=beside)


def _missing(source: Source) -> list[bool]:
    """Tell for each column whether what is missing there, or was dropped, counts nowhere."""
    if isinstance(source, Dataset) and not source.drops:
        return [skips(kind) for kind in source.kinds.values()]
    return [source.may_miss] * len(source.columns)


# -- What the tasks are, for advice and the command line ------------------------------------------


def _count(given: Numbers) -> tuple[Method, ...]:
    """Return the forecast for rows that a condition keeps: the number of all of them is public."""
    facts = Facts(rows=given["n"], may_miss=True, drops=True)
    return tuple(CountQuestion(rows_only=True).plan(facts, given["epsilon"]).methods)


def _total(given: Numbers) -> float:
    """Return how far n times the middle of the bounds may be from a sum, on average."""
    ends = each_bounds(given["bounds"], width_of(given))
    widths = float(reduce(add, (upper - lower for lower, upper in ends)))
    return float(given["n"]) * widths / (2 * len(ends))


def _of_all_rows(statistic: Statistic) -> Callable[[Numbers], tuple[Method, ...]]:
    """Return the forecast for one statistic of all rows, in the unit of the data."""

    def methods(given: Numbers) -> tuple[Method, ...]:
        facts, ends = facts_of(given), each_bounds(given["bounds"], width_of(given))
        columns = tuple(
            AskedColumn(
                name=str(place), bounds=pair, missing=facts.may_miss, statistics=(statistic,)
            )
            for place, pair in enumerate(ends)
        )
        question = TableQuestion(keys=GroupKeys(), columns=columns, complete=True, only=statistic)
        made = question.plan(facts, given["epsilon"])
        assert isinstance(made.error, float)
        return tuple(replace(method, error=made.error) for method in made.methods)

    return methods


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
            blind=lambda given: given["n"] / 2,
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
        planner=Planner(
            title="Mean of columns",
            fields=("n", "dimension", "width"),
            fixed=SKIPPED,
            people=NAMES.replace("100", "{width}"),
            python="people, names",
            shell="{names}",
        ),
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
            methods=_of_all_rows("variance"),
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
            methods=_of_all_rows("std"),
            reliable=f"{CLOSE},\n       where bounds are three standard deviations away",
            blind=None,
        ),
        command=Command(options=STATISTIC, publishes=_COLUMNS, example="std people.csv income"),
        planner=_planner("Standard deviation"),
    ),
}
