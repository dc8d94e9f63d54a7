"""Several quantiles of one column, drawn together: no ε is split over them (theory Q)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrays import DEFAULT_MISSING
from zerodelta.data.rows import Rows
from zerodelta.errors import is_list, is_name, require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.mechanisms.quantile_plan import plan_quantiles
from zerodelta.mechanisms.ranks import as_level, as_points
from zerodelta.mechanisms.selection import SELECTIONS
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spine.facts import Facts
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.public_inputs import as_source, bounds_of, one_column
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import ask
from zerodelta.tasks.quantile import QuantileQuestion, declared_grid
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack

_MOST_ASKED = 10_000


@debited
def quantiles(
    rows: Any,
    columns: str | None = None,
    *,
    q: Sequence[Rational] | npt.NDArray[np.float64],
    bounds: tuple[Rational, Rational] | None = None,
    epsilon: Rational,
    grid: int | Sequence[Rational] | None = None,
    margin: int | None = None,
    missing: Any = DEFAULT_MISSING,
    method: str = "auto",
    diagnostics: Rational | None = None,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release several quantiles of one bounded column, like `np.quantile(rows, q)`, but private.

    Use it for deciles, percentiles or quartiles: they are drawn together, and ε is not split over
    them. For one quantile see `quantile`, for the share of rows up to given values see `cdf`.

    Parameters
    ----------
    rows : data set, array, list, series, frame or Source
        What `zd.open` returns, or one column. Values are clipped to the bounds and moved to the
        nearest point.
    columns : str, optional
        Which column of a data set or a frame.
    q : sequence of numbers from 0 to 1
        Which quantiles, in any order, each as it is written.
    bounds : (lower, upper)
        Where the points lie, known without the rows; for a data set, by default as declared. Not
        needed if `grid` lists the points.
    epsilon : number
        The privacy loss of all quantiles together, as an int, a float, a Fraction or a text.
    grid : int or sequence
        The points, or how many lie evenly between the bounds (2^40 + 1 if not given), as for
        `quantile`; whole numbers deserve their own.
    margin : int
        The aims are at least so many rows inside the first and the last one; about
        2·ln(points)/ε if not given. Pass 0 if rows fill the bounds to their ends.
    missing : "skip", None or number
        As for `quantile`.
    method : str
        "joint" (the joint exponential mechanism), "counts" (of all points of a small grid), or
        "auto", the one with the least predicted error. One quantile: as for `quantile`, too.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `release.diagnostics`: which fractions of the rows were
        used, clipped to the bounds, and unreadable.
    bits : BitSource
        Replayed bits for tests; never for data.

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
    levels where rows lie densely on a finer grid, end margin included. With few rows at a small ε
    fewer levels are drawn, and the others interpolated between them; that adds what the rows
    between two levels are unlike a line.

    Examples
    --------
    >>> ages = np.arange(100_000) % 100
    >>> asked = [0.105, 0.505, 0.905]
    >>> quantiles(ages, q=asked, bounds=(0, 120), grid=121, epsilon=1).value
    array([10., 50., 90.])

    """
    source = as_source(rows, columns, missing=missing)
    points = declared_grid(source) if bounds is None and grid is None else grid
    question = QuantilesQuestion(
        q=as_levels(q), bounds=bounds_of(source, bounds), grid=points, margin=margin, method=method
    )
    beside = diagnosis(diagnostics, source, bounds=question.bounds)
    return ask(question, source, epsilon=epsilon, bits=bits, beside=beside)


@value
class QuantilesQuestion:
    """Several quantiles of one column are asked, as points of a public grid."""

    q: tuple[Fraction, ...]
    bounds: tuple[Rational, Rational] | None = None
    grid: int | Sequence[Rational] | None = None
    margin: int | None = None
    method: str = "auto"

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Choose the method and the levels to draw."""
        one_column(facts)
        exact = as_usable_epsilon(epsilon)
        if len(set(self.q)) == 1 and is_name(self.method, ("auto", *SELECTIONS)):
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
            margin=self.margin,
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
        """Plan one quantile by its own method, which is better at ends and on coarse grids."""
        one = QuantileQuestion(
            q=self.q[0],
            bounds=self.bounds,
            grid=self.grid,
            margin=self.margin,
            method=self.method,
        ).plan(facts, epsilon)

        def answer(rows: Rows, bits: BitSource) -> Any:
            return np.full(len(self.q), one.answer(rows, bits))

        return replace(one, answer=answer)


def as_levels(q: Any) -> tuple[Fraction, ...]:
    """Return the levels as they are written."""
    listed = isinstance(q, (Sequence, np.ndarray)) and is_list(q)
    require(
        listed and 0 < len(q) <= _MOST_ASKED,
        "q",
        q if not listed else len(q),
        expected=f"a list of 1 to {_MOST_ASKED} numbers from 0 to 1",
        remedy="pass q=[0.25, 0.5, 0.75], or ask zd.quantile for one",
    )
    return tuple(as_level(level) for level in q)
