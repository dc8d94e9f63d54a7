"""The share of rows up to each value: at public points by counts, or as steps by quantiles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.data.arrays import DEFAULT_MISSING
from zerodelta.data.rows import Rows
from zerodelta.errors import is_list, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.noise_law import LazyForms, NoisySums
from zerodelta.exact.rational import Rational, as_float
from zerodelta.mechanisms.cumulative_counts import CumulativeCounts
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.mechanisms.quantile_plan import aimed_levels, plan_quantiles
from zerodelta.mechanisms.ranks import as_points
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spine.facts import Facts
from zerodelta.spine.methods import Method, choose
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.public_inputs import as_source, bounds_of, one_column
from zerodelta.spine.release_plan import Measured, ReleasePlan
from zerodelta.spine.run import ask
from zerodelta.tasks.quantile import declared_grid
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


_HUNDREDTHS = tuple(Fraction(i, 100) for i in range(1, 100))


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
    bits: BitSource | None = None,
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
        Which column of a data set or a frame.
    at : sequence of numbers, optional
        Public values in rising order, known without the rows.
    bounds : (lower, upper)
        Without `at`: where the points of the step function lie, known without the rows; for a data
        set, by default as declared.
    epsilon : number
        The privacy loss, as an int, a float, a Fraction or a text such as "1/2".
    grid : int or sequence
        Without `at`: the points of the step function, as for `quantile`.
    missing : "skip", None or number
        As for `quantile`.
    method : str
        With `at` "counts" (of the rows between neighboring values, and of blocks of these), without
        "quantiles"; or "auto".
    diagnostics : number, optional
        The share of ε, such as "1/100", for `release.diagnostics`: which fractions of the rows were
        used, clipped to the bounds, and unreadable.
    bits : BitSource
        Replayed bits for tests; never for data.

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
    stated = bounds_of(source, bounds)
    points = declared_grid(source) if bounds is None and grid is None else grid
    question = CdfQuestion(
        at=None if at is None else as_values(at), bounds=stated, grid=points, method=method
    )
    beside = diagnosis(diagnostics, source, bounds=stated)
    return ask(question, source, epsilon=epsilon, bits=bits, beside=beside)


@value
class CdfQuestion:
    """The distribution function of one column is asked, at public values or as steps."""

    at: tuple[float, ...] | None = None
    bounds: tuple[Rational, Rational] | None = None
    grid: int | Sequence[Rational] | None = None
    method: str = "auto"

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Plan counts between the values, or quantiles."""
        one_column(facts)
        exact = as_usable_epsilon(epsilon)
        public = facts.rows is not None and not facts.may_miss
        counted = ("the number of rows",) if public else ()
        if self.at is None:
            return self._steps(facts, exact, counted)
        return self._counts(facts, exact, counted)

    def _counts(
        self, facts: Facts, epsilon: Fraction, counted: tuple[str, ...]
    ) -> ReleasePlan[Rows]:
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
            column = block[:, 0]
            if skip:
                column = column[~np.isnan(column)]
            places = np.searchsorted(values, column, side="left")
            places[np.isnan(column)] = (cells - 1) // 2
            return np.bincount(places, minlength=cells)

        def answer(rows: Rows, bits: BitSource) -> Measured:
            found = rows.total(tabulated, [0], shape=(cells,), bound=1).astype(np.int64)
            noisy = counts.noisy(found, bits)
            (cumulative,) = counts.fitted(noisy)
            total = cumulative[-1]
            names = [repr(float(each)) for each in values]
            sums = NoisySums(
                law=counts.noise.law(unit=Fraction(1)),
                integers=noisy,
                forms=LazyForms(names, counts.forms),
                bounds=dict.fromkeys(names, (Fraction(0), Fraction(1))),
                statistics={name: (name, "mean") for name in names},
            )
            even = np.arange(1, cells) / cells  # as if rows lay evenly
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
        points, rows = as_points(self.bounds, self.grid), max(1, facts.planned_rows)
        levels = aimed_levels(
            _HUNDREDTHS, rows=rows, points=points.size, epsilon=float(epsilon), margin=None
        )
        plan = plan_quantiles(
            epsilon=epsilon,
            levels=levels,
            points=points,
            expected_rows=rows,
            skip=facts.may_miss,
            neighbors=facts.neighbors,
            total=facts.rows if counted else None,
        )
        # a step is flat while the share rises to the next: off by half of that, where rows are
        ends = [0.0, *map(float, levels), 1.0]
        flat = math.fsum((b - a) ** 2 / 2 for a, b in itertools.pairwise(ends))
        error = min(math.hypot(plan.error / rows, flat), 0.5)
        spends, why = "ε on quantiles together", "no value is public, so quantiles are drawn"
        methods = (Method(name="quantiles", error=error, spends=spends, why=why),)
        choose(methods, self.method)
        top = points.value(points.size - 1)

        def answer(opened: Rows, bits: BitSource) -> StepFunction:
            found = np.append(plan.answer(opened, bits), top)
            return StepFunction(points=found, levels=np.append([float(q) for q in levels], 1.0))

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
