"""The sum of bounded columns; a missing cell, and a row that a filter drops, adds nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.data.arrays import DEFAULT_MISSING
from zerodelta.data.rows import Rows
from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.noise_law import NoisySums
from zerodelta.exact.rational import Rational
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.mechanisms.k_norm_noise import KNorm
from zerodelta.mechanisms.power_sums import present_counts
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spine.facts import Facts
from zerodelta.spine.methods import Method
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.public_inputs import as_source, bounds_of, each_bounds
from zerodelta.spine.release_plan import Measured, ReleasePlan
from zerodelta.spine.run import ask
from zerodelta.tables.grouped_data import By
from zerodelta.tasks.table import grouped_statistic
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack

_LEAST_STEPS, _MOST_STEPS = 1 << 10, 1 << 40


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
    bits: BitSource | None = None,
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
    by : str, list of str, or dict
        As for `table`: then the value is a table with a line for each group.
    bounds : (lower, upper)
        Of every column, known without the rows; for a data set, by default as declared.
    epsilon : number
        The privacy loss, as an int, a float, a Fraction or a text such as "1/2".
    missing : "skip", None or number
        As for `mean`; what is skipped adds nothing.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `release.diagnostics`: which fractions of the rows were
        used, clipped to the bounds, and unreadable.
    bits : BitSource
        Replayed bits for tests; never for data.

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
            bits=bits,
        )
    source = as_source(rows, columns, missing=missing)
    question = SumQuestion(bounds=bounds_of(source, bounds))
    beside = diagnosis(diagnostics, source, bounds=question.bounds)
    return ask(question, source, epsilon=epsilon, bits=bits, beside=beside)


@value
class SumQuestion:
    """A sum is asked of columns within public bounds."""

    bounds: tuple[Any, Any] | None = None

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Choose the lattice, and calibrate noise in the l∞ norm."""
        require(facts.width, "columns of rows", 0, "one or more", "pass rows with a column")
        exact = as_usable_epsilon(epsilon)
        columns = [
            _Column.of(lower, upper, steps=_steps(facts.planned_rows, exact))
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


def _steps(n: int, epsilon: Fraction) -> int:
    """Return half the width of the bounds in quanta: 2^8·n·ε keeps rounding below the noise."""
    wanted = 1 << math.ceil(math.log2(max(1.0, min(float(256 * n * epsilon), 2.0**60))))
    return max(_LEAST_STEPS, min(wanted, _MOST_STEPS))
